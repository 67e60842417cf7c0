"""The servers of the queueing model: those that are always there, and those that come when requests pile up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.queueing.work_clock import NEVER

if TYPE_CHECKING:
    from inference_benchmarker.embedded.queueing.rules import Rules


class Pool:
    """``servers`` of them, at most ``room``; one is added at a time. At ``due_ns`` one may come or go.

    The last one goes when for ``rules.grow_keep_ns`` the others were enough: fewer than ``servers`` were at work at
    any time of it.
    """

    def __init__(self, rules: Rules) -> None:
        self.servers = self._base = rules.servers
        self.room = max(rules.servers, rules.most_servers)
        self._rules = rules
        self.due_ns = NEVER
        self._comes_ns = NEVER
        # Since when each added server is one more than there are services, as long as it is.
        self._spare_since: list[int] = []

    def pile_up(self, now_ns: int, queued: int) -> None:
        """So many requests wait: where they are too many, another server is on its way."""
        if queued > self._rules.grow_queue and self.servers < self.room and self._comes_ns == NEVER:
            self._comes_ns = now_ns + self._rules.grow_delay_ns
            self.due_ns = min(self.due_ns, self._comes_ns)

    def happen(self, now_ns: int, services: int) -> int:
        """Let servers come and go whose time it is; returns how many more there are now."""
        before = self.servers
        while (
            self._spare_since and services < self.servers and self._spare_since[-1] + self._rules.grow_keep_ns <= now_ns
        ):
            self._spare_since.pop()
            self.servers -= 1
        if self._comes_ns <= now_ns:
            self._comes_ns = NEVER
            self._spare_since.append(now_ns)
            self.servers += 1
        self._look_ahead(services)
        return self.servers - before

    def ended(self, now_ns: int, services: int) -> None:
        """A service ended, and so many are left."""
        added = services - self._base
        if 0 <= added < len(self._spare_since):
            self._spare_since[added] = now_ns
            self._look_ahead(services)

    def resize(self, base: int, services: int) -> int:
        """That many are always there from now on, and as many times as many may be; returns how many more there are."""
        before, rules = self.servers, self._rules
        self._base = base
        self.room = base * max(rules.servers, rules.most_servers) // rules.servers
        del self._spare_since[self.room - base :]
        self.servers = base + len(self._spare_since)
        if self.servers >= self.room:
            self._comes_ns = NEVER
        self._look_ahead(services)
        return self.servers - before

    def _look_ahead(self, services: int) -> None:
        is_spare = self._spare_since and services < self.servers
        self.due_ns = (
            min(self._comes_ns, self._spare_since[-1] + self._rules.grow_keep_ns) if is_spare else self._comes_ns
        )
