"""Sessions at the server: first turns against the plan, later ones against the answer before and the time thought."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tests.performance import measure
from tests.performance.factories_turns import NUMBERS, TURNS
from tests.performance.figures import Figure, Program, below, exactly
from tests.performance.pacing import SEED, anderson_darling
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from numpy.typing import NDArray

SESSION_RATE = 100  # of five turns each: 500 turns per second
MORE_MS = 0.1  # that later turns may be further off than first ones
OFF_MS = 0.3  # that a time thought may be, as the server sees it
WORKERS = (1, 2, 5)


def waved(sessions: int, workers: int) -> pd.DataFrame:
    """The turns of a wave of Poisson sessions: records with the server's stamps, by session and turn."""
    flags = ("--client-rps", str(SESSION_RATE), "--arrivals", "poisson", "--seed", SEED)
    with StampServer(delay_ms=1) as server:
        wave = measure.run(
            *(measure.HERE / "factories_turns.py", server.url, 0, *flags),
            *("--num-requests", str(sessions), "--workers", str(workers)),
        )
        log = server.log()
    stamps = pd.DataFrame(
        {
            "index": log["id"] // NUMBERS,
            "turn": log["id"] % NUMBERS,
            "arrival": log["arrival_ns"] - wave.t0_ns,
            "answered": log["answered_ns"] - wave.t0_ns,
        }
    )
    joined = wave.requests.merge(stamps, on=["index", "turn"], validate="one_to_one")
    if not len(joined) == len(log) == len(wave.requests):
        raise RuntimeError(f"{len(wave.requests)} turns were recorded, and the server saw {len(log)}")
    return joined.sort_values(["index", "turn"], ignore_index=True)


def off_ms(instants: NDArray[np.int64]) -> NDArray[np.float64]:
    """The distance of times from their median, which is the way there."""
    error: NDArray[np.float64] = np.abs(instants - np.median(instants)) / measure.NS_PER_MS
    return error


def of_wave(turns: pd.DataFrame, workers: int) -> list[Figure]:
    """The figures of one wave. Its first turns show what the machine allows just then."""
    text = f"W={workers}: "
    first = turns["turn"].to_numpy() == 1
    error = off_ms((turns["arrival"] - turns["due"]).to_numpy())
    before = turns.groupby("index").shift()
    think = turns["think_ns"].astype("float64")
    exact = (turns["due"] - before["done"] == think)[~first].mean()
    thought = off_ms((turns["arrival"] - before["answered"] - think)[~first].to_numpy())
    of_first = measure.percentile(error[first], 99)
    statistic, critical = anderson_darling(np.diff(np.sort(turns["arrival"].to_numpy()[first])))
    return [
        Figure(text + "turns", len(turns), "", exactly(turns["index"].nunique() * TURNS)),
        Figure(text + "due - answer before = think, in the records", exact, "of later turns", exactly(1)),
        Figure(text + "first turns: A-D statistic of gaps at the server", statistic, "", below(round(critical, 3))),
        Figure(text + "first turns: schedule error p50", measure.percentile(error[first], 50), "ms"),
        Figure(text + "first turns: schedule error p99", of_first, "ms"),
        Figure(text + "later turns: schedule error p50", measure.percentile(error[~first], 50), "ms"),
        Figure(
            text + "later turns: schedule error p99, above that",
            measure.percentile(error[~first], 99) - of_first,
            "ms",
            below(MORE_MS),
        ),
        Figure(text + "think time at the server, off by p50", measure.percentile(thought, 50), "ms"),
        Figure(text + "think time at the server, off by p99", measure.percentile(thought, 99), "ms", below(OFF_MS)),
    ]


def figures(seconds: float) -> list[Figure]:
    """A wave of sessions from each number of workers: the same due times of first turns."""
    found, first = list[Figure](), None
    for workers in WORKERS:
        turns = waved(round(seconds * SESSION_RATE), workers)
        due = turns["due"].to_numpy()[turns["turn"] == 1]
        first = due if first is None else first
        same = float(np.array_equal(due, first))
        found += of_wave(turns, workers)
        found.append(Figure(f"W={workers}: due times of first turns as with W=1", same, "", exactly(1)))
    return found


PROGRAM = Program("sessions at the server, 100/s of five turns", figures, seconds=20, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
