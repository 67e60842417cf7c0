"""How late arrivals reach the server, compared with a C client that wakes by a timerfd and writes prepared requests.

In each round, the C client (``floor_client.c``) repeats the due times of the wave before it, against the same server:
one wave and one repetition in turn, so that what else the machine does meets both. The figure is the median over the
rounds of the ratio of both p99. A round counts where the C client's own p99 is at most 0.2 ms; in others the machine
was busy.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.performance.stamp_server import StampServer, compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOURCE = measure.HERE / "floor_client.c"
ROUNDS = 5
CONNECTIONS = "256"
QUIET_MS = 0.2
WAVES = {
    "1,000/s": (("--client-rps", "1000"), 3),
    "ramp 200..1,800/s": (("--stages", "200..1800:{seconds}s"), 4),
    "steps 500, 1,500/s": (("--stages", "500:{half}s,1500:{half}s"), 4),
    "Poisson 1,000/s": (("--client-rps", "1000", "--arrivals", "poisson", "--seed", "7"), 4),
}


@dataclass(frozen=True, slots=True)
class Lateness:
    """How far off their due times arrivals reached the server, less the median of all: milliseconds."""

    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, arrived_ns: NDArray[np.int64], due_ns: NDArray[np.int64]) -> Lateness:
        """From instants of one clock whose zeros may differ."""
        offset = (arrived_ns - due_ns) / measure.NS_PER_MS
        error = np.abs(offset - np.median(offset))
        return cls(measure.percentile(error, 50), measure.percentile(error, 99))


def floor_lateness(url: str, due_ns: NDArray[np.int64], server: StampServer) -> Lateness:
    """The C client's, for these due times; RuntimeError where it could not send them all."""
    server.clear()
    command = [str(compiled(SOURCE)), str(urlsplit(url).port), CONNECTIONS]
    done = subprocess.run(command, input=due_ns.astype("<i8").tobytes(), stdout=subprocess.PIPE, check=True)
    start_ns, _, unsent = map(int, done.stdout.split())
    log = server.log()
    log = np.sort(log[log["id"] >= 0], order="id")
    if unsent or len(log) != len(due_ns):
        raise RuntimeError(f"the C client sent {len(log)} of {len(due_ns)} requests: too few connections")
    return Lateness.of(log["arrival_ns"] - start_ns, due_ns)


def round_of(flags: tuple[str, ...], seconds: float) -> tuple[Lateness, Lateness]:
    """One wave, and the C client's repetition of it."""
    flags = tuple(flag.format(seconds=f"{seconds:g}", half=f"{seconds / 2:g}") for flag in flags)
    length = () if flags[0] == "--stages" else ("--obs-time", f"{seconds:g}")
    with StampServer(delay_ms=1) as server:
        wave = measure.run(measure.HTTP, server.url, 100_000, *flags, *length, "--workers", "2")
        joined = measure.arrivals(server.log(), wave)
        ours = Lateness.of(joined["arrival"].to_numpy(), joined["due"].to_numpy())
        return ours, floor_lateness(server.url, joined["due"].to_numpy(), server)


def figures(seconds: float) -> list[Figure]:
    """Each kind of wave, several times."""
    found = []
    for name, (flags, most) in WAVES.items():
        rounds = [round_of(flags, seconds) for _ in range(ROUNDS)]
        quiet = [(ours, least) for ours, least in rounds if least.p99_ms <= QUIET_MS]
        ratio = median(ours.p99_ms / least.p99_ms for ours, least in quiet) if quiet else float("nan")
        found += [
            Figure(f"{name}: schedule error p99, times the C client's", ratio, "", below(most)),
            Figure(f"{name}: rounds of {ROUNDS} that count", len(quiet)),
            Figure(f"{name}: schedule error p99", median(ours.p99_ms for ours, _ in rounds), "ms"),
            Figure(f"{name}: the C client's p99", median(least.p99_ms for _, least in rounds), "ms"),
            Figure(f"{name}: schedule error p50", median(ours.p50_ms for ours, _ in rounds), "ms"),
            Figure(f"{name}: the C client's p50", median(least.p50_ms for _, least in rounds), "ms"),
        ]
    return found


PROGRAM = Program("lateness at the server beside a C client", figures, seconds=5, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
