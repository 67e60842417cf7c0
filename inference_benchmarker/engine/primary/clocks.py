"""The clocks of the workers' hosts, as the process that asked them says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gevent.event import Event

from inference_benchmarker.engine.hosts.clocks import ClockOffset
from inference_benchmarker.engine.hosts.protocol import SILENT_S
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inference_benchmarker.engine.primary.launcher_channel import Parent

PATIENCE_S = SILENT_S + 5.0  # a host that is lost is known to be by then
_LOOK_S = 0.1


class Clocks:
    """Knows what the clock of each worker's host shows; of those that nobody asked it is this one.

    ``lead_ns``: how long a command is on its way to the farthest host and back, and once more; 0 without hosts.
    ``patience_ns``: how long a host may be silent that is mended all the same; 0 without hosts.
    ``hosts``: the facts of each host, as they are written down.
    """

    def __init__(self, parent: Parent, *, asked: bool) -> None:
        self._parent = parent
        self._asked = asked
        self._answer = Event()
        self.patience_ns = round(SILENT_S * NS) if asked else 0
        self._offsets: dict[int, ClockOffset] = {}
        self.lead_ns = 0
        self.hosts: list[dict[str, Any]] = []

    def ask(self, is_over: Callable[[], bool]) -> None:
        """Have every clock asked, and wait for the answers, or until ``is_over``."""
        if not self._asked:
            return
        self._answer.clear()
        self._parent.tell("clocks")
        for _ in range(round(PATIENCE_S / _LOOK_S)):
            if self._answer.wait(_LOOK_S) or is_over() or self._parent.is_gone:
                return

    def take(self, fields: dict[str, Any]) -> None:
        """Take the answers: the facts of the hosts, and for each the line of its clock and its workers."""
        self.hosts = fields["hosts"]
        for line in fields["lines"]:
            offset = ClockOffset(**line["offset"])
            self._offsets |= dict.fromkeys(line["workers"], offset)
        self.lead_ns = self.lead_ns or max((offset.lead_ns for offset in self._offsets.values()), default=0)
        self._answer.set()

    def theirs(self, worker: int, ours_ns: int) -> int:
        """The instant of the clock of a worker's host at one of ours."""
        offset = self._offsets.get(worker)
        return ours_ns if offset is None else offset.theirs(ours_ns)

    def all_theirs(self, ours_ns: int, workers: Iterable[int]) -> list[int]:
        """The same for each of these workers."""
        return [self.theirs(worker, ours_ns) for worker in workers]
