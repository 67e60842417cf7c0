"""The summary of a wave from its facts. Pure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.facts.stages import StageFacts, stages_of
from inference_benchmarker.facts.turns import of_turns
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.summary.by_name import (
    ErrorRow,
    ErrorsGathered,
    FinishReasonsGathered,
    LabelsGathered,
    LabelsSeen,
)
from inference_benchmarker.summary.completed_rate import CompletedGathered, CompletedSpan, FirstAbandoned
from inference_benchmarker.summary.counted import Counted
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.goodput import GoodGathered
from inference_benchmarker.summary.hosts import host_rows
from inference_benchmarker.summary.rate_window import rate_window
from inference_benchmarker.summary.rates import LATE_NS, BegunBefore, LateGathered, Rates, rates_of
from inference_benchmarker.summary.recovery import Recovery, recoveries
from inference_benchmarker.summary.repeats import RepeatsGathered
from inference_benchmarker.summary.samples import Streams, StreamsSeen, TimesGathered
from inference_benchmarker.summary.sessions import sessions_of
from inference_benchmarker.summary.summary import StageRow, Summary
from inference_benchmarker.summary.tokens import TokensGathered, TokenSums
from inference_benchmarker.summary.user_metrics import MetricsGathered
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Mask, Records
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts


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
        return _summary_of_counts(facts, facts.counts)
    records, window, plan = facts.records, rate_window(facts), facts.plan
    streams, labelled = _seen(records)
    times, tokens, errors = TimesGathered(streams, open_loop=facts.open_loop), TokensGathered(), ErrorsGathered()
    labels = LabelsGathered(open_loop=facts.open_loop) if labelled else None
    good = GoodGathered(plan.goodput) if plan.goodput and facts.ledger.turns else None
    repeats = RepeatsGathered() if plan.retries.retries else None
    reasons, late, cut = FinishReasonsGathered(), LateGathered(window), FirstAbandoned()
    metrics = MetricsGathered(records.metrics) if records.metrics else None
    gather(records, times, tokens, errors, labels, good, repeats, reasons, late, cut, metrics)
    before, earlier = BegunBefore(window), facts.begun_before
    gather(earlier, before, cut)

    span, good_span = (
        CompletedSpan.of(middle_s, len(records) + before.sent, cut.done_ns, window)
        for middle_s in (times.middle_latency_s, None if good is None else good.middle_latency_s)
    )
    completed, completed_tokens = CompletedGathered(span, ("outcome",), _ok), TokenSums(span)
    completed_good = None if good is None else good.completed(good_span)
    for several in (records, earlier):
        gather(several, completed, completed_tokens if tokens.any else None, completed_good)
    if completed.span is not span and tokens.any:
        completed_tokens = TokenSums(completed.span)
        for several in (records, earlier):
            gather(several, completed_tokens)
    return Summary(
        duration_s=window.duration_ns / NS,
        planned_s=None if facts.window.planned_ns is None else facts.window.planned_ns / NS,
        ledger=facts.ledger,
        worker_ledgers=facts.ledgers,
        rates=rates_of(facts, late.number, completed.rate, before=before),
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


def _summary_of_counts(facts: WaveFacts, counts: Counts) -> Summary:
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
    """The warm-up's own numbers: it has no plan to be compared with, so its ledger counts what was sent.

    One that was stopped lasted until then.
    """
    stopped_at = facts.window.stopped_at_ns
    ledger, times, errors = _warmup_requests(facts)
    seconds = (facts.plan.warmup_ns + min(0, 0 if stopped_at is None else stopped_at)) / NS
    before = BegunBefore(rate_window(facts))
    gather(facts.begun_before, before)
    later = _sent_after(facts) if facts.has_sessions else 0
    rate = (ledger.sent - later) / seconds if seconds else 0.0
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
        sent_in_window=before.sent if facts.has_sessions else None,
        answered_in_window=before.answered if facts.has_sessions else None,
    )


def _sent_after(facts: WaveFacts) -> int:
    """Count the turns of the warm-up's sessions that were due after it."""
    return sum(int(np.count_nonzero(part.int("due") >= 0)) for part in facts.warmup.parts("due"))


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
