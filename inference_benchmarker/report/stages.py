"""The stages of a wave in words: what was offered in each, and what came of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.summary.time_table import precision_mark, value_text
from inference_benchmarker.verdict.limits_met import slo_met
from inference_benchmarker.words.wording import INDENT, aligned, duration_text, percent_text, pluralize, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.recovery import Recovery
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import StageRow, Summary

_MAX_ROWS = 20
_OFFERED = ["Stage", "from", "rate", "planned", "sent", "completed", "success", "in flight"]
_OF_SESSIONS = ["Stage", "from", "sessions", "planned", "requests sent", "completed", "success", "in flight"]
_REPEATED = ["Stage", "arrivals", "requests", "per arrival", "success by request", "by user"]
_TIMES = ["Stage", "latency p50", "p99", "response time p50", "p99"]
_LIMITS = "limits met"
_ROUNDING_S = 1e-6


def stage_lines(summary: Summary, plan: WavePlan, width: int | None = None) -> Iterator[str]:
    """Two tables: the rates (requests/s), success, and in flight at its end of each stage; its times and limits met.

    A third one where clients tried again; then how the endpoint recovered from those over its capacity.
    """
    stages, slos = summary.stages, plan.slos
    if not stages:
        return
    shown = stages[:_MAX_ROWS]
    head = _OFFERED if shown[0].summary.sessions is None else _OF_SESSIONS
    yield from aligned([head, *map(_offered, shown)], width)
    if isinstance(plan.load, OpenLoop) and plan.load.arrivals == "poisson":
        yield f"{INDENT}planned: arrivals per second as drawn (Poisson); on average, they equal the rate"
    yield ""
    header = [_TIMES[0] + _nearness(shown), *_TIMES[1:]]
    limits = [[_LIMITS], *([_limits_met(row, slos)] for row in shown)] if slos else [[]] * (len(shown) + 1)
    yield from aligned([[*row, *more] for row, more in zip([header, *map(_times, shown)], limits, strict=True)], width)
    if any(row.summary.repeats for row in shown):
        yield ""
        yield from aligned([_REPEATED, *(_repeated(row) for row in shown)], width)
    if len(stages) > _MAX_ROWS:
        more = pluralize(len(stages) - _MAX_ROWS, "more stage", "more stages")
        yield f"   … and {more}, in summary.json"
    for place, row in enumerate(shown, 1):
        if row.recovery is not None:
            yield f"{INDENT}After stage {row.name}: {_recovered(row.recovery, stages[place:])}"


def _nearness(shown: Sequence[StageRow]) -> str:
    """The mark of a table that has percentiles alone: shorter, because its header has no room."""
    found = [d for row in shown for d in (row.summary.latency, row.summary.response_time) if d is not None]
    return precision_mark(max(found, key=lambda d: d.precision)) if found else ""


def limits_of(row: StageRow, slos: Sequence[Slo]) -> list[Slo]:
    """Its own limits, and the wave's unless it is a pause."""
    return [slo for slo in slos if slo.stage == row.name or (not slo.stage and row.summary.ledger.scheduled)]


def is_met(slo: Slo, row: StageRow) -> bool:
    """Tells whether its requests, or those of the turns that the limit names, met a limit."""
    part = row.summary.turns(slo)
    return part is not None and slo_met(slo, part)


def measured_of(slo: Slo, row: StageRow) -> float | None:
    """The value of those requests that is compared with the limit."""
    part = row.summary.turns(slo)
    return None if part is None else part.measured(slo.metric, slo.stat)


def _limits_met(row: StageRow, slos: Sequence[Slo]) -> str:
    limits = limits_of(row, slos)
    return f"{sum(is_met(slo, row) for slo in limits)} of {len(limits)}" if limits else "-"


def _offered(row: StageRow) -> list[str]:
    part = row.summary
    rate = f"{row.from_rps:g}" if row.from_rps == row.to_rps else f"{row.from_rps:g}..{row.to_rps:g}"
    return [
        row.name,
        f"{row.start_s:g} s",
        f"{rate}/s",
        *map(rate_text, (_planned(part), part.rates.sent, part.rates.completed)),
        "-" if part.success_rate is None else percent_text(part.success_rate),
        f"{row.in_flight_end:,}",
    ]


def _planned(part: Summary) -> float:
    """Arrivals a second, which may be sessions."""
    return (part.rates.scheduled if part.sessions is None else part.sessions.rates.scheduled) or 0.0


def _repeated(row: StageRow) -> list[str]:
    repeats, success = row.summary.repeats, row.summary.success_rate
    if repeats is None or success is None:
        return [row.name, *["-"] * (len(_REPEATED) - 1)]
    each = (f"{repeats.arrivals:,}", f"{repeats.requests:,}", f"{repeats.attempts:.2f}")
    return [row.name, *each, percent_text(success), percent_text(repeats.success_by_user)]


def _recovered(recovery: Recovery, later: Sequence[StageRow]) -> str:
    """A sentence; the median response time stands beside that from before."""
    before = f"before, in stage {recovery.before_stage}: {duration_text(recovery.before_s)}"
    if recovery.recovery_s is None:
        now = "no answer for most" if recovery.after_s is None else f"median {duration_text(recovery.after_s)}"
        until = _end_of_watch(recovery, later)
        return f"not recovered in the {recovery.watched_s:g} s until {until} ({now}; {before})"
    if not recovery.recovery_s:
        return f"recovered at once (median {before})"
    return f"recovered {recovery.recovery_s:g} s after the load fell (median {before})"


def _end_of_watch(recovery: Recovery, later: Sequence[StageRow]) -> str:
    """The stage at whose beginning the load rose again."""
    end_s = later[0].start_s + recovery.watched_s - _ROUNDING_S
    return next((f"stage {row.name}" for row in later if row.start_s >= end_s), "the load ended")


def _times(row: StageRow) -> list[str]:
    part = row.summary
    return [row.name, *_middle_and_tail(part.latency), *_middle_and_tail(part.response_time)]


def _middle_and_tail(d: Distribution | None) -> list[str]:
    return ["-", "-"] if d is None else [value_text(d, d.percentile(50)), value_text(d, d.percentile(99))]
