"""Limits on a wave, as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from inference_benchmarker.errors import BenchmarkError

SLO_PATTERN = re.compile(
    r"^\s*(?:(?P<metric>latency|response_time|ttft|itl|tpot|lag)\.)?"
    r"(?P<stat>mean|min|max|median|p\d{1,2}(?:\.\d{1,3})?|success|rate)\s*"
    r"(?P<op><=|>=|<|>)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s|%)?\s*$"
)
_UNITS_PER_SECOND = {"us": 1_000_000, "ms": 1_000, "s": 1}


@dataclass(frozen=True, slots=True)
class Slo:
    """One limit on the wave, e.g. ``latency.p99 <= 0.5`` (seconds) or ``success >= 0.99`` (a share)."""

    expression: str
    metric: str
    stat: str
    op: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Slo:
        """Read ``p99<200ms``, ``ttft.p90<1s``, ``success>=0.99``, ``rate>=99%``.

        A bare percentile is of response time, in the closed loop of latency.
        """
        match = SLO_PATTERN.match(text) if text.isascii() else None
        if match is None or (problem := _slo_problem(match)):
            reason = "" if match is None else f" ({problem})"
            raise BenchmarkError(
                f"--slo {text!r} is not a limit{reason}.",
                "Write e.g. p99<200ms, latency.p95<=0.5s, ttft.p90<1s, success>=0.99, rate>=0.99.",
            )
        stat, unit = match["stat"], match["unit"]
        value = Decimal(match["value"])  # float(0.999) is not float(99.9) / 100: a limit that is just met must be met
        if stat in ("success", "rate"):
            return cls(text.strip(), stat, stat, match["op"], float(value / 100 if unit == "%" else value))
        stat = "p50" if stat == "median" else stat
        limit = float(value / _UNITS_PER_SECOND[unit])
        return cls(text.strip(), match["metric"] or "default", stat, match["op"], limit)

    def met(self, measured: float | None) -> bool:
        """Whether a measured value keeps the limit; what was not measured does not."""
        if measured is None:
            return False
        comparisons = {
            "<": measured < self.limit,
            "<=": measured <= self.limit,
            ">": measured > self.limit,
            ">=": measured >= self.limit,
        }
        return comparisons[self.op]


def _slo_problem(match: re.Match[str]) -> str:
    share = match["stat"] in ("success", "rate")
    if share and match["metric"]:
        return f"{match['stat']} belongs to the whole wave, not to {match['metric']}"
    if share and match["unit"] not in (None, "%"):
        return f"{match['stat']} is a share between 0 and 1, or a percentage"
    if share and float(match["value"]) > (100 if match["unit"] == "%" else 1):
        return f"{match['stat']} is a share between 0 and 1, or a percentage"
    if not share and match["unit"] not in _UNITS_PER_SECOND:
        return "a time needs its unit: us, ms or s"
    if match["stat"][1].isdigit() and not float(match["stat"][1:]):
        return "percentiles start above 0"
    return ""
