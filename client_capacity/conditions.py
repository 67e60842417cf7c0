"""What a search for this client's capacity is asked for. Light: nothing is loaded that sends."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from client_capacity.search import LEAST_REPEATS
from inference_benchmarker.plan import MAX_RATE, MAX_WORKERS, Bounds, OpenLoop, WavePlan

WARMUP_S = 1.0
LEAST_ARRIVALS = 20
LONGEST_STEP_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Conditions:
    """Who is sent to, how a rate is tried and how far to go; rates are requests/s.

    ``lag_limit_s`` limits p99 of the schedule lag. ``step_time_s`` is how long a rate is sent, ``repeats`` how
    often the found one is tried again, ``max_rps`` the most that is tried with one worker. For several workers:
    ``worker_rps``, which one holds (None: it is measured), ``wanted_rps``, which all are to hold (None: find the
    most), and ``max_workers`` (None: one more than there are cores).
    """

    factories_file: Path | None
    endpoint_name: str | None = None
    lag_limit_s: float = 0.005
    step_time_s: float = 3.0
    repeats: int = 8
    max_rps: float = 20_000
    worker_rps: float | None = None
    wanted_rps: float | None = None
    max_workers: int | None = None
    output_dir: Path = Path(".tmp")

    def problems(self) -> list[str]:
        """What is wrong, a sentence each; empty when the search can begin."""
        return [
            *_range_problems("--lag-limit", self.lag_limit_s, 0.0001, 10, "seconds"),
            *_range_problems("--step-time", self.step_time_s, 0.2, 600, "seconds"),
            *([] if self.repeats == 0 else _range_problems("--repeats", self.repeats, LEAST_REPEATS, 100, "(or 0)")),
            *_range_problems("--max-rps", self.max_rps, 1, MAX_RATE, "requests/s"),
            *_range_problems("--worker-rps", self.worker_rps, 0.5, MAX_RATE, "requests/s"),
            *_range_problems("--client-rps", self.wanted_rps, 0.5, MAX_RATE, "requests/s"),
            *_range_problems("--max-workers", self.max_workers, 1, MAX_WORKERS, "workers"),
            *self._endpoint_problems(),
        ]

    def _endpoint_problems(self) -> list[str]:
        if self.factories_file is None:
            return ["No endpoint: give --factories-file FILE (or --demo to try it out)."]
        return replace(self, step_time_s=1.0).plan(1.0, 1, self.output_dir).problems()

    def plan(self, rate: float, workers: int, folder: Path) -> WavePlan:
        """The wave that tries a rate; a low rate is sent for longer, so that there is something to judge."""
        seconds = max(self.step_time_s, min(LEAST_ARRIVALS / rate, LONGEST_STEP_FACTOR * self.step_time_s))
        return WavePlan(
            OpenLoop(Decimal(repr(rate))),
            Bounds(Decimal(f"{seconds:.3f}")),
            factories_file=self.factories_file,
            endpoint_name=self.endpoint_name,
            workers=workers,
            warmup_s=Decimal(repr(min(WARMUP_S, self.step_time_s))),
            output_dir=folder,
        )

    def to_json(self) -> dict[str, Any]:
        """The conditions as they stand in result.json."""
        return {**asdict(self), "factories_file": str(self.factories_file), "output_dir": str(self.output_dir)}


def _range_problems(flag: str, value: float | None, least: float, most: float, unit: str) -> list[str]:
    if value is None or (math.isfinite(value) and least <= value <= most):
        return []
    return [f"{flag} must be from {least:g} to {most:,} {unit}, not {value:g}."]
