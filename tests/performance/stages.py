"""Arrivals of a rate that changes: when they reach the server, and how many."""

from __future__ import annotations

import numpy as np
from scipy import stats

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.stage import Stage
from tests.performance import measure
from tests.performance.figures import Figure, Program, at_least, below, exactly
from tests.performance.stamp_server import StampServer

SEED = "7"


def waved(text: str, *flags: str) -> tuple[list[Figure], measure.Wave]:
    """A wave of these stages from two workers against a 1 ms endpoint: what the server saw of it."""
    load = OpenLoop(stages=tuple(map(Stage.parse, text.split(","))))
    with StampServer(delay_ms=1) as server:
        wave = measure.run(measure.HTTP, server.url, 100_000, "--stages", text, "--workers", "2", *flags)
        log = server.log()
    joined = measure.arrivals(log, wave)
    error = measure.schedule_error_ms(joined)
    name = ", ".join((*(each.text for each in load.stages), *flags[1:2]))
    return [
        Figure(f"{name}: requests seen, of those planned", len(log), "", exactly(wave.ledger("scheduled"))),
        Figure(f"{name}: least time from due to sent", float(wave.lag_ms.min()), "ms", at_least(0)),
        Figure(f"{name}: schedule error p50", measure.percentile(error, 50), "ms"),
        Figure(f"{name}: schedule error p99", measure.percentile(error, 99), "ms", below(0.4)),
    ], wave


def drawn(text: str) -> list[Figure]:
    """Poisson arrivals on a ramp: rescaled by the area under the rate they are those of one a unit."""
    found, wave = waved(text, "--arrivals", "poisson", "--seed", SEED)
    schedule = OpenLoop(stages=tuple(map(Stage.parse, text.split(",")))).schedule
    areas = np.array([float(schedule.area(due)) for due in wave.column("due").tolist()])
    uniform = stats.kstest(areas / float(schedule.area(schedule.end_ns)), "uniform").pvalue
    gaps = stats.kstest(np.diff(areas), "expon").pvalue
    return [
        *found,
        Figure(f"Poisson {text}: Kolmogorov-Smirnov of rescaled times, p", float(uniform), "", at_least(0.01)),
        Figure(f"Poisson {text}: Kolmogorov-Smirnov of rescaled gaps, p", float(gaps), "", at_least(0.01)),
    ]


def figures(seconds: float) -> list[Figure]:
    """A ramp, steps with a pause, and a ramp of Poisson arrivals."""
    third = f"{seconds / 3:.3f}s"
    ramp, _ = waved(f"100..2000:{seconds:g}s")
    steps, _ = waved(f"200:{third},2000:{third},0:1s,200:{third}")
    return ramp + steps + drawn(f"100..2000:{seconds:g}s")


PROGRAM = Program("a rate that changes, at the server", figures, seconds=20, quick_seconds=3)

if __name__ == "__main__":
    PROGRAM.main()
