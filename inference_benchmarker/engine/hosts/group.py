"""Several hosts as one: each worker is asked of the host that it runs on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from signal import Signals

    from inference_benchmarker.engine.hosts.host import Host


class HostGroup:
    """The ``hosts`` of a wave; see ``Host``. Each has workers by the time that the group is asked of them."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self.hosts = tuple(hosts)

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of all workers, in order."""
        return sorted(worker for host in self.hosts for worker in host.workers)

    def begin(self, worker: int, job: Mapping[str, Any]) -> None:
        """Give a worker its job."""
        self._of(worker).begin(worker, job)

    def connect(self, port: int, also: str | None) -> None:
        """Tell every worker that the primary listens."""
        for host in self.hosts:
            host.connect(port, also)

    def signal(self, worker: int, number: Signals) -> None:
        """Send a worker a signal."""
        self._of(worker).signal(worker, number)

    def ended(self) -> Collection[int]:
        """The workers that have ended by now."""
        return [worker for host in self.hosts for worker in host.ended()]

    def words(self, worker: int) -> list[str]:
        """The last lines that a worker printed so far."""
        return self._of(worker).words(worker)

    def last_words(self, worker: int) -> list[str]:
        """The last lines that a worker which has ended printed."""
        return self._of(worker).last_words(worker)

    def tend(self) -> None:
        """Do what hosts do while a wave runs."""
        for host in self.hosts:
            host.tend()

    def close(self) -> tuple[str, ...]:
        """End every worker on every host, all at the same time; the names of what the user's code had left behind."""
        if len(self.hosts) == 1:
            return self.hosts[0].close()
        with ThreadPoolExecutor(len(self.hosts), "closing") as pool:
            left = list(pool.map(lambda host: host.close(), self.hosts))
        return tuple(name for names in left for name in names)

    def _of(self, worker: int) -> Host:
        return next(host for host in self.hosts if worker in host.workers)
