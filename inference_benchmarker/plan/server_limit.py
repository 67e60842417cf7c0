"""Limits on what a server's metrics show, as users write them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from inference_benchmarker.errors import BenchmarkError

_PREFIX = "server."
_LIMIT = re.compile(
    r"\s*server\.(?P<name>[^<>]+?)"
    r"(?:\.(?P<statistic>Average|Sum|Minimum|Maximum|SampleCount|Rate|Total|Last|Value|p\d{1,2}(?:\.\d{1,3})?))?"
    r"\s*(?P<op><=|>=|<|>)\s*(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>us|ms|s|%)?\s*"
)
_PER_SECOND = {"us": 1_000_000, "ms": 1_000, "s": 1}

Unit = Literal["share", "s", ""]


@dataclass(frozen=True, slots=True)
class ServerLimit:
    """One limit on a server metric, e.g. ``server.CPUUtilization<70%``: a ``share`` of 0.7 of what there is of it.

    ``statistic``: empty for the metric's first one, of CloudWatch Average. ``limit``: a share, seconds (``s``), or a
    number of whatever the metric counts.
    """

    expression: str
    name: str
    statistic: str
    op: str
    limit: float
    unit: Unit

    @classmethod
    def parse(cls, text: str) -> ServerLimit:
        """Read ``server.CPUUtilization<70%``, ``server.GPUUtilization.Maximum<=0.9``, ``server.queue_length<4``."""
        match = _LIMIT.fullmatch(text) if text.isascii() else None
        if match is None:
            raise BenchmarkError(
                f"--slo {text!r} is not a limit on a server metric.",
                "Write server.METRIC<VALUE, with a statistic where it is not the usual one: server.CPUUtilization<70%, "
                "server.CPUUtilization.Maximum<90%, server.ModelLatency.p99<200ms, server.queue_length<4.",
            )
        value, unit = Decimal(match["value"]), match["unit"]
        limit = value / 100 if unit == "%" else value / _PER_SECOND.get(unit, 1)
        kind: Unit = "share" if unit == "%" else "s" if unit else ""
        return cls(text.strip(), match["name"].strip(), match["statistic"] or "", match["op"], float(limit), kind)

    @property
    def is_upper(self) -> bool:
        """Tells whether values above the limit break it."""
        return self.op in ("<", "<=")

    def met(self, value: float, bound: float) -> bool:
        """Tells whether a value keeps the limit, both in the metric's own unit."""
        return {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[self.op]


def is_server_limit(text: str) -> bool:
    """Tells whether a limit, as it is written, is one on a server metric."""
    return text.strip().startswith(_PREFIX)
