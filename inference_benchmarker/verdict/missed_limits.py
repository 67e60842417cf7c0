"""The limits of the user that a wave missed, each with its value and one thing to do. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.advice import or_scale, search_waves
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.limits_met import may_be_longer, slo_met, unclear_within
from inference_benchmarker.words.wording import duration_text, number_text, percent_text, pluralize, precision_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.summary.summary import Summary


def threshold_findings(facts: WaveFacts, summary: Summary, side: str | None) -> Iterator[Finding]:
    """The success threshold and the limits that were missed, and a wave that sent nothing.

    ``side``: the one that was the limit, which decides the advice.
    """
    target = facts.plan.success_threshold
    success = summary.success_rate
    if facts.ledger.sent == 0:
        yield Finding(
            "nothing_sent",
            "invalid",
            "0 requests sent",
            "at least 1",
            "The wave ended before its first arrival.",
        )
    elif success is not None and (success < target or success == 0):
        yield Finding(
            "success_below_threshold",
            "missed",
            f"success rate {percent_text(success, target)}",
            percent_text(target),
            _error_advice(summary),
        )
    for slo in facts.plan.slos:
        part = summary.part(slo)
        if part is None:
            advice = "The wave ended before the stage began."
            if slo.turns is not None:
                advice = f"No such turn was sent: {_no_session(facts)}."
            yield Finding("slo_missed", "missed", slo_value(slo, None, "", part), slo.expression, advice)
        elif not slo_met(slo, part):
            measured = part.measured(slo.metric, slo.stat)
            text = slo_value(slo, measured, "≥" if may_be_longer(slo, part) else "", part)
            advice = _slo_advice(facts, slo, measured, part, side)
            if share := unclear_within(slo, part):
                text += f", within {precision_text(share)} of the limit, too close to decide"
                if facts.counts is not None:
                    advice = "The records of all requests decide it: send the wave with --records all."
            yield Finding("slo_missed", "missed", text, slo.expression, advice)


def _error_advice(summary: Summary) -> str:
    """Names whatever ended more requests."""
    ledger = summary.ledger
    if summary.errors and ledger.failed >= ledger.abandoned:
        first = summary.errors[0]
        return f"Most frequent error: {first.key} ({first.count:,}); summary.json has the first messages of each."
    abandoned = pluralize(ledger.abandoned, "request was", "requests were")
    return f"{abandoned} abandoned, in flight when the drain ended: see --drain-timeout."


def slo_value(slo: Slo, measured: float | None, mark: str, part: Summary | None) -> str:
    """The statistic that a limit is on, with its value in the wave or stage; ``mark`` stands before the value."""
    name = slo.stat if slo.metric in ("default", slo.stat) else f"{slo.metric}.{slo.stat}"
    name = "session.success" if slo.metric == "session_success" else name
    name = name if slo.turns is None else f"{slo.turns.text}.{name}"
    if measured is None or part is None:
        return f"{name} not measured"
    if slo.metric == "default":
        of = "" if slo.turns is None else f"{slo.turns.text} "
        name = f"{of}{'latency' if part.response_time is None else 'response time'} {slo.stat}"
    return f"{name} {mark}{value_text(slo, measured)}"


def value_text(slo: Slo, measured: float | None) -> str:
    """A value of what a limit is on, in its unit."""
    if measured is None:
        return "not measured"
    if slo.is_on_user_metric:
        return number_text(measured, slo.limit)
    is_share = slo.metric in ("success", "rate", "goodput") or slo.stat == "success"
    return percent_text(measured, slo.limit) if is_share else duration_text(measured, slo.limit)


def _for_errors(slo: Slo, measured: float | None, summary: Summary) -> bool:
    """Tells whether a limit was missed because requests did not succeed: then the rate is not what to change.

    Of what a share lacks, half or more must be requests that failed or were abandoned.
    """
    ledger = summary.ledger
    if not ledger.sent or ledger.ok == ledger.sent:
        return False
    if slo.metric in ("rate", "goodput") and measured is not None:
        return (ledger.failed + ledger.abandoned) / ledger.sent >= (1 - measured) / 2
    return slo.stat == "success" or not ledger.ok


def _slo_advice(facts: WaveFacts, slo: Slo, measured: float | None, summary: Summary, side: str | None) -> str:
    if slo.stage and not summary.ledger.scheduled:
        return f"No arrival was due in stage {slo.stage} before the wave ended: there is nothing to measure."
    if _for_errors(slo, measured, summary):
        return _error_advice(summary)
    if slo.is_on_user_metric:
        return _user_metric_advice(slo, measured)
    if measured is None:
        return _unmeasured_advice(facts, slo)
    if (least := least_of_an_idle_endpoint(facts, slo, summary)) is not None:
        return (
            f"Even the fastest request took {duration_text(least, slo.limit)}, so a lower rate does not help: make "
            "each request faster, or raise the limit."
        )
    return f"To find the rate that meets this limit, send {search_waves(facts.plan.load)}{or_scale(side)}."


def _unmeasured_advice(facts: WaveFacts, slo: Slo) -> str:
    if slo.metric == "session":
        return f"No session was completed: {_no_session(facts)}."
    return "No request of this wave has this metric (tokens need an invoke that yields them)."


def _no_session(facts: WaveFacts) -> str:
    """The reason why no session came so far as a limit asks."""
    if facts.has_sessions:
        return (
            "each session was over before, as one ends with a turn that fails, with the wave, or where its code ends it"
        )
    return "arrivals are sessions, and requests their turns, only if the file has a session_factory"


def least_of_an_idle_endpoint(facts: WaveFacts, slo: Slo, summary: Summary) -> float | None:
    """The least of a time, where it alone is over the limit, and the endpoint was idle when the wave began."""
    found = summary.distribution(slo.metric)
    from_idle = facts.open_loop and not facts.plan.warmup_ns and not slo.stage
    if found is None or slo.op not in ("<", "<=") or not from_idle or slo.met(found.statistic("min")):
        return None
    return found.statistic("min")


def _user_metric_advice(slo: Slo, measured: float | None) -> str:
    if measured is None:
        name = slo.metric.removeprefix("metric.")
        return f'No successful request reported it: let invoke return or yield Response(metrics={{"{name}": ...}}).'
    return f"Each request's value is in requests.parquet, column {slo.metric}."
