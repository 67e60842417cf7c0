"""The object of ``proof.json``: whether a plan holds, as programs read it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.verdict.client.answers import answer_warnings
from inference_benchmarker.verdict.client.evidence import Evidence
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import length_text, percent_text, pluralize
from server_capacity.experiments.proof.evidence import WRONGLY
from server_capacity.planning.remarks import instances_text
from server_capacity.planning.totals import load_text
from server_capacity.results.types.proof import ProofResult, Times
from server_capacity.results.types.result_status import inherited, left_behind

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.proof.judging import Proven
    from server_capacity.experiments.proof.length import Length
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.results.types.bounds import Endpoint
    from server_capacity.results.types.proof import Outcome, ProvenLimit


def content(
    question: Question, planned: Planned, length: Length, proven: Proven, *, ended_early: str | None = None
) -> ProofResult:
    """The proof. Rates in requests/s, times in seconds. ``ended_early``: why the wave was not sent to its end."""
    confirmed = proven.confirmed
    wave, aim = confirmed.wave, planned.aim
    confirmation = confirmed.to_result(question)
    outcome = _outcome(proven, length, ended_early)
    return concluded(
        ProofResult(
            schema_version=SCHEMA_VERSION,
            created=wave.window.start,
            outcome=outcome,
            exit_code=_exit_code(outcome, by_client=bool(confirmed.spoilt) and not confirmed.by_server),
            reason=confirmed.spoilt or (length.too_short if outcome == "cannot_tell" else ""),
            plan=str(planned.file),
            plan_exit_code=planned.exit_code,
            warnings=list(planned.warnings),
            differences=list(planned.differences),
            plan_limits=list(planned.limits),
            name=planned.name,
            endpoint=question.endpoint,
            instance_type=planned.instance_type,
            instances=aim.instances,
            target_rps=aim.target_rps,
            length=length.to_result(),
            sent=wave.ledger.sent,
            sent_s=_sent_s(wave, length),
            ended_early=ended_early,
            backlog=proven.backlog,
            limits=proven.limits(question, planned),
            latency=_times(proven),
            server_metrics=confirmation.server_metrics,
            directory=confirmation.directory,
            hidden=list(answer_warnings([Evidence(wave, wave.summary)])) or None,
        )
    )


def concluded(found: ProofResult) -> ProofResult:
    """The proof with the exit code and the first line that follow from all that it tells by now."""
    found = replace(found, exit_code=inherited(found))
    return replace(found, headline=headline(found))


def _outcome(proven: Proven, length: Length, ended_early: str | None) -> Outcome:
    """The outcome; a wave that was too short to tell, or was not sent to its end, never holds."""
    if proven.confirmed.wave.interrupted:
        return "interrupted"
    return "cannot_tell" if proven.judgement == "holds" and (ended_early or length.too_short) else proven.judgement


def _sent_s(wave: Wave, length: Length) -> float:
    window = wave.window
    ended_ns = window.planned_ns if window.stopped_at_ns is None else window.stopped_at_ns
    return length.seconds if ended_ns is None else max(ended_ns / NS, 0.0)  # one that ended in its warm-up sent none


def _exit_code(outcome: str, *, by_client: bool) -> int:
    if outcome == "interrupted":
        return INTERRUPTED
    if by_client:
        return INVALID
    return OK if outcome == "holds" else MISSED


def _times(proven: Proven) -> Times | None:
    times = proven.confirmed.stage.times
    return None if times is None else Times(times.percentile(50), times.percentile(99))


def headline(data: ProofResult) -> str:
    """The answer in one line, with what its plan's search had otherwise or leaves open, and what was left behind."""
    lines = list(data.warnings)
    if not lines and data.plan_exit_code:
        lines = [f"it has exit code {data.plan_exit_code}"]
    open_ones = [f"Its plan: {'; '.join(lines)}."] if lines else []
    left = [f"{each[:1].upper()}{each[1:]}." for each in left_behind(data)]
    other = [*_other_limits(data), *data.differences]
    differs = [f"Not as in its plan's search: {'; '.join(other)}."] if other else []
    hidden = [f"{each[:1].upper()}{each[1:]}." for each in data.hidden or []]
    return " ".join([_answer(data), *hidden, *differs, *open_ones, *left])


def _other_limits(data: ProofResult) -> list[str]:
    """A clause on limits that are not the plan's."""
    ours, planned = [row.expression for row in data.limits], data.plan_limits
    if planned is None or set(ours) == set(planned):
        return []
    return [f"the limits {', '.join(ours)} in place of {', '.join(planned) or 'none'}"]


def _answer(data: ProofResult) -> str:
    """The answer itself.

    ``Passed: 3 instances of ml.m5.large served 200/s for 45 s within every limit.`` Where nobody knows how many
    instances there were, the endpoint is named in their place. Where it passed, and what it is built on or left behind
    makes its exit code graver, that stands first: ``Passed, but exit code 3: ...``.
    """
    kind = f" of {data.instance_type}" if data.instance_type else ""
    fleet, load, beside = f"{instances_text(data.instances)}{kind}", load_text(data.target_rps), ""
    if instances_there(data.endpoint) is None:
        beside = f"; planned: {fleet}; the actual number is not known"
        fleet = endpoint_text(data.endpoint)
    if data.outcome == "interrupted":
        return f"Interrupted after {length_text(data.sent_s)} of {load} on {fleet}: nothing is proved."
    if data.outcome == "holds":
        seconds = length_text(data.length.seconds)
        given = " given" if _other_limits(data) else ""
        but = "" if data.exit_code == OK else f", but exit code {data.exit_code}"
        return f"Passed{but}: {fleet} served {load} for {seconds} within every limit{given}{beside}."
    why = _reason(data) + (f" (ended after {length_text(data.sent_s)})" if data.ended_early else "")
    if data.outcome == "fails":
        return f"Failed: {fleet} did not serve {load} within the limits: {why}{beside}."
    return f"Inconclusive for {load} on {fleet}: {why}{beside}."


def instances_there(endpoint: Endpoint | None) -> int | None:
    """The instances of the endpoint that was proven; None where nobody knows."""
    return None if endpoint is None else endpoint.instances


def endpoint_text(endpoint: Endpoint | None) -> str:
    """The endpoint's name; ``the endpoint`` where it has none."""
    return (endpoint and endpoint.name) or "the endpoint"


def _reason(data: ProofResult) -> str:
    if data.reason:
        return data.reason
    if data.backlog:
        return (
            f"requests arrived faster than they were answered, and {pluralize(data.backlog, 'was', 'were')} left "
            "at the end"
        )
    row = next((row for row in data.limits if row.verdict == data.outcome), None)
    if row is None:
        return str(data.ended_early)
    if row.reason:
        return f"{row.expression}: {row.reason}"
    if row.share_over is None:
        return f"{row.expression} was {row.text}" if row.text else f"{row.expression} was not measured"
    return _over(row, fails=data.outcome == "fails")


def _over(row: ProvenLimit, *, fails: bool) -> str:
    """The share over a limit, and what bursts alone have to say about it; an interval may say a little more."""
    share, allowed = percent_text(row.share_over or 0.0), percent_text(row.allowed or 0.0)
    over = f"{share} of requests are over {row.expression} ({allowed} may be)"
    if fails:
        return over
    if row.interval and row.interval.low > (row.allowed or 0.0):
        return f"{over}, which bursts explain rarely, but in more than {percent_text(WRONGLY)} of cases"
    if (row.share_over or 0.0) <= (row.allowed or 0.0):
        return f"{over}, which does not rule out that an instance is missing"
    return f"{over}, which bursts can explain"
