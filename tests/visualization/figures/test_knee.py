"""The knee of planted ladders: where the endpoint stops keeping up, and nowhere else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from visualization.figures.knee import Answered, knee_of

LOADS = (20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0)
SECONDS = 60


def open_loop(served: float, loads: tuple[float, ...] = LOADS, seconds: float = SECONDS) -> list[Answered]:
    """An endpoint that completes so many requests a second and no more."""
    rates = [min(load, served) for load in loads]
    return [Answered(load, rate, load, load * seconds) for load, rate in zip(loads, rates, strict=True)]


def closed_loop(served: float, loads: tuple[float, ...], seconds: float = SECONDS) -> list[Answered]:
    """The same one with a service time of 0.1 s, at so many requests in flight."""
    rates = [min(10 * load, served) for load in loads]
    return [Answered(load, rate, None, rate * seconds) for load, rate in zip(loads, rates, strict=True)]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (open_loop(200), None),  # whatever its latency does: six runs of 20 to 160/s had "a knee near 87/s"
        (open_loop(130), 120),
        (open_loop(157), None),  # 1.9% behind: within what a wave that keeps up may show
        (open_loop(10), None),  # none kept up
        (open_loop(130, (100, 160)), None),
        (open_loop(130, (100, 120, 160), seconds=0.2), None),  # 26 requests show nothing
        (open_loop(200)[:5] + open_loop(110)[5:6] + open_loop(200)[6:], None),  # an outage, and it kept up beyond
        ([*open_loop(130), *open_loop(100)[5:6]], 120),  # sent three times at 120/s, of which one fell behind
        (open_loop(0), None),
        (open_loop(200)[:5] + open_loop(0)[5:], 100),  # beyond 100/s it answered nobody
        ([], None),
        (closed_loop(200, (5, 10, 20, 40, 80)), 20),
        (closed_loop(200, (5, 10, 20, 21)), None),  # hardly more in flight
        (closed_loop(200, (1, 2, 4, 8, 16)), None),
        (closed_loop(200, (20, 40, 80)), None),  # flat from the first on: where that began was not tried
        (closed_loop(200, (5, 10, 20, 40, 80), seconds=0.05), None),
    ],
)
def test_planted_ladders(runs: list[Answered], expected: float | None) -> None:
    if len(runs) == len(LOADS) + 1:
        runs.append(runs[5])
    at = knee_of(runs)
    assert (None if at is None else runs[at].load) == expected


def test_the_order_of_the_runs_does_not_matter() -> None:
    runs = open_loop(130)
    for seed in range(20):
        mixed = random.Random(seed).sample(runs, len(runs))
        at = knee_of(mixed)
        assert at is not None
        assert mixed[at].load == 120


@pytest.mark.parametrize(("seconds", "most"), [(2, 0.01), (10, 0.005), (60, 0.002)])
def test_noise_alone_makes_no_knee(seconds: float, most: float) -> None:
    """Completions as noisy as independent Poisson counts, which is more than a queue's."""
    drawn = random.Random(7)

    def noisy(run: Answered) -> Answered:
        number = run.completed * run.sent / run.load
        return replace(run, completed=run.completed * max(drawn.gauss(number, number**0.5), 0) / number)

    ladders = [[noisy(run) for run in open_loop(200, seconds=seconds)] for _ in range(2000)]
    assert sum(knee_of(ladder) is not None for ladder in ladders) / 2000 <= most
    behind = [[noisy(run) for run in open_loop(110, seconds=60)] for _ in range(500)]
    found = [knee_of(ladder) for ladder in behind]
    assert sum(at is not None and LOADS[at] == 100 for at in found) / 500 >= 0.95
