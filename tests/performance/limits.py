"""Who was the limit: false alarms in twenty clean waves, and what it costs to watch.

Clean: the server answers well below its capacity, in either loop, and the client has nothing heavy to do. The
cost is that of a whole worker that sends a request every two seconds, so it is an upper bound of the watch's.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADS = (
    ("--client-rps", "100", "--workers", "1"),
    ("--client-rps", "1000", "--workers", "2"),
    ("--client-rps", "300", "--arrivals", "poisson", "--workers", "1"),
    ("--concurrency", "8", "--workers", "1"),
)
ROUNDS = 5
DELAY_MS = 20
REST_S = 20


def clean_waves(seconds: float) -> Iterator[measure.Wave]:
    """The loads in turn, so that what else the machine does meets all of them."""
    with StampServer(delay_ms=DELAY_MS) as server:
        for _ in range(ROUNDS):
            for load in LOADS:
                yield measure.run(measure.HTTP, server.url, 100_000, *load, "--obs-time", f"{seconds:g}")


def rest() -> tuple[float, float]:
    """CPU of a worker that has next to nothing to do, and of the host's sampling and all else in the primary."""
    flags = ("--client-rps", "0.5", "--obs-time", f"{REST_S}", "--sample-client-hw")
    with StampServer() as server:
        wave = measure.run(measure.HTTP, server.url, 100, *flags)
    worker = 100 * wave.worker_cpu_s / REST_S
    processes = {use["process"]: use["cpu_percent_mean"] for use in wave.summary["client"]["processes"]}
    return worker, float(processes["primary"])


def figures(seconds: float) -> list[Figure]:
    """Findings by code, then the cost at rest."""
    found: Counter[str] = Counter()
    alarms = 0
    for wave in clean_waves(seconds):
        codes = [finding["code"] for finding in wave.summary["findings"]]
        found.update(codes)
        alarms += bool(codes)
    worker, primary = rest()
    return [
        Figure(f"of {ROUNDS * len(LOADS)} clean waves with a finding", alarms, "", exactly(0)),
        *(Figure(f"  {code}", count) for code, count in found.items()),
        Figure("a worker at rest, all it does", worker, "% of a core", below(1)),
        Figure("the primary at rest, all it does", primary, "% of a core"),
    ]


PROGRAM = Program("who was the limit", figures, seconds=5, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
