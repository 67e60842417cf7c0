"""Turns a summary into the content of ``summary.json``, for programs. Pure."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report.instances import instances_of
from inference_benchmarker.report.request_numbers import (
    AllCounts,
    Attempts,
    Counts,
    GoodputLimit,
    GoodRequests,
    Kept,
    SessionNumbers,
    Times,
    TokenCounts,
    Turn,
    TurnTimes,
    WaveRates,
    WaveWindow,
)
from inference_benchmarker.report.stages import is_met, limits_of, measured_of
from inference_benchmarker.report.summary_types import (
    Client,
    Errors,
    HostPart,
    Labelled,
    Remark,
    Stage,
    StageLimit,
    SummaryResult,
    Warmup,
)
from inference_benchmarker.summary.counted import missing_numbers
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts, Window
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.by_name import LabelRow
    from inference_benchmarker.summary.goodput import Goodput
    from inference_benchmarker.summary.hosts import HostRow
    from inference_benchmarker.summary.repeats import Repeats
    from inference_benchmarker.summary.sessions import Sessions, TurnRow
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import StageRow, Summary
    from inference_benchmarker.summary.tokens import Tokens
    from inference_benchmarker.verdict.verdict import Verdict


def summary_of(facts: WaveFacts, summary: Summary, verdict: Verdict) -> SummaryResult:
    """The report's numbers, and the facts a run is loaded back from."""
    rates = {each.name: getattr(summary.rates, each.name) for each in fields(summary.rates)}
    counts = partial(Ledger.to_json, sessions=facts.has_sessions)
    return SummaryResult(
        schema_version=SCHEMA_VERSION,
        name=facts.plan.name,
        verdict=verdict.word,
        exit_code=verdict.exit_code,
        judged_by=verdict.judged_by,
        interrupted=verdict.interrupted,
        limited_by=verdict.limited_by,
        findings=list(verdict.findings),
        records=Kept(facts.plan.records, len(facts.warmup) + len(facts.records), list(missing_numbers(facts))),
        window=_window(facts.window),
        environment=facts.environment,
        ledger=AllCounts(**counts(summary.ledger), workers=[Counts(**counts(each)) for each in summary.worker_ledgers]),
        lost_workers=list(facts.lost_workers),
        primary_lost=facts.primary_lost,
        disk_error=facts.disk_error,
        loopback_down_s=facts.loopback_down_s,
        aborted=facts.aborted,
        left_behind=list(facts.left_behind),
        foreign_connections=facts.foreign_connections,
        success_rate=summary.success_rate,
        rates=WaveRates(**{**rates, "precision": summary.rates.precision or None}),
        **_metrics(summary),
        metrics={name: _exactly(each) for name, each in summary.metrics.items()},
        tokens=None if summary.tokens is None else _tokens(summary.tokens),
        goodput=_goodput(summary.goodput),
        sessions=_sessions(summary),
        repeats=_attempts(summary.repeats),
        stages=[_stage(row, facts.plan.slos) for row in summary.stages] or None,
        labels=[_label(row) for row in summary.labels],
        errors=[Errors(row.key, row.count, row.first_s, list(row.texts)) for row in summary.errors],
        finish_reasons=summary.finish_reasons,
        warmup=None if summary.warmup is None else _warmup(summary.warmup),
        server_metrics=None if facts.server_metrics is None else list(facts.server_metrics),
        server_logs=None if facts.server_logs is None else list(facts.server_logs),
        instances=instances_of(facts, verdict),
        diagnosis=[
            Remark(each.code, each.measured, each.advice, list(each.lines) or None)
            for each in diagnose(facts, summary, verdict.limited_by)
        ],
        hosts=[host_part(row) for row in summary.hosts] or None,
        calibration=facts.calibration,
        client=Client(list(facts.caps), list(facts.workers), facts.host, list(facts.processes)),
        prompts=facts.prompts,
    )


def _window(of: Window) -> WaveWindow:
    return WaveWindow(
        of.start,
        of.end,
        of.start_unix_ns,
        of.t0_monotonic_ns,
        None if of.planned_ns is None else of.planned_ns / NS,
        of.duration_ns / NS,
        None if of.stopped_at_ns is None else of.stopped_at_ns / NS,
    )


def times(distribution: Distribution | None) -> Times | None:
    """A distribution as it is stored."""
    return None if distribution is None else _exactly(distribution)


def _exactly(of: Distribution) -> Times:
    return Times(
        count=of.count,
        mean=of.mean,
        stdev=of.stdev,
        min=of.minimum,
        p50=of.percentile(50),
        p90=of.percentile(90),
        p95=of.percentile(95),
        p99=of.percentile(99),
        p99_9=of.percentile(99.9),
        max=of.maximum,
        lower_bound_from=of.lower_bound_from,
        precision=of.precision or None,
    )


def _metrics(summary: Summary) -> dict[str, Any]:
    """The arguments for every time that a wave has."""
    names = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot")
    return {name: times(getattr(summary, name)) for name in names}


def _tokens(of: Tokens) -> TokenCounts:
    return TokenCounts(
        of.tokens_in,
        of.tokens_out,
        of.tokens_in_per_s,
        of.tokens_out_per_s,
        of.counted,
        times(of.tokens_in_per_request),
        times(of.tokens_out_per_request),
        times(of.tokens_out_per_s_per_request),
    )


def _goodput(of: Goodput | None) -> GoodRequests | None:
    if of is None:
        return None
    return GoodRequests(of.rate, of.share, [GoodputLimit(each.limit.expression, each.share) for each in of.limits])


def _sessions(summary: Summary) -> SessionNumbers | None:
    """The sessions with their turns, and all times of the first turns, the later ones, and those that a limit names."""
    if summary.sessions is None:
        return None
    parts = {turns.text: TurnTimes(part.ledger.sent, **_metrics(part)) for turns, part in summary.of_turns.items()}
    return replace(_session_numbers(summary.sessions), of_turns=parts)


def _session_numbers(of: Sessions) -> SessionNumbers:
    return SessionNumbers(
        started=of.started,
        completed=of.completed,
        failed=of.failed,
        raised=of.raised,
        open=of.open,
        success=of.success,
        good=of.good,
        rates=of.rates,
        duration=times(of.duration),
        turns_a_session=times(of.turns),
        by_turn=[_turn(row) for row in of.by_turn],
        cached_share=of.cached_share,
        recorded_reuse=of.recorded_reuse,
        reusable_share=of.reusable_share,
    )


def _turn(row: TurnRow) -> Turn:
    counts = (row.turn, row.and_later, row.sent, row.ok, row.failed)
    measured = (times(row.latency), times(row.ttft), row.reusable_share)
    return Turn(*counts, row.context_tokens, row.cached_share, *measured)


def _attempts(of: Repeats | None) -> Attempts | None:
    if of is None:
        return None
    return Attempts(
        of.arrivals,
        of.requests,
        of.repeated,
        of.attempts,
        list(of.by_attempts),
        of.success_by_user,
        times(of.user_time),
    )


def _stage(row: StageRow, slos: Sequence[Slo]) -> Stage:
    """A stage; ``slos`` are its own limits and the wave's, each compared with its requests alone."""
    part, limits = row.summary, limits_of(row, slos)
    met = [is_met(slo, row) for slo in limits]
    return Stage(
        name=row.name,
        start_s=row.start_s,
        end_s=row.end_s,
        from_rps=row.from_rps,
        to_rps=row.to_rps,
        planned=part.ledger.scheduled,
        sent=part.ledger.sent,
        ok=part.ledger.ok,
        failed=part.ledger.failed,
        abandoned=part.ledger.abandoned,
        success_rate=part.success_rate,
        completed_rate=part.rates.completed,
        latency=times(part.latency),
        response_time=times(part.response_time),
        in_flight_end=row.in_flight_end,
        sessions=None if part.sessions is None else _session_numbers(part.sessions),
        repeats=_attempts(part.repeats),
        recovery=row.recovery,
        goodput=_goodput(part.goodput),
        slos=[StageLimit(slo.expression, measured_of(slo, row), kept) for slo, kept in zip(limits, met, strict=True)],
        slos_met_share=sum(met) / len(met) if met else None,
    )


def _label(row: LabelRow) -> Labelled:
    of_times = (times(each) for each in (row.latency, row.response_time, row.ttft))
    return Labelled(row.label, row.sent, row.ok, row.failed, *of_times)


def _warmup(of: Summary) -> Warmup:
    ledger = of.ledger
    counts = (ledger.sent, ledger.ok, ledger.failed, ledger.abandoned)
    warmup = Warmup(of.planned_s, *counts, of.rates.sent, **_metrics(of))
    return replace(warmup, sent_in_window=of.sent_in_window, answered_in_window=of.answered_in_window)


def host_part(row: HostRow) -> HostPart:
    """The host's facts, and what was computed of its requests."""
    host, use = row.host, row.host.use
    return HostPart(
        host.name,
        list(host.workers),
        host.versions,
        use,
        host.clock,
        host.lost,
        sent=row.ledger.sent,
        lag=times(row.lag),
        latency=times(row.latency),
        cpu=None if use is None else use.cpu_share_mean,
        steal=None if use is None else use.steal_share_mean,
        node=host.node,
        zone=host.zone,
        instance_type=host.instance_type,
    )
