"""Warming up: how much longer the first requests of the model take than those that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.rules import Rules


class Warmth:
    """The state of the servers: how many are cold, and how far the slow start has gone.

    It starts with the first request, and anew with one before which nobody was there for ``rules.cool_ns``.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._cold = 0
        self._is_slow = False
        self._begun = 0
        self._since_ns: int | None = None
        self._empty_since_ns = 0

    def arrive(self, now_ns: int, servers: int) -> None:
        """A request comes while no other is there."""
        cool_ns = self._rules.cool_ns
        if self._since_ns is None or (cool_ns and now_ns - self._empty_since_ns >= cool_ns):
            self._since_ns, self._begun, self._cold = now_ns, 0, servers
            self._is_slow = True

    def empty(self, now_ns: int) -> None:
        """The last request that was there has ended."""
        self._empty_since_ns = now_ns

    def resize(self, more: int) -> None:
        """So many servers are new and cold; those that go, where it is less than 0, are cold ones first."""
        self._cold = max(0, self._cold + more)

    def length(self, service_ns: int, now_ns: int, requests: int) -> int:
        """The length of a service that so many requests begin now, on a cold server as long as there is one."""
        if self._is_slow:
            service_ns = self._slowed(service_ns, now_ns)
            self._begun += requests
        if self._cold:
            self._cold -= 1
            service_ns += self._rules.cold_start_ns
        return service_ns

    def _slowed(self, service_ns: int, now_ns: int) -> int:
        """The length in the slow start, of which a part from 1 to 0 is left."""
        rules = self._rules
        assert self._since_ns is not None
        left = max(_left(self._begun, rules.slow_start_requests), _left(now_ns - self._since_ns, rules.slow_start_ns))
        self._is_slow = left > 0
        part = left if rules.slow_start_gradual else float(self._is_slow)
        return round(service_ns * (1 + (rules.slow_start_factor - 1) * part))


def _left(done: int, of: int) -> float:
    return (of - done) / of if done < of else 0.0
