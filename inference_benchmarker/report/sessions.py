"""Sessions and their turns in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.summary.time_table import marked, middle_and_tail, value_text
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, percent_text, pluralize, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.records.record import Ledger
    from inference_benchmarker.summary.sessions import Sessions, TurnRow
    from inference_benchmarker.summary.statistics.distribution import Distribution

_FIRST_ROWS, _MOST_ROWS = 5, 10
_WIDTH = 80
_HEADER = ("sent", "failed", "TTFT p50", "p99", "latency p50", "p99", "context", "cached")


def session_lines(sessions: Sessions | None, ledger: Ledger, width: int | None = None) -> Iterator[str]:
    """The sessions by how they ended, how long they took, and a table of their turns."""
    if sessions is None:
        return
    yield f"{INDENT}Sessions:         {', '.join(_counts(sessions))}"
    if clauses := list(_not_completed(sessions, ledger)):
        yield f"{INDENT}Not completed:    {', '.join(clauses)}"
    yield f"{INDENT}Session rate:     {_rates(sessions)}"
    if sessions.duration is not None:
        yield f"{INDENT}Session duration: {middle_and_tail(sessions.duration)}, from arrival to last answer"
    if sessions.turns is not None:
        yield f"{INDENT}Turns/session:    {_turns(sessions.turns)}"
    if clauses := list(_cached(sessions)):
        yield f"{INDENT}Cached:           {'; '.join(clauses)}"
    if clauses := list(_not_begun(ledger)):
        yield f"{INDENT}Turns not begun:  {'; '.join(clauses)}"
    yield ""
    yield from aligned(turn_table(sessions.by_turn), _WIDTH if width is None else width)
    if left := turns_left_out(sessions.by_turn):
        yield f"{INDENT}{left}"


def turn_table(rows: Sequence[TurnRow]) -> list[list[str]]:
    """A header and a row for each turn that is shown; a column that nothing was measured for is left out."""
    if not rows:
        return []
    several = shown(rows)
    cells = [list(_HEADER), *map(_row, several)]
    kept = [place for place in range(len(_HEADER)) if any(row[place] != "-" for row in cells[1:])]
    names = [marked("Turn", (row.latency for row in several)), *(row.name for row in several)]
    return [[name, *(row[place] for place in kept)] for name, row in zip(names, cells, strict=True)]


def shown(rows: Sequence[TurnRow]) -> list[TurnRow]:
    """All turns, or of many the first ones, some on the way, and the last."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    steps = _MOST_ROWS - _FIRST_ROWS
    rest = len(rows) - _FIRST_ROWS
    places = [*range(_FIRST_ROWS), *(_FIRST_ROWS - 1 + rest * step // steps for step in range(1, steps + 1))]
    return [rows[place] for place in places]


def turns_left_out(rows: Sequence[TurnRow]) -> str:
    """A line on the turns that ``turn_table`` leaves out; empty if it has them all."""
    left = len(rows) - len(shown(rows))
    return f"… and {pluralize(left, 'more turn', 'more turns')}, in summary.json" if left else ""


def _counts(sessions: Sessions) -> Iterator[str]:
    yield f"{sessions.started:,} started"
    success = "" if sessions.success is None else f" ({percent_text(sessions.success)})"
    yield f"{sessions.completed:,} completed{success}"
    if sessions.good is not None:
        yield f"{sessions.good:,} good"


def _not_completed(sessions: Sessions, ledger: Ledger) -> Iterator[str]:
    fields = {"failed": sessions.failed, "raised": sessions.raised, "open at the end": sessions.open}
    yield from (f"{count:,} {what}" for what, count in fields.items() if count)
    if ledger.dropped_turns:
        yield f"{ledger.dropped_turns:,} of them because no slot was free"


def _not_begun(ledger: Ledger) -> Iterator[str]:
    unknown = ledger.turns_unknown
    if ledger.not_begun or unknown:
        yield f"{'≥' if unknown else ''}{ledger.not_begun:,}"
    if unknown:
        said = "did not say how many turns remained"
        yield pluralize(unknown, f"session {said}", f"sessions {said}")


def _rates(sessions: Sessions) -> str:
    rates = sessions.rates
    target = "" if rates.target is None else f"{rate_text(rates.target)} target, "
    return (
        f"{target}{rate_text(rates.started)} started, {rate_text(rates.completed)} completed{until_last(rates.over_s)}"
    )


def until_last(over_s: float | None) -> str:
    """The time that rates are over, where it ends before the wave does."""
    return "" if over_s is None else f" (in the {duration_text(over_s)} until the last session started)"


def _cached(sessions: Sessions) -> Iterator[str]:
    """The share that the server had cached, of the one it could have had."""
    cached, reusable = sessions.cached_share, sessions.reusable_share
    if cached is not None:
        yield f"{percent_text(cached)} of the input tokens{_possible(cached, reusable)}"
    elif reusable:
        yield f"{percent_text(reusable)} of the input could have been cached"
    if reusable is not None and (known := sessions.known_prompts or 0) < (sent := sum(r.ok for r in sessions.by_turn)):
        yield f"prompts known for {known:,} of {sent:,} answered requests"
    if sessions.recorded_reuse is not None and (cached is not None or reusable):
        yield f"{percent_text(sessions.recorded_reuse)} of the recorded input repeats earlier blocks"


def _possible(cached: float, reusable: float | None) -> str:
    if reusable is None:
        return ""
    return f"; {percent_text(reusable)} could have been" if cached < reusable else ", all that could have been"


def _turns(turns: Distribution) -> str:
    bound = "≥" if turns.lower_bound_from is not None else ""
    return f"mean {bound}{turns.mean:.3g}, p50 {turns.percentile(50):g}, max {turns.maximum:g}"


def _row(row: TurnRow) -> list[str]:
    ttft, latency = row.ttft, row.latency
    times = [_value(found, percent) for found in (ttft, latency) for percent in (50, 99)]
    context = "-" if row.context_tokens is None else f"{row.context_tokens:,.0f}"
    cached = "-" if row.cached_share is None else percent_text(row.cached_share)
    return [f"{row.sent:,}", f"{row.failed:,}", *times, context, cached]


def _value(distribution: Distribution | None, percent: float) -> str:
    return "-" if distribution is None else value_text(distribution, distribution.percentile(percent))
