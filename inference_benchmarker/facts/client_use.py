"""The use that a wave made of this client, per worker and of the host: evidence for or against the client. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Literal

from inference_benchmarker.facts.client_samples import HOST, Stretch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Part = Literal["invoke", "payload", "tool"]
SERIES_LENGTH = 60


@dataclass(frozen=True, slots=True)
class LoopDelay:
    """The time an event that is ready waits for the event loop, asked at random instants."""

    count: int
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class LoopBlock:
    """A block of the event loop: the place most often found running while it was late.

    ``part``: the user's ``invoke``, the building of a payload, or the tool itself. ``share`` of the looks at
    late moments that found this place; ``stack`` of the longest block, outermost first.
    """

    part: Part
    where: str
    share: float
    longest_s: float
    stack: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collections:
    """Pauses of the garbage collector."""

    pauses: int = 0
    total_s: float = 0.0
    longest_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of the client's libraries beneath ``invoke``.

    ``discarded``: by a full pool of urllib3. Of ``looked_at`` requests in flight ``waiting`` stood in a queue
    for a connection of their own client's pool, ``locked`` before a lock, and ``aside`` waited for other code of the
    user's (an event, a queue, a sleep), so that it is not known whether the endpoint had them; ``clear_until_s``: when
    the last look was before the first that found one of the first two, in seconds after wave start (None: none was
    found). ``refused``: connections this host refused, by errno name. ``seen``: at least one connection was seen, since
    the user's file was loaded, also of a client that has no Python sockets; None where nobody looked.
    """

    opened: int = 0
    discarded: int = 0
    looked_at: int = 0
    waiting: int = 0
    locked: int = 0
    aside: int = 0
    clear_until_s: float | None = None
    retries: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    seen: bool | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers that say more, or less, than ``invoke`` returned.

    ``hidden``: requests that count as answered though their last response had a status that says that they failed, by
    that status. ``textless``: streams none of whose pieces showed text.
    """

    hidden: dict[str, int] = field(default_factory=dict)
    textless: int = 0


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """One worker process's use between wave start and its last report.

    ``cpu_share`` of one core, and ``starved_share``, the time it could have run but no core was free, are of
    the time it sent; ``silence_s`` is the longest time between two of its reports. None where it is not known.
    """

    cpu_s: float = 0.0
    max_rss_bytes: int = 0
    cpu_share: float | None = None
    starved_share: float | None = None
    silence_s: float = 0.0
    loop_delay: LoopDelay | None = None
    block: LoopBlock | None = None
    collections: Collections = field(default_factory=Collections)
    connections: Connections = field(default_factory=Connections)
    answers: Answers = field(default_factory=Answers)
    descriptors: int = 0
    descriptor_limit: int = 0


@dataclass(frozen=True, slots=True)
class HostUse:
    """The host's use during the wave, all its processes together. Shares are of all ``cores``."""

    cores: int
    cpu_share_mean: float
    cpu_share_max: float
    steal_share_mean: float | None
    memory_available_bytes: int | None
    memory_total_bytes: int
    throttled_s: float | None
    time_wait: int | None
    ephemeral_ports: int | None
    network_sent_bytes_per_s: float
    network_received_bytes_per_s: float

    @classmethod
    def of(
        cls,
        stretches: Mapping[str, Sequence[Stretch]],
        *,
        cores: int,
        memory_total_bytes: int,
        ephemeral_ports: int | None,
    ) -> HostUse | None:
        """The use that the host's samples report; None without one."""
        if not (mine := stretches.get(HOST)):
            return None
        whole = reduce(Stretch.joined, mine)
        steal = whole.steal_percent / whole.steal_samples if whole.steal_samples else None
        return cls(
            cores=cores,
            cpu_share_mean=whole.cpu_percent / whole.samples / 100 / cores,
            cpu_share_max=whole.most_cpu_percent / 100 / cores,
            steal_share_mean=None if steal is None else steal / 100 / cores,
            memory_available_bytes=whole.least_available_bytes,
            memory_total_bytes=memory_total_bytes,
            throttled_s=whole.throttled_s,
            time_wait=whole.most_time_wait,
            ephemeral_ports=ephemeral_ports,
            network_sent_bytes_per_s=whole.network_sent_bytes / whole.samples,
            network_received_bytes_per_s=whole.network_received_bytes / whole.samples,
        )


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """The CPU (percent of one core) and memory of the host or a process over the wave's time, for the report.

    ``cpu_series`` has at most ``SERIES_LENGTH`` means of equally many seconds each; every second is in client.csv.
    """

    process: str
    cpu_percent_mean: float
    cpu_percent_max: float
    memory_bytes_max: int
    cpu_series: tuple[float, ...]

    @classmethod
    def of(cls, stretches: Mapping[str, Sequence[Stretch]]) -> tuple[ProcessUse, ...]:
        """One for each process that the samples report, in their order."""
        return tuple(
            cls(
                process=process,
                cpu_percent_mean=_mean_cpu(mine),
                cpu_percent_max=max(stretch.most_cpu_percent for stretch in mine),
                memory_bytes_max=max(stretch.most_memory_bytes for stretch in mine),
                cpu_series=_condensed(mine),
            )
            for process, mine in stretches.items()
        )


def _mean_cpu(stretches: Sequence[Stretch]) -> float:
    return round(sum(each.cpu_percent for each in stretches) / sum(each.samples for each in stretches), 1)


def _condensed(stretches: Sequence[Stretch]) -> tuple[float, ...]:
    size = -(-len(stretches) // SERIES_LENGTH)
    return tuple(_mean_cpu(stretches[first : first + size]) for first in range(0, len(stretches), size))
