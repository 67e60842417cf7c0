"""The limits of a wave as they stand so far, by the feed: an answer that may still change. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.cli.live.live_lines import about, last_arrival_ns
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.plan.steering import rate_at
from inference_benchmarker.summary.live_values import overdue_ages, value_so_far
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.feed import Cell
    from inference_benchmarker.wave.spool.spool_state import SpoolState

_SHARES = ("success", "rate")
_MOST_POINTS = 300  # of a long wave, at which its rate is asked for


@dataclass(frozen=True, slots=True)
class LimitSoFar:
    """A limit as it was written, whether it is kept (None: nobody can tell yet), and its value."""

    expression: str
    kept: bool | None = None
    value: str = ""

    @property
    def mark(self) -> str:
        """✓ kept, ✗ broken, … unknown."""
        return "…" if self.kept is None else "✓" if self.kept else "✗"


def limits_so_far(plan: WavePlan, spool_state: SpoolState) -> Iterator[LimitSoFar]:
    """Each limit of the plan, those on the server's metrics last: their values come when the wave is over.

    The success threshold is among them as soon as a request has failed.
    """
    whole = spool_state.feed.total()
    if whole.errors and not any(slo.metric == "success" for slo in plan.slos):
        least = Slo(f"success>={plan.success_threshold:g}", "success", "success", ">=", plan.success_threshold)
        yield _so_far(least, value_so_far(least, [whole], open_loop=True)[0])
    for slo in plan.slos:
        yield _so_far(slo, _measured(plan, slo, whole, spool_state))
    yield from (LimitSoFar(limit.expression) for limit in plan.server_limits)


def _so_far(slo: Slo, measured: float | None) -> LimitSoFar:
    if measured is None:
        return LimitSoFar(slo.expression)
    return LimitSoFar(slo.expression, slo.met(measured), _text(slo, measured))


def _text(slo: Slo, measured: float) -> str:
    """A value that looks like its limit only where it is the same."""
    if slo.metric in _SHARES:
        return percent_text(measured, slo.limit)
    text = about(measured)
    return duration_text(measured, slo.limit) if text == about(slo.limit) else text


def _measured(plan: WavePlan, slo: Slo, whole: Cell, spool_state: SpoolState) -> float | None:
    """The value that is compared with a limit, as far as the feed has it."""
    if slo.is_on_sessions or (slo.metric == "rate" and spool_state.has_sessions):
        return None  # the feed reports requests alone
    if slo.metric == "rate":
        return None if slo.stage else _completed_share(plan, spool_state, whole)
    open_loop, feed = isinstance(plan.load, OpenLoop), spool_state.feed
    if slo.stage:
        return value_so_far(slo, [feed.stage(_place(plan, slo.stage))], open_loop=open_loop)[0]
    overdue = overdue_ages(slo, feed, spool_state.whole_seconds, open_loop=open_loop)
    return value_so_far(slo, [whole], overdue, open_loop=open_loop)[0]


def _place(plan: WavePlan, stage: str) -> int:
    """Of a stage by its name; the plan was checked, so that it has one."""
    assert isinstance(plan.load, OpenLoop)
    return list(plan.load.stage_names).index(stage)


def _completed_share(plan: WavePlan, spool_state: SpoolState, whole: Cell) -> float | None:
    """The share completed of those due a median latency ago; None before there was a second of that."""
    latency = whole.times.get("latency")
    middle = (None if latency is None else latency.percentile(50)) or 0.0
    instants = [worker.at for worker in spool_state.workers]
    ends = (sum(instants) // len(instants) - int(middle * NS), last_arrival_ns(plan, spool_state))
    until = min(end for end in ends if end is not None)
    if until < NS:
        return None
    points = min(until // NS, _MOST_POINTS)
    rates = [rate_at(plan.load, spool_state.changes, until * (2 * n + 1) // (2 * points)) or 0.0 for n in range(points)]
    due = sum(rates) / points * until / NS
    return min(whole.ok / due, 1.0) if due >= 1 else None
