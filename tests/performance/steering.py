"""A rate that is changed at the keys: how long until the server sees it, and whether there is a gap or a burst."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.performance import measure
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.stamp_server import StampServer
from tests.person import Person

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

RATE = 500
KEYS = "2/"
PAUSE_S = 0.35
NEAR_NS = 50_000_000
BURST_NS = 10_000_000


def pressed(person: Person, key: str, shown: str) -> tuple[int, float]:
    """Press a key and wait for its answer: when (monotonic), and how long the answer took in ms."""
    place = person.place
    at = time.monotonic_ns()
    person.press(key)
    while shown not in person.seen_since(place):
        time.sleep(0.002)
    return at, (time.monotonic_ns() - at) / measure.NS_PER_MS


def steered(url: str, presses: int) -> tuple[measure.Wave, list[int], list[float]]:
    """A wave of two workers, its rate doubled and halved in turn; when each key was pressed, and its answer's ms."""
    person = Person()
    with tempfile.TemporaryDirectory(prefix="benchmark_perf_") as directory:
        flags = ["--factories-file", str(measure.HTTP), "--output-dir", directory]
        line = [*measure.BENCHMARK, *flags, "--client-rps", str(RATE), "--workers", "2", "--interactive"]
        begun = time.monotonic()
        with subprocess.Popen(
            line,
            env=measure.environment(url, 100_000),
            stdin=person.slave,
            stderr=person.slave,
            stdout=subprocess.DEVNULL,
        ) as process:
            person.see(f"Rate {RATE:,}/s")
            time.sleep(1)
            instants, answers = [], []
            for place, key in zip(range(presses), itertools.cycle(KEYS), strict=False):
                at, answered = pressed(person, key, f"Rate {RATE * (2 - place % 2):,}/s")
                instants.append(at)
                answers.append(answered)
                time.sleep(PAUSE_S + place % 7 / 100)
            person.press("q")
            process.wait(measure.PATIENCE_S)
        person.leave()
        wave = measure.load(next(Path(directory).glob("*_benchmark*")), time.monotonic() - begun, process.returncode)
    return wave, instants, answers


def figures(seconds: float) -> list[Figure]:
    """So many presses, a few a second."""
    presses = int(2 * seconds)
    with StampServer(delay_ms=1) as server:
        wave, instants, answers = steered(server.url, presses)
        log = server.log()
    joined = measure.arrivals(log, wave)
    starts = np.array([round(row["start_s"] * 1e9) for row in wave.summary["stages"]][1:])
    first = [int(joined["arrival"][joined["due"] >= start].min()) for start in starts]
    in_force = np.array(first) - (np.array(instants) - wave.t0_ns)
    error = measure.schedule_error_ms(joined)
    near = np.abs(joined["due"].to_numpy()[:, None] - starts[None, :]).min(axis=1) < NEAR_NS
    return [
        Figure("keys pressed, changes offered", len(starts), "", exactly(presses)),
        Figure("requests seen, of those planned", len(log), "", exactly(wave.ledger("scheduled"))),
        Figure("from the key to its answer on the screen, at most", max(answers), "ms", below(100)),
        Figure("from the key to the first request at the new rate, median", float(np.median(in_force)) / 1e6, "ms"),
        Figure("the same, at most", float(in_force.max()) / 1e6, "ms", below(200)),
        Figure("schedule error p99, within 50 ms of a change", measure.percentile(error[near], 99), "ms", below(0.5)),
        Figure("schedule error p99, elsewhere", measure.percentile(error[~near], 99), "ms"),
        Figure("requests beside those due in the 10 ms after a change, at most", _off(joined, starts), "", below(2)),
    ]


def _off(joined: pd.DataFrame, starts: NDArray[np.int64]) -> float:
    """A gap or a burst: how far the arrivals at the server are from those that were due; one at either end is none."""
    way = int(np.median(joined["arrival"] - joined["due"]))
    found = []
    for start in starts.tolist():
        due = joined["due"].between(start, start + BURST_NS).sum()
        seen = joined["arrival"].between(start + way, start + way + BURST_NS).sum()
        found.append(abs(int(due) - int(seen)))
    return float(max(found))


PROGRAM = Program("a rate changed at the keys, at the server", figures, seconds=10, quick_seconds=2)

if __name__ == "__main__":
    PROGRAM.main()
