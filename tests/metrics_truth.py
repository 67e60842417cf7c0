"""What the embedded endpoint's own log says where a row of server metrics claims something.

Intervals are of the wall clock, in unix seconds; the log is of the monotonic clock of the same machine.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.fake_cloudwatch import cloudwatch_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Log = Mapping[str, Sequence[Any]]

NS = 1_000_000_000
MINUTE = 60


def asked(period: int, lag: float) -> list[dict[str, Any]]:
    """The configuration of the metrics that ``Truth`` knows."""
    metrics = {"ModelLatency": ["p99"], "Invocations": ["Sum"]}
    return [
        cloudwatch_block("/aws/sagemaker/Endpoints", {"CPUUtilization": ["Average"]}, period=period, lag=lag),
        cloudwatch_block("AWS/SageMaker", metrics, period=period, lag=lag),
    ]


@dataclass(frozen=True, slots=True)
class Truth:
    """What was reported, and beside it what the log has: percent of a core, µs, requests; ``buckets``: of CPU."""

    cpu: float
    true_cpu: float
    buckets: int
    p99_us: float
    true_p99_us: float
    invocations: float
    arrivals: int

    @classmethod
    def of(cls, rows: Iterable[dict[str, Any]], log: Log, period: int) -> Truth:
        """Every row over the very seconds it names; a percentile over the whole minutes it is asked in."""
        found = {row["name"]: row for row in rows}
        cpu, latency = found["CPUUtilization"], found["ModelLatency"]
        return cls(
            cpu=cpu["statistics"]["Average"],
            true_cpu=100 * busy_servers(log, cpu["start"], cpu["end"]),
            buckets=round((cpu["end"] - cpu["start"]) / period),
            p99_us=latency["statistics"]["p99"],
            true_p99_us=true_p99_us(latency, log),
            invocations=found["Invocations"]["statistics"]["Sum"],
            arrivals=len(log["id"]),
        )


def true_p99_us(row: Mapping[str, Any], log: Log) -> float:
    """The percentile over the whole minutes that a row of ModelLatency is asked in.

    Of the neighbouring ranks the one that comes closest: a request at a minute's edge may be counted on either side.
    """
    begin = row["start"] // MINUTE * MINUTE
    end = begin + math.ceil((row["end"] - begin) / MINUTE) * MINUTE
    times = sorted(model_times_us(log, begin, end))
    rank = math.ceil(0.99 * len(times))
    return min(times[rank - 2 : rank + 1], key=lambda time_us: abs(time_us - row["statistics"]["p99"]))


def busy_servers(log: Log, begin: float, end: float) -> float:
    """How many servers were in service on average."""
    window = _monotonic_ns(begin), _monotonic_ns(end)
    served = zip(log["start_ns"], log["finish_ns"], strict=True)
    inside = (min(finish, window[1]) - max(begun, window[0]) for begun, finish in served)
    return float(sum(max(0, time_ns) for time_ns in inside) / (window[1] - window[0]))


def model_times_us(log: Log, begin: float, end: float) -> list[float]:
    """Waiting for a server and in service, of the requests whose answer was complete in the interval."""
    window = _monotonic_ns(begin), _monotonic_ns(end)
    rows = zip(log["queued_ns"], log["finish_ns"], log["answered_ns"], strict=True)
    return [(finish - queued) / 1e3 for queued, finish, answered in rows if window[0] <= answered < window[1]]


def _monotonic_ns(moment: float) -> float:
    return moment * NS - (time.time_ns() - time.monotonic_ns())
