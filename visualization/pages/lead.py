"""Runs -> the sentence to read first: which load kept the limits, or how far the runs lie apart. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import duration_text, number_text, percent_text, pluralize
from visualization.figures.cards import endings, facts
from visualization.figures.curves import around_knee
from visualization.figures.limits import TITLES
from visualization.figures.loads import is_ladder, offered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from visualization.figures.limits import Limit
    from visualization.figures.runs import Run

_MOST_NAMES = 3
_LONG = 160
_ABORTED = "aborted"


def lead(runs: Sequence[Run], limits: Sequence[Limit], change: str = "") -> str:
    """The answer, and of which runs it is not; empty for fewer than two waves.

    ``change``: how one side differs from the other, where there are two sides.
    """
    waves = [run for run in runs if run.has_wave]
    if len(waves) < 2:
        return ""
    usable = [run for run in waves if not run.doubtful]
    common = [limit for limit in limits if len(limit.runs) >= len(waves)]
    if not usable:
        return " ".join(_warnings(waves, is_reported=False))
    answer = change or (_climbed(waves, common) if is_ladder(waves) else _apart(usable, common))
    return " ".join(filter(None, (answer, *_warnings(waves, is_reported=change.startswith("INVALID")))))


def _climbed(waves: Sequence[Run], common: Sequence[Limit]) -> str:
    """The highest load that kept every limit, as all below it did, and what came of the next one.

    A limit that was kept until a wave ended early was not kept. Where a lower load than the highest is all that the
    endpoint keeps up with, that is said first: a share of answers is met by whatever comes late.
    """
    loads = [[run for run in waves if offered(run) == load] for load in sorted(set(map(offered, waves)))]
    valid = [(runs, list(filter(_decides, runs))) for runs in loads]
    place = next((at for at, (_, good) in enumerate(valid) if any(run.misses_limit for run in good)), len(valid))
    kept = [good for _, good in valid[:place] if good]
    if not kept and place == len(valid):
        return "No load was sent to its end."
    if not kept:
        (first,) = [run for run in valid[place][1] if run.misses_limit][:1]
        miss = _miss(first)
        if miss.startswith(_ABORTED):
            return f"The lowest load, {_load(first)}, was {miss}."
        return f"Even {_load(first)} does not meet {_names(first, common)}: {miss}."
    best, above = kept[-1][0], valid[place][1] if place < len(valid) else []
    meets = f"{_overload(waves, best)}{_load(best)} meets {_names(best, common)}{_value(best, common)}"
    if above:
        worse = next(run for run in above if run.misses_limit)
        return f"{meets}; {_load(worse)} does not: {_miss(worse)}."
    higher = [run for runs, good in valid if not good and offered(runs[0]) > offered(best) for run in runs]
    if any(not run.doubtful for run in higher):
        return f"{meets}; no higher load was sent to its end."
    return f"{meets}; no VALID run had a higher load." if higher else f"{meets}; no higher load was sent."


def _overload(waves: Sequence[Run], best: Run) -> str:
    """The load beyond which no more answers come, if it is lower than that of the best run."""
    found = around_knee(waves)
    if found is None or offered(found[0]) >= offered(best):
        return ""
    knee, beyond = found
    most = f"{number_text((knee if _is_closed(knee) else beyond).completed or 0)}/s"
    if _is_closed(knee):
        return f"More than {_load(knee)} brings no more answers than {most}. "
    return f"The endpoint keeps up with {_load(knee)}; of {_load(beyond)} it completes {most}. "


def _is_closed(run: Run) -> bool:
    return run.plan is not None and isinstance(run.plan.load, ClosedLoop)


def _decides(run: Run) -> bool:
    return not run.doubtful and (run.misses_limit or not endings(run))


def _apart(usable: Sequence[Run], common: Sequence[Limit]) -> str:
    """The fastest and the slowest run by the statistic that a limit is on, else by the tail of the latency."""
    timed = next((limit for limit in common if limit.metric in TITLES and limit.metric != "success"), None)
    metric, stat = ("latency", "p99") if timed is None else (timed.metric, timed.slo.stat)
    found = [(value, run) for run in usable if (value := run.statistic(metric, stat)) is not None]
    kept = sum(not run.misses_limit for run in usable)
    counts = f"{kept} of {pluralize(len(usable), 'VALID run', 'VALID runs')} meet every limit."
    text = counts if kept < len(usable) or common else ""
    if len({value for value, _ in found}) < 2:
        return text
    (least, fast), (most, slow) = min(found, key=_first), max(found, key=_first)
    span = f"{duration_text(least)} ({_name(fast)}) to {duration_text(most)} ({_name(slow)})"
    return f"{TITLES[metric]} {stat} goes from {span}. {text}".strip()


def _first(pair: tuple[float, Run]) -> float:
    return pair[0]


def _warnings(waves: Sequence[Run], *, is_reported: bool) -> Iterator[str]:
    """The runs whose numbers must not be taken for the endpoint's; ``is_reported``: INVALID ones are named already."""
    invalid = [run for run in waves if run.verdict.startswith("INVALID")]
    lost = [run for run in waves if run.doubtful and run not in invalid]
    if invalid and not is_reported:
        which = "All runs are" if len(invalid) == len(waves) else _count(invalid, len(waves), "is", "are")
        yield f"{which} INVALID: {'its' if len(invalid) == 1 else 'their'} numbers are not the endpoint's."
    if lost:
        yield f"{_count(lost, len(waves), 'cannot', 'cannot')} be read."
    if cut := [run for run in waves if "interrupted" in endings(run) and run not in invalid]:
        yield f"{_count(cut, len(waves), 'was', 'were')} interrupted."


def _count(some: Sequence[Run], of: int, one: str, many: str) -> str:
    names = f" ({', '.join(map(_name, some))})" if len(some) <= _MOST_NAMES else ""
    return f"{len(some)} of {of} runs{names} {one if len(some) == 1 else many}"


def _miss(run: Run) -> str:
    """The first limit that a run missed, with what was measured."""
    found = next(each for each in run.findings if each.severity == "missed")
    ended = f"{_ABORTED} " if found.code == _ABORTED else ""
    return one_line(f"{ended}{found.compared}", _LONG)


def _names(run: Run, limits: Sequence[Limit]) -> str:
    """The limits that all runs have; without one, the share that must succeed."""
    otherwise = "every limit" if run.plan is None else f"success>={percent_text(run.plan.success_threshold)}"
    return one_line(" and ".join(dict.fromkeys(limit.slo.expression for limit in limits)), _LONG) or otherwise


def _value(run: Run, limits: Sequence[Limit]) -> str:
    """The measured value of the only limit there is."""
    if len({limit.slo.expression for limit in limits}) != 1:
        return ""
    metric, stat = limits[0].metric, limits[0].slo.stat
    value = None if metric == "success" else run.statistic(metric, stat)
    return "" if value is None else f" ({duration_text(value) if metric in TITLES else number_text(value)})"


def _load(run: Run) -> str:
    return facts(run).get("load", run.label)


def _name(run: Run) -> str:
    return one_line(run.label, _LONG // 4)
