"""Turns a wave's records into numbers. Pure; each formula stands here once (in words: docs/reference/metrics.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.time_table import middle_and_tail, time_rows
from inference_benchmarker.words.wording import html_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.plan.slo import Slo, Turns
    from inference_benchmarker.records.record import Ledger
    from inference_benchmarker.summary.by_name import (
        ErrorRow,
        LabelRow,
    )
    from inference_benchmarker.summary.completed_rate import CompletedSpan
    from inference_benchmarker.summary.goodput import Goodput
    from inference_benchmarker.summary.hosts import HostRow
    from inference_benchmarker.summary.rates import Rates
    from inference_benchmarker.summary.recovery import Recovery
    from inference_benchmarker.summary.repeats import Repeats
    from inference_benchmarker.summary.sessions import Sessions
    from inference_benchmarker.summary.tokens import Tokens


@dataclass(frozen=True, slots=True)
class StageRow:
    """The requests that were due in one stage; ``start_s`` and ``end_s`` after wave start.

    ``in_flight_end``: those in flight when it ended, whichever stage they are from; all else is of its own requests.
    ``recovery``: after it, where it was over capacity.
    """

    name: str
    start_s: float
    end_s: float
    from_rps: float
    to_rps: float
    in_flight_end: int
    summary: Summary
    recovery: Recovery | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """Every number of a wave's report; times in seconds, None where there is nothing to measure.

    Where arrivals are sessions: ``sessions`` are they as units, all else is of the requests of their turns;
    ``of_turns`` has the numbers of their first turns, of the later ones, and of those that a limit names.
    ``sent_in_window``, ``answered_in_window``: of a warm-up's sessions, the requests that were sent after it, before
    the planned end, and those that were answered within the duration. The wave's rates count them.
    """

    duration_s: float
    planned_s: float | None
    ledger: Ledger
    worker_ledgers: tuple[Ledger, ...]
    rates: Rates
    latency: Distribution | None
    response_time: Distribution | None
    failed_latency: Distribution | None
    lag: Distribution | None
    build: Distribution | None
    ttft: Distribution | None
    itl: Distribution | None
    tpot: Distribution | None
    tokens: Tokens | None
    goodput: Goodput | None
    repeats: Repeats | None
    labels: tuple[LabelRow, ...]
    errors: tuple[ErrorRow, ...]
    finish_reasons: dict[str, int]
    metrics: dict[str, Distribution]
    completed_span: CompletedSpan
    warmup: Summary | None = None
    stages: tuple[StageRow, ...] = ()
    hosts: tuple[HostRow, ...] = ()
    sessions: Sessions | None = None
    of_turns: Mapping[Turns, Summary] = field(default_factory=dict)
    sent_in_window: int | None = None
    answered_in_window: int | None = None

    def __repr__(self) -> str:
        """In a line; the numbers are its attributes."""
        latency = "" if self.latency is None else f", latency {middle_and_tail(self.latency)}"
        return f"<{type(self).__name__}: {self.ledger.sent:,} sent, {self.ledger.ok:,} ok{latency}>"

    def _repr_html_(self) -> str:
        """The report's table of times, for notebooks."""
        return html_table(time_rows(self.distribution))

    @property
    def success_rate(self) -> float | None:
        """Ok / sent."""
        return self.ledger.ok / self.ledger.sent if self.ledger.sent else None

    @property
    def completed_share(self) -> float | None:
        """Completed rate over scheduled rate, which is the target rate but for the Poisson draw; of whole sessions."""
        if self.sessions is not None:
            return self.sessions.completed_share
        return self.rates.completed / self.rates.scheduled if self.rates.scheduled else None

    def part(self, slo: Slo) -> Summary | None:
        """The part that a limit speaks of: the wave, the stage that it names, or turns of it; None without any."""
        found = (row.summary for row in self.stages if row.name == slo.stage)
        part = next(found, None) if slo.stage else self
        return None if part is None else part.turns(slo)

    def turns(self, slo: Slo) -> Summary | None:
        """The requests that a limit speaks of: all, or those of some turns; None where none of them was sent."""
        return self if slo.turns is None else self.of_turns.get(slo.turns)

    def measured(self, metric: str, stat: str) -> float | None:
        """The value an SLO speaks of, e.g. ("ttft", "p90"), ("success", "success"); None when not measured."""
        if metric == "session_success":
            return None if self.sessions is None else self.sessions.success
        if metric == "success":
            return self.success_rate
        if metric == "rate":
            return self.completed_share
        if metric == "goodput":
            return None if self.goodput is None else self.goodput.share
        distribution = self.distribution(metric)
        return None if distribution is None else distribution.statistic(stat)

    def distribution(self, metric: str) -> Distribution | None:
        """The distribution an SLO speaks of; "default" is response time, in the closed loop latency."""
        if metric == "default":
            return self.latency if self.response_time is None else self.response_time
        if metric == "session":
            return None if self.sessions is None else self.sessions.duration
        if metric.startswith(PREFIX):
            return self.metrics.get(metric.removeprefix(PREFIX))
        found = getattr(self, metric, None)
        return found if isinstance(found, Distribution) else None
