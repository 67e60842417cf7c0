"""The hosts that sent a wave's load, what each used, and its clock compared with ours. Pure.

Times of records are raw: nothing here was added to them. Whoever compares hosts adds offsets, and says ± what.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from inference_benchmarker.facts.client_use import HostUse

SLEWED_PPM = 300.0
"""Beyond what corrects an oscillator at rest (78 ppm in the median), below what ntpd slews by (500 ppm)."""


@dataclass(frozen=True, slots=True)
class HostClock:
    """A host's CLOCK_MONOTONIC compared with ours over the wave.

    ``offset_s``: theirs minus ours at wave start. ``uncertainty_s`` bounds its error over the whole wave.
    ``drift_ppm``: by how much theirs gained on ours; None where it was asked at one time only. ``round_trip_s``: the
    least of the exchanges. ``jump_s``: the largest step that no drift explains. ``slew_ppm``: CLOCK_MONOTONIC against
    CLOCK_MONOTONIC_RAW of that host, None where nobody looked. ``ahead_s``: by how much a record of that host ended
    after it had arrived here, beyond the uncertainty; a clock that tells the truth leaves 0.
    """

    offset_s: float
    uncertainty_s: float
    drift_ppm: float | None
    round_trip_s: float
    jump_s: float = 0.0
    slew_ppm: float | None = None
    ahead_s: float = 0.0

    @property
    def is_slewed(self) -> bool:
        """Tells whether somebody corrects this clock while it runs."""
        return self.slew_ppm is not None and abs(self.slew_ppm) > SLEWED_PPM


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host of a wave. ``name``: as the user wrote it, without its number of workers.

    ``workers``: the numbers of its workers. ``versions``: of what runs there, by name (``benchmark``, ``python``).
    ``use``: of the whole host; None where its samples never came. ``clock``: None for this host, whose clock is ours,
    and for one that was lost before it was asked. ``lost``: why, in the last words of its connection; None while it is
    there. ``node``: of a cluster, that a pod is on, with its ``zone`` and ``instance_type`` as far as they are known.
    """

    name: str
    workers: tuple[int, ...]
    versions: dict[str, str] = field(default_factory=dict)
    use: HostUse | None = None
    clock: HostClock | None = None
    lost: str | None = None
    node: str | None = None
    zone: str | None = None
    instance_type: str | None = None


def host_of_worker(hosts: Sequence[HostFacts], worker: int) -> str | None:
    """The name of the host that a worker runs on; None for a wave without hosts."""
    return next((host.name for host in hosts if worker in host.workers), None)
