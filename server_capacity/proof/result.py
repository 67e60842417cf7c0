"""The object of ``proof.json``: whether a plan holds, as programs read it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.units import NS
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wording import counted, length_text, percent_text
from server_capacity.plan.remarks import instances_text
from server_capacity.plan.totals import load_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server_capacity.capacity.question import Question
    from server_capacity.proof.judging import Proven
    from server_capacity.proof.length import Length
    from server_capacity.proof.planned import Planned

    Row = Mapping[str, Any]


def content(question: Question, planned: Planned, length: Length, proven: Proven, **more: Any) -> dict[str, Any]:
    """The object of proof.json. Rates in requests/s, times in seconds; ``more``: keys that others fill in."""
    confirmed = proven.confirmed
    wave, aim = confirmed.wave, planned.aim
    told = confirmed.to_json(question)
    outcome = "interrupted" if wave.interrupted else proven.judgement
    data = {
        "schema_version": SCHEMA_VERSION,
        "created": wave.window.to_json()["start"],
        "outcome": outcome,
        "exit_code": _exit_code(outcome, by_client=bool(confirmed.spoilt) and not confirmed.by_server),
        "reason": confirmed.spoilt,
        "plan": str(planned.file),
        "name": planned.name,
        "endpoint": question.endpoint,
        "instance_type": planned.instance_type,
        "instances": aim.instances,
        "target_rps": aim.target_rps,
        "length": length.to_json(),
        "sent": wave.ledger.sent,
        "sent_s": wave.window.stopped_at_ns / NS if wave.window.stopped_at_ns is not None else length.seconds,
        "backlog": proven.backlog,
        "limits": proven.limits_json(question, planned),
        "latency": _times(proven),
        "server_metrics": told["server_metrics"],
        "directory": told["directory"],
        **more,
    }
    return {**data, "headline": headline(data)}


def _exit_code(outcome: str, *, by_client: bool) -> int:
    if outcome == "interrupted":
        return INTERRUPTED
    if by_client:
        return INVALID
    return OK if outcome == "holds" else MISSED


def _times(proven: Proven) -> dict[str, float | None] | None:
    times = proven.confirmed.stage.times
    return None if times is None else {"p50": times.percentile(50), "p99": times.percentile(99)}


def headline(data: Row) -> str:
    """The answer in one line.

    ``Holds: 3 instances of ml.m5.large served 200/s for 45 s within every limit.`` Where nobody knows how many
    instances there were, the endpoint is named in their place.
    """
    kind = f" of {data['instance_type']}" if data["instance_type"] else ""
    fleet, load, beside = f"{instances_text(data['instances'])}{kind}", load_text(data["target_rps"]), ""
    if instances_there(data["endpoint"]) is None:
        beside = f"; planned: {fleet}, how many served is not known"
        fleet = endpoint_text(data["endpoint"])
    if data["outcome"] == "interrupted":
        return f"Interrupted after {length_text(data['sent_s'])} of {load} on {fleet}: nothing is proven."
    if data["outcome"] == "holds":
        seconds = length_text(data["length"]["seconds"])
        return f"Holds: {fleet} served {load} for {seconds} within every limit{beside}."
    why = _reason(data)
    if data["outcome"] == "fails":
        return f"Fails: {fleet} did not hold {load}: {why}{beside}."
    return f"Cannot tell about {load} on {fleet}: {why}{beside}."


def instances_there(endpoint: Row | None) -> int | None:
    """The instances of the endpoint that was proven; None where nobody knows."""
    found = (endpoint or {}).get("instances")
    return None if found is None else int(found)


def endpoint_text(endpoint: Row | None) -> str:
    """The endpoint's name; ``the endpoint`` where it has none."""
    return str((endpoint or {}).get("name") or "the endpoint")


def _reason(data: Row) -> str:
    if data["reason"]:
        return str(data["reason"])
    if data["backlog"]:
        return f"requests came faster than answers, and {counted(data['backlog'], 'was', 'were')} left in the end"
    row = next(row for row in data["limits"] if row["verdict"] == data["outcome"])
    if row.get("reason"):
        return f"{row['expression']}: {row['reason']}"
    if row["share_over"] is None:
        return f"{row['expression']} was {row['text']}" if row["text"] else f"{row['expression']} was not measured"
    over = f"{percent_text(row['share_over'])} over {row['expression']}"
    return f"{over}, where {percent_text(row['allowed'])} may be" + (
        "" if data["outcome"] == "fails" else ", which bursts alone can explain"
    )
