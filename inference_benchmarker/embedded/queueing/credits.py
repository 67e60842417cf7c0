"""Burst credits: the service that servers can give at full speed before they are throttled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.rules import Rules


class BurstCredits:
    """At most ``rules.burst_ns`` of service are saved up, and are there at first; 0: nothing is ever throttled.

    Each server earns ``rules.burst_baseline`` of the time, and each service spends its length. One that begins while
    less is saved up goes at the baseline's speed, and so spends what its server earns meanwhile.
    """

    def __init__(self, rules: Rules) -> None:
        self._most = rules.burst_ns
        self._baseline = rules.burst_baseline
        self._saved = float(rules.burst_ns)
        self._now_ns = 0

    def length(self, service_ns: int, now_ns: int, servers: int) -> int:
        """The length of a service of ``service_ns`` that begins now on one of so many servers."""
        if not self._most:
            return service_ns
        earned = (now_ns - self._now_ns) * self._baseline * servers
        self._now_ns = now_ns
        self._saved = min(self._most, self._saved + earned)
        throttled = self._saved < service_ns
        self._saved -= service_ns
        return round(service_ns / self._baseline) if throttled else service_ns
