"""The conditions of a search for this client's capacity. Light: nothing is loaded that sends."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client_capacity.search import LEAST_REPEATS
from inference_benchmarker.errors import Problem, refuse
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import MAX_WORKERS, problems_of
from inference_benchmarker.plan.stage import MAX_RATE
from inference_benchmarker.words.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

WARMUP_S = 1.0
LEAST_ARRIVALS = 20
LONGEST_STEP_FACTOR = 4
LEAST_DRAIN_S = 5.0
DRAIN_FACTOR = 2
OPTIONAL = frozenset({"worker_rps", "saturation_users", "wanted_rps", "max_workers"})
WHOLE = frozenset({"repeats", "max_workers"})


@dataclass(frozen=True, slots=True)
class Conditions:
    """The endpoint, how a rate is tried and how far to go; rates are requests/s.

    ``lag_limit_s`` limits p99 of the schedule lag. ``step_time_s`` is how long a rate is sent, ``repeats`` how
    often the found one is tried again; ``start_rps`` the first and ``max_rps`` the most that is tried with one worker.
    For several workers: ``worker_rps``, which one holds (None: it is measured), ``wanted_rps``, which all are to hold
    (None: find the most), and ``max_workers`` (None: one more than the cores that this process may use).
    ``factory_settings``: texts in place of constants of the factories file. ``hosts``: those whose workers are
    tried, in turn, each with a number of its own; none: this one.
    """

    factories_file: Path | None
    endpoint_name: str | None = None
    lag_limit_s: float = 0.005
    step_time_s: float = 3.0
    repeats: int = 8
    max_rps: float = 20_000
    start_rps: float = 8.0
    worker_rps: float | None = None
    wanted_rps: float | None = None
    max_workers: int | None = None
    output_dir: Path = Path(".tmp")
    factory_settings: dict[str, str] = field(default_factory=dict)
    hosts: Hosts = field(default_factory=Hosts)

    def problems(self) -> list[Problem]:
        """Everything that is wrong with them; empty when the search can begin."""
        repeats = () if self.repeats == 0 else self._out_of_range("repeats", "--repeats", LEAST_REPEATS, 100, "(or 0)")
        return [
            *self._out_of_range("lag_limit_s", "--lag-limit", 0.0001, 10, "seconds"),
            *self._out_of_range("step_time_s", "--step-time", 0.2, 600, "seconds"),
            *repeats,
            *self._out_of_range("max_rps", "--max-rps", 1, MAX_RATE, "requests/s"),
            *self._out_of_range("start_rps", "--start-rps", 0.5, MAX_RATE, "requests/s"),
            *self._out_of_range("worker_rps", "--worker-rps", 0.5, MAX_RATE, "requests/s"),
            *self._out_of_range("wanted_rps", "--client-rps", 0.5, MAX_RATE, "requests/s"),
            *self._out_of_range("max_workers", "--max-workers", 1, MAX_WORKERS, "workers"),
            *self._endpoint_problems(),
            *self._hosts_problems(),
        ]

    def _hosts_problems(self) -> Iterator[Problem]:
        """The hosts' own problems are those of each plan."""
        for host in self.hosts.uncounted:
            text = f"--hosts {host.name}: give the maximum number of workers there, as in {host.name}*8."
            yield Problem(("hosts",), text)
        if self.hosts and self.max_workers is not None and self.max_workers > self.hosts.workers:
            text = f"--max-workers {self.max_workers}: --hosts name {self.hosts.workers} of them."
            yield Problem(("max_workers", "hosts"), text)

    def _out_of_range(self, name: str, flag: str, least: float, most: float, unit: str) -> Iterator[Problem]:
        value = getattr(self, name)
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            yield Problem((name,), f"{flag} must be from {least:g} to {most:,} {unit}, not {value:g}.")

    def _endpoint_problems(self) -> list[Problem]:
        if self.factories_file is None:
            text = "No endpoint: give its URL, or --factories-file FILE (or --demo to try the tool)."
            return [Problem(("factories_file",), text)]
        return problems_of(replace(self, step_time_s=1.0).plan(1.0, 1, self.output_dir))

    def plan(self, rate: float, workers: int, folder: Path) -> WavePlan:
        """The wave that tries a rate; a low rate is sent for longer, so that there is something to judge.

        What has not been answered long after the step's end says nothing more: the drain is short.
        """
        seconds = max(self.step_time_s, min(LEAST_ARRIVALS / rate, LONGEST_STEP_FACTOR * self.step_time_s))
        plan = WavePlan(
            OpenLoop(Decimal(repr(float(rate)))),
            Bounds(Decimal(f"{seconds:.3f}")),
            factories_file=self.factories_file,
            endpoint_name=self.endpoint_name,
            factory_settings=self.factory_settings,
            workers=workers,
            warmup_s=Decimal(repr(min(WARMUP_S, self.step_time_s))),
            drain_timeout_s=Decimal(f"{max(DRAIN_FACTOR * seconds, LEAST_DRAIN_S):.3f}"),
            output_dir=folder,
            abort=False,  # what the client can send is asked, whatever becomes of it
        )
        return plan.on(self.hosts).with_workers(workers) if self.hosts else plan

    def to_json(self) -> dict[str, Any]:
        """The conditions as they stand in result.json."""
        settings = {name: redact(text) for name, text in self.factory_settings.items()}
        paths = {"factories_file": str(self.factories_file), "output_dir": str(self.output_dir)}
        return {**asdict(self), **paths, "factory_settings": settings, "hosts": self.hosts.to_json()}


def numbers(**given: Any) -> dict[str, Any]:
    """Arguments of a search as plain numbers, or one BenchmarkError that names each of them that is none."""
    problems = [problem for name, value in given.items() if (problem := _number_problem(name, value))]
    refuse(problems)
    plain = {name: int if name in WHOLE else float for name in given}
    return {name: None if value is None else plain[name](value) for name, value in given.items()}


def _number_problem(name: str, value: Any) -> str:
    if value is None and name in OPTIONAL:
        return ""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return f"{name} must be a number, not {value!r}."
    if name in WHOLE and value != value // 1:
        return f"{name} must be a whole number, not {value}."
    return ""
