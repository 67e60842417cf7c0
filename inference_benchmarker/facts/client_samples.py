"""The samples that a wave takes of host and processes each second, and what is kept of them. Pure."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "host"
NOT_MEASURED = "not_measured"
"""The key of a wave's environment that says why there are no samples at all."""

MOST_STRETCHES = 1_024  # of a process: a sample each for 17 minutes

Number = TypeVar("Number", int, float)


class Sample(NamedTuple):
    """A second of the host or of one process; what is known of the host alone is None for a process.

    CPU and steal are in percent of one core (steal: taken by other guests of the same machine); network bytes
    and throttled seconds (the cgroup's CPU limit) since the last sample.
    """

    unix_s: float
    process: str
    cpu_percent: float
    memory_bytes: int
    network_sent_bytes: int | None = None
    network_received_bytes: int | None = None
    steal_percent: float | None = None
    memory_available_bytes: int | None = None
    time_wait: int | None = None
    throttled_s: float | None = None


class Stretch(NamedTuple):
    """Some samples of the host or of one process in a row, from ``unix_s`` on; units as a sample's.

    What is no ``least`` or ``most`` is the sum over those that reported it.
    """

    unix_s: float
    samples: int
    cpu_percent: float
    most_cpu_percent: float
    most_memory_bytes: int
    network_sent_bytes: int
    network_received_bytes: int
    steal_samples: int
    steal_percent: float
    least_available_bytes: int | None
    most_time_wait: int | None
    throttled_s: float | None

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """The stretch that is a single sample."""
        return cls(
            unix_s=sample.unix_s,
            samples=1,
            cpu_percent=sample.cpu_percent,
            most_cpu_percent=sample.cpu_percent,
            most_memory_bytes=sample.memory_bytes,
            network_sent_bytes=sample.network_sent_bytes or 0,
            network_received_bytes=sample.network_received_bytes or 0,
            steal_samples=0 if sample.steal_percent is None else 1,
            steal_percent=sample.steal_percent or 0.0,
            least_available_bytes=sample.memory_available_bytes,
            most_time_wait=sample.time_wait,
            throttled_s=sample.throttled_s,
        )

    def joined(self, later: Stretch) -> Stretch:
        """Both as one."""
        return Stretch(
            unix_s=self.unix_s,
            samples=self.samples + later.samples,
            cpu_percent=self.cpu_percent + later.cpu_percent,
            most_cpu_percent=max(self.most_cpu_percent, later.most_cpu_percent),
            most_memory_bytes=max(self.most_memory_bytes, later.most_memory_bytes),
            network_sent_bytes=self.network_sent_bytes + later.network_sent_bytes,
            network_received_bytes=self.network_received_bytes + later.network_received_bytes,
            steal_samples=self.steal_samples + later.steal_samples,
            steal_percent=self.steal_percent + later.steal_percent,
            least_available_bytes=_of_known(min, self.least_available_bytes, later.least_available_bytes),
            most_time_wait=_of_known(max, self.most_time_wait, later.most_time_wait),
            throttled_s=_of_known(add, self.throttled_s, later.throttled_s),
        )


class Samples:
    """The samples of a wave as they come, however long it lasts.

    Of each process there are at most ``MOST_STRETCHES`` stretches: of one sample each at first, and when there are
    more, each two of them are joined.
    """

    def __init__(self) -> None:
        self._stretches: dict[str, list[Stretch]] = {}
        self._lengths: dict[str, int] = {}

    def add(self, sample: Sample) -> None:
        """Take one in."""
        process, newest = sample.process, Stretch.of(sample)
        known = self._stretches.setdefault(process, [])
        length = self._lengths.setdefault(process, 1)
        if known and known[-1].samples < length:
            known[-1] = known[-1].joined(newest)
            return
        known.append(newest)
        if len(known) > MOST_STRETCHES:
            known[:] = [first.joined(second) for first, second in zip(known[::2], known[1::2], strict=False)]
            known.append(newest)
            self._lengths[process] = 2 * length

    def within(self, first_s: float, last_s: float) -> dict[str, list[Stretch]]:
        """Those of each process that began between two instants; all where none of any did."""
        found = {
            process: some
            for process, known in self._stretches.items()
            if (some := [stretch for stretch in known if first_s <= stretch.unix_s <= last_s])
        }
        return found or self._stretches


def _of_known(choose: Callable[[Number, Number], Number], first: Number | None, second: Number | None) -> Number | None:
    """Of two values, of which either may be unknown."""
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)
