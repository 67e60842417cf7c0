"""Answers of capacity searches, as they stand in capacity.json, for those that show them."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.results.types.capacity import CapacityResult


def stretch(number: int, rate: float, **more: Any) -> dict[str, Any]:
    """A stretch of two seconds; ``more`` replaces."""
    return {
        "number": number,
        "purpose": "grow",
        "rate": rate,
        "start_s": 2.0 * number,
        "end_s": 2.0 * number + 2,
        "sent": round(2 * rate),
        "answered": round(2 * rate),
        "failed": 0,
        "share_over": [0.001, 0.0],
        "p50": 0.02,
        "p99": 0.05,
        "in_flight": 3,
        "void": "",
        "direction": None,
        **more,
    }


def found(**more: Any) -> dict[str, Any]:
    """174/s with everything that there may be; ``more`` replaces."""
    interval = {"low": 168.2, "high": 179.9}
    return {
        "outcome": "found",
        "exit_code": 0,
        "in": "rps",
        "rate": 174.13,
        "interval": interval,
        "limit": "p99<100ms",
        "at_least": None,
        "reason": "",
        "arrivals": "poisson",
        "cache": "fresh",
        "limits": [
            {"expression": "p99<100ms", "at_low": 0.0613, "unit": "s", "rate": 174.13, "interval": interval},
            {"expression": "success>=0.95", "at_low": 1.0, "unit": "share", "rate": None, "kept_everywhere": True},
            {"expression": "server.CPUUtilization<70%", "at_low": 61.0, "unit": "%", "rate": 190.0, "interval": None},
        ],
        "windows": {"seconds": 60, "windows": 3, "kept": 3, "share": 1.0},
        "confirmation": [
            {
                "rate": 168.2,
                "seconds": 60.0,
                "verdict": "holds",
                "limits": [{"expression": "p99<100ms", "text": "71.2 ms"}, {"expression": "success>=0.95"}],
            }
        ],
        "islands": [{"low": 200.0, "high": 240.0}],
        "memory": {
            "differ": True,
            "below": {"rate": 160.0, "interval": {"low": 155.0, "high": 165.0}},
            "above": {"rate": 201.0, "interval": {"low": 195.0, "high": 207.0}},
        },
        "payloads": {"count": 10, "sent_each": 310.5, "repeated": True},
        "suspended": None,
        "twin": {
            "fits": True,
            "rate": 173.6,
            "interval": {"low": 172.1, "high": 175.0},
            "servers": 4,
            "service": {"kind": "fixed", "mean": 0.0201, "cv": 0.004},
            "overhead_s": 0.0007,
            "confirmed_at": 168.2,
            "what_if": {
                "even_arrivals": 199.0,
                "service_20_shorter": 221.0,
                "instances": [{"count": 5, "routing": "least_outstanding", "rate": 980.0}],
            },
        },
        "where_time_went": None,
        "resources": {
            "next": {"metric": "CPUUtilization", "rate": 190.0},
            "all": [
                {"metric": "CPUUtilization", "idle": 1.0, "at_low": 61.0, "limit": 70.0, "rate": 190.0, "unit": "%"}
            ],
        },
        "tokens": {
            "tokens_per_s": 3400.0,
            "requests_per_s": 170.3,
            "by_label": [{"name": "hot", "rate": 120.0, "requests": 5000, "p99": 0.08, "share_over": [0.002, 0.0]}],
            "by_input_length": [],
        },
        "stretches": [
            stretch(number, rate) for number, rate in enumerate((50, 60, 70, 80, max(90, more.get("rate") or 174.13)))
        ],
        **more,
    }


def searched(**more: Any) -> CapacityResult:
    """The same as it is read."""
    return as_read(found(**more))


def as_read(data: dict[str, Any]) -> CapacityResult:
    """The result of a search, from its object."""
    return decoded({"schema_version": SCHEMA_VERSION, **data}, CapacityResult)
