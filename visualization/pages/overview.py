"""Runs -> the table to read first: a row a run, and what is the same in all of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inference_benchmarker.words.wording import duration_text, number_text, percent_text, rate_text
from visualization.figures.cards import endings, facts
from visualization.figures.figures import Bar, Cell, Column, Level, Overview
from visualization.figures.limits import TITLES, metric_of, slos_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from visualization.figures.limits import Limit
    from visualization.figures.runs import Run

_ONE_A_RUN = ("duration", "start")
_CAUSES = ("invalid", "missed")


def overview(runs: Sequence[Run], limits: Sequence[Limit]) -> Overview | None:
    """The table; None without a run."""
    if not runs:
        return None
    columns = [
        *_words(runs),
        *_rates(runs),
        *(column for named in _times(runs, limits) for column in _time(runs, limits, *named)),
        *_success(runs, limits),
    ]
    heads, cells = zip(*columns, strict=True)
    return Overview(tuple(heads), tuple(zip(*cells, strict=True)), tuple(_same(runs)))


_Filled = tuple[Column, list[Cell]]


def _words(runs: Sequence[Run]) -> Iterator[_Filled]:
    yield Column("Verdict", numeric=False), [_verdict(run) for run in runs]
    loads = [facts(run).get("load", "") for run in runs]
    if len(set(loads)) > 1 and loads != [run.label for run in runs]:
        yield Column("Load"), [Cell(text, _leading(text)) for text in loads]


def _verdict(run: Run) -> Cell:
    """With its cause: the first finding of the kind that made it."""
    found = run.findings
    kinds = {each.severity for each in found}
    kind = next((each for each in _CAUSES if each in kinds), None)
    cause = next((each for each in found if each.severity == kind), None)
    text = "" if cause is None else cause.measured
    if cause is not None and cause.code != "aborted":
        text = f"{cause.code.replace('_', ' ')}: {text}"
    tone: Literal["", "good", "warn", "bad"] = "bad" if run.doubtful else "warn" if kind == "missed" else "good"
    sign = {"bad": "✗", "warn": "!", "good": "✓"}[tone]
    if not run.has_wave:
        return Cell(run.verdict, 3)
    ended = next(reversed(endings(run)), "")
    if ended and tone == "good":
        sign, tone = "!", "warn"
    word = ended if ended and tone == "warn" else run.word
    return Cell(f"{sign} {word}", {"good": 0, "warn": 1, "bad": 2}[tone], tone=tone, note=text)


def _leading(text: str) -> float | None:
    """The number that a load begins with."""
    try:
        return float(text.partition("/")[0].split(" ")[0])
    except ValueError:
        return None


def _rates(runs: Sequence[Run]) -> Iterator[_Filled]:
    rates = [run.completed for run in runs]
    cells = [
        Cell("") if rate is None else Cell(rate_text(rate), rate, Bar(rate, *_ends(run, "rate.rate", 1)))
        for run, rate in zip(runs, rates, strict=True)
    ]
    yield Column("Completed"), cells


def _times(runs: Sequence[Run], limits: Sequence[Limit]) -> dict[tuple[str, str], None]:
    """(metric, statistic) of each column, once: latency, what limits are on, and TTFT where there is any."""
    named = [("latency", "p50"), ("latency", "p99")]
    named += [(limit.metric, limit.slo.stat) for limit in limits if limit.metric != "success"]
    named += [("ttft", "p50")] if any(run.statistic("ttft", "p50") is not None for run in runs) else []
    return dict.fromkeys(sorted(named, key=lambda each: [*TITLES, each[0]].index(each[0])))


def _time(runs: Sequence[Run], limits: Sequence[Limit], metric: str, stat: str) -> Iterator[_Filled]:
    """A column of a time, in ms, or of a metric of the user's own, where any run has it."""
    values = [run.statistic(metric, stat) for run in runs]
    if any(value is not None for value in values):
        on = [limit for limit in limits if (limit.metric, limit.slo.stat) == (metric, stat)]
        level = Level(on[0].value, ", ".join(limit.text for limit in on)) if on else None
        cells = [_time_cell(run, metric, stat, value) for run, value in zip(runs, values, strict=True)]
        yield Column(f"{TITLES.get(metric, metric)} {stat}", level=level), cells


def _time_cell(run: Run, metric: str, stat: str, seconds: float | None) -> Cell:
    if seconds is None:
        return Cell("")
    times = run.times(metric)
    bound = None if times is None else times.lower_bound_from
    sign = "≥" if bound is not None and seconds >= bound else ""
    kept = [slo.met(seconds) for slo in slos_of(run) if (metric_of(slo, run), slo.stat) == (metric, stat)]
    factor, text = (1e3, duration_text(seconds)) if metric in TITLES else (1, number_text(seconds))
    bar = Bar(factor * seconds, *_ends(run, f"{metric}.{stat}", factor), sign)
    return Cell(f"{sign} {text}".lstrip(), factor * seconds, bar, "" if all(kept) else "bad")


def _success(runs: Sequence[Run], limits: Sequence[Limit]) -> Iterator[_Filled]:
    shares = [run.success_rate for run in runs]
    on = [limit for limit in limits if limit.metric == "success"]
    level = Level(on[0].value, ", ".join(limit.text for limit in on)) if on else None
    cells = [Cell("") if share is None else _share(run, share) for run, share in zip(runs, shares, strict=True)]
    yield Column("Success", level=level), cells


def _share(run: Run, share: float) -> Cell:
    short = run.plan is not None and share < run.plan.success_threshold
    short = short or not all(slo.met(share) for slo in slos_of(run) if slo.metric == "success")
    bar = Bar(100 * share, *_ends(run, "success.success", 100))
    return Cell(percent_text(share), 100 * share, bar, "bad" if short else "")


def _ends(run: Run, name: str, factor: float) -> tuple[float | None, float | None]:
    """The interval's ends, in the unit that is shown."""
    ends = run.intervals.get(name)
    return (None, None) if ends is None else (ends[0] * factor, ends[1] * factor)


def _same(runs: Sequence[Run]) -> Iterator[str]:
    """The facts that all runs share; of one run these are all, and stand elsewhere."""
    if len(runs) < 2:
        return
    first, *others = [{**facts(run), **_planned(run)} for run in runs]
    for name, text in first.items():
        if name not in _ONE_A_RUN and all(other.get(name) == text for other in others):
            yield text


def _planned(run: Run) -> dict[str, str]:
    seconds = None if run.window is None else run.window.planned_s
    limits = [slo.expression for slo in slos_of(run)]
    return {
        **({} if seconds is None else {"planned": f"{seconds:.4g} s of load"}),
        **({"limits": f"limit{'s' if len(limits) > 1 else ''} {', '.join(limits)}"} if limits else {}),
    }
