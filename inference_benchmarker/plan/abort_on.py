"""Conditions that end a wave early, as users write them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo

DEFAULT_S = 10
MOST_S = 60
"""The live feed keeps little more."""
_SPAN = re.compile(r"\s*(?P<number>[1-9]\d{0,4})\s*(?P<unit>ms|s|m)?\s*")
_JUDGED = ("default", "latency", "response_time", "ttft", "itl", "tpot", "lag", "success")
_HINT = (
    "Write e.g. success<50%@10s, p99>2s@10s, latency.p95>=1s, ttft.p90>3s@30s: the wave ends if it holds over the "
    f"last seconds: {DEFAULT_S}, or the number after @."
)


@dataclass(frozen=True, slots=True)
class AbortOn:
    """Ends the wave when ``condition`` is true over the last ``over_s`` seconds.

    It has the form of an ``--slo``, and describes what makes the rest of the wave useless: ``success<50%@10s``.
    """

    condition: Slo
    over_s: int = DEFAULT_S

    @classmethod
    def parse(cls, text: str) -> AbortOn:
        """Read ``success<50%@10s``, ``p99>2s``. ``Slo`` says what a bare percentile means."""
        condition, _, span = text.partition("@") if "@" in text else (text, "@", f"{DEFAULT_S}s")
        over_s, found = _seconds(span), _condition(condition)
        problem = found if isinstance(found, str) else ""
        if over_s is None:
            problem = f" (write whole seconds after @, from 1 to {MOST_S})"
        if over_s is None or isinstance(found, str):
            raise BenchmarkError(f"--abort-on {text!r} is not a condition{problem}.", _HINT)
        return cls(found, over_s)

    @property
    def text(self) -> str:
        """The text that ``parse`` reads, with its seconds."""
        return f"{self.condition.expression}@{self.over_s}s"


def _condition(text: str) -> Slo | str:
    """The condition, or in parentheses why it is none."""
    if text.count(":"):
        return " (it uses the last seconds, whatever their stage)"
    found = Slo.read(text)
    metric = found.metric if isinstance(found, Slo) else "default"
    if text.strip().startswith("metric."):
        metric = "a metric of your own"
    if metric not in _JUDGED:
        return f" ({metric} is known only when the wave is over; while it runs, use {', '.join(_JUDGED[1:])})"
    if isinstance(found, Slo) and found.op.startswith("<") != (metric == "success"):
        return " (a healthy wave meets it: use > for times, < for success)"
    return found


def _seconds(text: str) -> int | None:
    """A span of whole seconds; None where it is none that can be judged."""
    match = _SPAN.fullmatch(text) if text.isascii() else None
    if match is None:
        return None
    thousandths = int(match["number"]) * {"ms": 1, "s": 1000, "m": 60_000, None: 1000}[match["unit"]]
    seconds, rest = divmod(thousandths, 1000)
    return seconds if not rest and 1 <= seconds <= MOST_S else None
