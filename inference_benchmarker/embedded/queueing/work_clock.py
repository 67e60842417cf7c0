"""The work clock of the queueing model: how much service each request in service has been given."""

from __future__ import annotations

# After every instant that a clock can show.
NEVER = 1 << 63


class WorkClock:
    """It runs with the time, stands still in a standstill, and runs at k / n where n > k services share k servers.

    ``now_ns``: the instant up to which everything happened; ``work_ns``: what the work clock shows then.
    """

    def __init__(self) -> None:
        self.now_ns = 0
        self.work_ns = 0
        # The integrals of the servers at work and of those there could be.
        self.busy_ns = 0
        self.server_ns = 0
        # What it has gone beyond whole ns since the number of services last changed, in parts of that number.
        self._rest = 0

    def regroup(self) -> None:
        """The number of services under way changes now."""
        self._rest = 0

    def time_for(self, work_ns: int, services: int, busy: int) -> int:
        """The time that it takes to get on by that much with so many services on so many servers."""
        return work_ns if services == busy else -((self._rest - work_ns * services) // busy)

    def pass_time(self, at_ns: int, services: int, busy: int, room: int, *, stands: bool) -> None:
        """Nothing happens up to then, while ``busy`` of ``room`` servers are at work on so many services."""
        passed = at_ns - self.now_ns
        self.busy_ns += passed * busy
        self.server_ns += passed * max(busy, room)
        if not stands:
            self.work_ns += self._work_of(passed, services, busy)
        self.now_ns = at_ns

    def _work_of(self, passed_ns: int, services: int, busy: int) -> int:
        """The work that each service under way gets done in that time."""
        if services == busy:
            return passed_ns
        work, self._rest = divmod(passed_ns * busy + self._rest, services)
        return work
