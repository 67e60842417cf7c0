"""Turns a wave's records into numbers. Pure; each formula stands here once (in words: docs/reference/metrics.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.facts.stages import StageFacts, stages_of
from inference_benchmarker.facts.turns import of_turns
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.records.user_metrics import PREFIX
from inference_benchmarker.summary.by_name import (
    ErrorRow,
    ErrorsGathered,
    FinishReasonsGathered,
    LabelRow,
    LabelsGathered,
    LabelsSeen,
)
from inference_benchmarker.summary.completed_rate import CompletedGathered, CompletedSpan, FirstAbandoned
from inference_benchmarker.summary.counted import Counted
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.goodput import GoodGathered, Goodput
from inference_benchmarker.summary.hosts import HostRow, host_rows
from inference_benchmarker.summary.rates import LATE_NS, LateGathered, Rates, rates_of
from inference_benchmarker.summary.recovery import Recovery, recoveries
from inference_benchmarker.summary.repeats import Repeats, RepeatsGathered
from inference_benchmarker.summary.samples import Streams, StreamsSeen, TimesGathered
from inference_benchmarker.summary.sessions import Sessions, sessions_of
from inference_benchmarker.summary.statistics.distribution import Distribution
from inference_benchmarker.summary.time_table import middle_and_tail, time_rows
from inference_benchmarker.summary.tokens import Tokens, TokensGathered, TokenSums
from inference_benchmarker.summary.user_metrics import MetricsGathered
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import html_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo, Turns
    from inference_benchmarker.records.columns import Mask, Records
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts


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


def summarise(facts: WaveFacts) -> Summary:
    """The numbers of a finished wave."""
    warmup = _warmup(facts) if facts.warmup_sent else None
    stages = tuple(stages_of(facts))
    recovered = recoveries(facts, stages)
    rows = tuple(map(_stage, stages, recovered))
    return replace(_with_sessions(facts, numbers(facts)), warmup=warmup, stages=rows, hosts=host_rows(facts))


def _with_sessions(facts: WaveFacts, summary: Summary) -> Summary:
    """The numbers of a wave, or of a part that has whole sessions, with those of its sessions and of their turns."""
    if not facts.has_sessions:
        return summary
    asked = dict.fromkeys((FIRST_TURN, LATER_TURNS, *(slo.turns for slo in facts.plan.slos if slo.turns)))
    parts = ((turns, of_turns(facts, turns)) for turns in asked)
    found = {turns: numbers(part) for turns, part in parts if part.ledger.sent}
    return replace(summary, sessions=sessions_of(facts), of_turns=found)


def numbers(facts: WaveFacts) -> Summary:
    """The numbers of a wave's window, or of a part of it."""
    if facts.counts is not None:
        return _counted(facts, facts.counts)
    records, window, plan = facts.records, facts.window, facts.plan
    streams, labelled = _seen(records)
    times, tokens, errors = TimesGathered(streams, open_loop=facts.open_loop), TokensGathered(), ErrorsGathered()
    labels = LabelsGathered(open_loop=facts.open_loop) if labelled else None
    good = GoodGathered(plan.goodput) if plan.goodput and facts.ledger.turns else None
    repeats = RepeatsGathered() if plan.retries.retries else None
    reasons, late, cut = FinishReasonsGathered(), LateGathered(window), FirstAbandoned()
    metrics = MetricsGathered(records.metrics) if records.metrics else None
    gather(records, times, tokens, errors, labels, good, repeats, reasons, late, cut, metrics)

    span, good_span = (
        CompletedSpan.of(middle_s, len(records), cut.done_ns, window)
        for middle_s in (times.middle_latency_s, None if good is None else good.middle_latency_s)
    )
    completed, completed_tokens = CompletedGathered(span, ("outcome",), _ok), TokenSums(span)
    completed_good = None if good is None else good.completed(good_span)
    gather(records, completed, completed_tokens if tokens.any else None, completed_good)
    if completed.span is not span and tokens.any:
        completed_tokens = TokenSums(completed.span)
        gather(records, completed_tokens)
    return Summary(
        duration_s=window.duration_ns / NS,
        planned_s=None if window.planned_ns is None else window.planned_ns / NS,
        ledger=facts.ledger,
        worker_ledgers=facts.ledgers,
        rates=rates_of(facts, late.number, completed.rate),
        **times.distributions(),
        tokens=tokens.tokens(completed_tokens, completed.span),
        goodput=None if good is None or completed_good is None else good.goodput(facts.ledger.turns, completed_good),
        repeats=None if repeats is None else repeats.repeats(),
        labels=() if labels is None else labels.rows(),
        errors=errors.rows(facts.error_texts),
        finish_reasons=reasons.counts(),
        metrics={} if metrics is None else metrics.distributions(),
        completed_span=completed.span,
    )


def _counted(facts: WaveFacts, counts: Counts) -> Summary:
    """The numbers of requests that were counted."""
    window, found = facts.window, Counted(counts.window, facts.records, facts.window)
    return Summary(
        duration_s=window.duration_ns / NS,
        planned_s=None if window.planned_ns is None else window.planned_ns / NS,
        ledger=facts.ledger,
        worker_ledgers=facts.ledgers,
        rates=rates_of(facts, found.late(LATE_NS), found.completed, found.completed_precision),
        **found.times,
        tokens=found.tokens(),
        goodput=None,
        repeats=None,
        labels=found.labels(open_loop=facts.open_loop),
        errors=found.errors(facts.error_texts),
        finish_reasons=found.finish_reasons(),
        metrics={},
        completed_span=found.completed_span,
    )


def _seen(records: InParts) -> tuple[Streams, bool]:
    """The streams of a wave, and whether its requests have labels."""
    streams, labels = StreamsSeen(), LabelsSeen()
    gather(records, streams, labels)
    return streams.streams(records), labels.named


def _ok(records: Records) -> Mask:
    return records.outcome("ok")


class _Outcomes:
    """Gathers a ledger of what was sent, as if that were all that was planned."""

    columns = ("outcome", "attempt")

    def __init__(self) -> None:
        self.ledger = Ledger()

    def add(self, part: Records) -> None:
        counts = {name: int(np.count_nonzero(part.outcome(name))) for name in ("ok", "failed", "abandoned")}
        repeated = int(np.count_nonzero(part.repeats))
        self.ledger += Ledger(scheduled=len(part) - repeated, sent=len(part), repeated=repeated, **counts)


def _warmup(facts: WaveFacts) -> Summary:
    """The warm-up's own numbers: it has no plan to be held against, so its ledger counts what was sent.

    One that was stopped lasted until then.
    """
    stopped_at = facts.window.stopped_at_ns
    ledger, times, errors = _warmup_requests(facts)
    seconds = (facts.plan.warmup_ns + min(0, 0 if stopped_at is None else stopped_at)) / NS
    rate = ledger.sent / seconds if seconds else 0.0
    target = None if facts.has_sessions else facts.plan.target_rate
    return Summary(
        duration_s=seconds,
        planned_s=seconds,
        ledger=ledger,
        worker_ledgers=(),
        rates=Rates(target, None, rate, ledger.ok / seconds if seconds else 0.0, rate),
        **times,
        tokens=None,
        goodput=None,
        repeats=None,
        labels=(),
        errors=errors,
        finish_reasons={},
        metrics={},
        completed_span=CompletedSpan(0.0, math.inf, seconds),
    )


def _warmup_requests(facts: WaveFacts) -> tuple[Ledger, dict[str, Any], tuple[ErrorRow, ...]]:
    """The warm-up's ledger, times and errors; of requests that were counted, when an error came first is not known."""
    if facts.counts is not None:
        counts = facts.counts.warmup
        over = {name: counts.total(name) for name in ("ok", "failed", "abandoned")}
        ledger = Ledger(scheduled=counts.total("sent"), sent=counts.total("sent"), **over)
        return ledger, Counted(counts, facts.records.between(0, 0), facts.window).times, ()
    times = TimesGathered(Streams.of(facts.warmup), open_loop=facts.open_loop)
    outcomes, errors = _Outcomes(), ErrorsGathered()
    gather(facts.warmup, times, outcomes, errors)
    return outcomes.ledger, times.distributions(), errors.rows({})


def _stage(found: StageFacts, recovery: Recovery | None) -> StageRow:
    stage = found.stage
    return StageRow(
        name=found.name,
        start_s=found.start_ns / NS,
        end_s=found.end_ns / NS,
        from_rps=float(stage.from_rps),
        to_rps=float(stage.to_rps),
        in_flight_end=found.in_flight_end,
        summary=_with_sessions(found.facts, numbers(found.facts)),
        recovery=recovery,
    )
