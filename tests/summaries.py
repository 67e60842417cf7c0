"""Summaries and plans of which a test tells only what it is about; all else is the least that a wave has."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.report.summary_types import SummaryResult

_COUNTS = dict.fromkeys(("scheduled", "sent", "dropped", "lost", "ok", "failed", "abandoned"), 0)
_LEAST: dict[str, Any] = {
    "schema_version": 1,
    "verdict": "VALID",
    "exit_code": 0,
    "interrupted": False,
    "environment": {},
    "ledger": _COUNTS,
    "lost_workers": [],
    "primary_lost": False,
    "disk_error": None,
    "errors": [],
    "client": {},
}
_WINDOW = {
    "start": "2026-11-20T14:44:23.000Z", "end": "2026-11-20T14:44:24.000Z", "start_unix_ns": 0, "t0_monotonic_ns": 0,
    "planned_s": None, "duration_s": 1.0, "stopped_at_s": None,
}  # fmt: skip
_STATISTICS = ("mean", "min", "p50", "p90", "p95", "p99", "p99_9", "max")
_TIMES = ("latency", "response_time", "ttft", "itl", "lag")
_STAGE: dict[str, Any] = {
    **dict.fromkeys(("start_s", "end_s", "from_rps", "to_rps", "completed_rate"), 0.0),
    **dict.fromkeys(("planned", "sent", "ok", "failed", "abandoned", "in_flight_end"), 0),
    **dict.fromkeys(("success_rate", "latency", "response_time", "repeats", "recovery", "goodput", "slos_met_share")),
    "slos": [],
}
_REPEATS = {
    "arrivals": 0,
    "requests": 0,
    "repeated": 0,
    "attempts_per_arrival": 1.0,
    "by_attempts": [],
    "user_time": None,
}
_FINDING = dict.fromkeys(("measured", "limit", "advice"), "")
_LABEL = {"sent": 0, "ok": 0, "failed": 0, "response_time": None}
_PARTS: dict[str, dict[str, Any]] = {"window": _WINDOW, "ledger": _COUNTS, "repeats": _REPEATS}


def times_of(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """A distribution of which some statistics are given: the others are the first of them."""
    known = [value for name, value in (fields or {}).items() if value is not None and name in _STATISTICS]
    if fields is None or not known:
        return None
    return {**dict.fromkeys(_STATISTICS, known[0]), "count": 1, "stdev": None, "lower_bound_from": None, **fields}


def summary_with(**value: Any) -> SummaryResult:
    """The summary of a wave that is given in the keys of ``summary.json``."""
    for name in _TIMES:
        if name in value:
            value[name] = times_of(value[name])
    value["findings"] = [{**_FINDING, **each} for each in value.get("findings", ())]
    value["labels"] = [{**_LABEL, **each, "latency": times_of(each.get("latency"))} for each in value.get("labels", ())]
    value["errors"] = [{"first_s": 0.0, "texts": [], **each} for each in value.get("errors", ())]
    for name, least in _PARTS.items():
        if name in value:
            value[name] = {**least, **value[name]}
    if (rates := value.get("rates")) is not None:
        value["rates"] = {
            "scheduled": None,
            "target": None,
            **dict.fromkeys(("sent", "server_rps"), rates["completed"]),
            **rates,
        }
    if value.get("stages") is not None:
        value["stages"] = [{**_STAGE, **stage} for stage in value["stages"]]
    return decoded({**_LEAST, "window": _WINDOW, **value}, SummaryResult)


def plan_with(**value: Any) -> WavePlan:
    """The plan of a wave that is given in the keys of ``plan.json``."""
    load = value.pop("load", {"kind": "open", "rate": "1"})
    least = WavePlan(ClosedLoop(1) if load["kind"] == "closed" else OpenLoop(Decimal(1)), Bounds(Decimal(1))).to_json()
    return WavePlan.from_json({**least, **value, "load": {**least["load"], **load}})
