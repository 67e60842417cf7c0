"""The highest rate that this client holds, and with how many workers: ``find_rps_saturation``."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from client_capacity.conditions import Conditions, numbers
from client_capacity.former import (
    RPS_ARGUMENTS,
    RPS_ARGUMENTS_GONE,
    RPS_KEYS_GONE,
    FormerKeys,
    arguments_of_today,
)
from client_capacity.search import Found, LimitedBy, SearchSettings, search
from client_capacity.staircase import rate_text
from client_capacity.trial import Trials, trials
from client_capacity.worker_saturation import (
    HEADROOM,
    at_least_text,
    disturbed_text,
    public_json,
    reason_text,
    saturate_worker,
    share_text,
    steps_table,
    store,
)
from inference_benchmarker.system.host import usable_cores
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.wording import aligned, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client_capacity.search import Step

ClientLimit = LimitedBy | Literal["max_workers", "wanted"]

KIND = "rps_saturation"
TITLE = "CLIENT SATURATION – InferenceBenchmarker"
LEAST_GAIN = 1.05
GROWTH = 1.25


@dataclass(frozen=True, slots=True)
class WorkersRow:
    """The rate that so many workers hold together, in requests/s. CPU shares are those of the highest step held.

    ``limited_by`` None: the rate was given, not measured.
    """

    workers: int
    rate: float
    limited_by: LimitedBy | None
    worker_cpu_share: float | None = None
    host_cpu_share: float | None = None
    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, workers: int, found: Found) -> WorkersRow:
        """The row that a search makes."""
        held = [step for step in found.steps if step.held]
        top = max(held, key=lambda step: step.rate, default=None)
        return cls(
            workers,
            found.rate,
            found.limited_by,
            top.worker_cpu_share if top else None,
            top.host_cpu_share if top else None,
            found.steps,
        )

    def to_json(self) -> dict[str, Any]:
        """The row as it stands in result.json."""
        return {
            **asdict(self),
            "rate_per_worker": self.rate / self.workers,
            "steps": [step.to_json() for step in self.steps],
        }


@dataclass(frozen=True, slots=True)
class RpsSaturation(FormerKeys):
    """The rate that this client holds, in requests/s, and the fewest workers that hold it.

    ``limited_by`` "client": more workers do not send more. Otherwise the client holds at least ``rate``.
    """

    rows: tuple[WorkersRow, ...]
    limited_by: ClientLimit
    conditions: Conditions
    run_dir: Path | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    cores: int | None = None
    gone = RPS_KEYS_GONE

    def former(self) -> dict[str, Any]:
        """The keys of old; requests are requests/s."""
        return {
            "saturation_workers": self.workers,
            "saturation_requests": self.rate,
            "users_per_worker": self.rows[0].rate if self.rows else None,
            "results": [row.to_json() for row in self.rows],
            "run_dir": self.run_dir,
        }

    @property
    def rate(self) -> float:
        """The ceiling."""
        return max((row.rate for row in self.rows), default=0.0)

    @property
    def workers(self) -> int:
        """The fewest workers that hold the ceiling, but for less than 5%."""
        return next((row.workers for row in self.rows if row.rate * LEAST_GAIN > self.rate), 1)

    def workers_for(self, rate: float) -> int | None:
        """The fewest workers that hold a rate with room for hiccups, or without where none do.

        None: not shown by what was measured; ``advice_for`` says what to do. ValueError for a rate that is none.
        """
        if not rate > 0:
            raise ValueError(f"a rate must be above 0 requests/s, not {rate}")
        roomy = [row.workers for row in self.rows if row.rate * HEADROOM >= rate]
        tight = [row.workers for row in self.rows if row.rate >= rate]
        return next(iter(roomy + tight), None)

    def advice_for(self, rate: float) -> str:
        """The advice for a rate, in a sentence."""
        workers = self.workers_for(rate)
        if workers is None:
            return self._beyond(rate)
        held = next(row.rate for row in self.rows if row.workers == workers)
        room = "" if held * HEADROOM >= rate else ", with little headroom"
        return f"For {rate_text(rate)}/s use --workers {workers} ({workers} can send {rate_text(held)}/s{room})."

    def _beyond(self, rate: float) -> str:
        if self.limited_by != "client":
            return f"It is not known whether this client can send {rate_text(rate)}/s."
        if not self.rate:
            return f"This client cannot send {rate_text(rate)}/s: make invoke faster."
        clients = math.ceil(rate / (HEADROOM * self.rate))
        what = f"use a larger machine, or {clients} machines like it"
        return f"This client cannot send {rate_text(rate)}/s: {what}."

    def to_text(self) -> str:
        """A table of workers, the steps behind it and what follows."""
        lines = [TITLE, "-" * len(TITLE), *self._table(), *self._steps(), "", *self._closing()]
        return redact("\n".join(lines) + "\n")

    def to_json(self) -> dict[str, Any]:
        """The content of result.json; requests/s."""
        wanted = self.conditions.wanted_rps
        return public_json(
            {
                "schema_version": SCHEMA_VERSION,
                "kind": KIND,
                "rate": self.rate,
                "workers": self.workers,
                "limited_by": self.limited_by,
                "wanted": None if wanted is None else {"rate": wanted, "workers": self.workers_for(wanted)},
                "conditions": self.conditions.to_json(),
                "environment": self.environment,
                "rows": [row.to_json() for row in self.rows],
            }
        )

    def _table(self) -> Iterator[str]:
        rows = [["workers", "total/s", "a worker/s", "worker CPU", "host CPU", "limited by"]]
        for row in self.rows:
            rate = ("" if row.limited_by in ("client", None) else "≥ ") + rate_text(row.rate)
            a_worker = rate_text(row.rate / row.workers)
            shares = share_text(row.worker_cpu_share), share_text(row.host_cpu_share)
            rows.append([str(row.workers), rate, a_worker, *shares, self._limit_of(row)])
        yield from aligned(rows)

    def _limit_of(self, row: WorkersRow) -> str:
        if row.limited_by == "max_rps" and row is self.rows[-1]:
            return self.limited_by
        return row.limited_by or "(given)"

    def _steps(self) -> Iterator[str]:
        for row in self.rows:
            if row.steps:
                yield ""
                yield f"   {row.workers} worker{'s' if row.workers > 1 else ''}:"
                yield from steps_table(row.steps)

    def _closing(self) -> Iterator[str]:
        if self.limited_by == "client":
            yield (
                f"This client can send {rate_text(self.rate)}/s; use --workers {self.workers}: more workers do not "
                "send more."
            )
            yield f"Plan with up to {rate_text(self.rate * HEADROOM)}/s (80%), which leaves headroom."
        else:
            yield f"{at_least_text('This client', self.rate)} {self._reason()}"
        yield from self._late_hosts()
        if self.conditions.wanted_rps is not None:
            yield self.advice_for(self.conditions.wanted_rps)
        yield from self._disturbances()
        if self.run_dir is not None:
            yield f"Run directory: {self.run_dir}"

    def _late_hosts(self) -> Iterator[str]:
        """The host that was late most often, of those that sent beside others that were not."""
        missed = [step for step in self.rows[-1].steps if step.cause == "client"]
        counts = Counter(name for step in missed for name in step.late_hosts)
        for name, times in counts.most_common(1):
            steps = f"{times} of the {pluralize(len(missed), 'step', 'steps')}"
            yield f"{name} was the limit: it was late in {steps} that the client did not hold, when others were not."

    def _disturbances(self) -> Iterator[str]:
        """The signs of a machine that was not quiet."""
        steps = [step for row in self.rows for step in row.steps]
        yield from disturbed_text(steps, crowded=self.cores is not None and self.rows[-1].workers >= self.cores)
        for before, row in pairwise(self.rows):
            if row.limited_by == "client" and row.rate < before.rate:
                yield (
                    f"{row.workers} workers send less than {before.workers}: other programs, the primary or an "
                    "endpoint on this machine may have used the cores; repeat on a quiet machine."
                )

    def _reason(self) -> str:
        if self.limited_by == "wanted":
            return "No higher rate was tried, since no more is needed."
        if self.limited_by == "max_workers":
            more = "raise --max-workers"
            if self.conditions.hosts and self.rows[-1].workers == self.conditions.hosts.workers:
                more = "name more of them with --hosts"
            return f"More than {self.rows[-1].workers} workers were not tried: {more}."
        return reason_text(self.limited_by, self.rows[-1].steps)


def find_rps_saturation(
    factories_file: str | Path,
    saturation_users: float | None = None,
    *,
    endpoint_name: str | None = None,
    lag_limit_s: float = 0.005,
    step_time_s: float = 3.0,
    max_rps: float = 20_000,
    wanted_rps: float | None = None,
    max_workers: int | None = None,
    output_dir: str | Path = ".tmp",
    say: Callable[[str], None] = lambda _: None,
    **former: Any,
) -> RpsSaturation:
    """The highest rate that this client holds for the ``invoke`` of this file, and with how many workers.

    ``saturation_users`` is the rate one worker holds, as ``find_worker_saturation`` found it (None: measured
    first, more roughly). More workers are tried until all together hold less than 5% more, up to ``max_workers``
    (default: one more than the cores this process may use), or until they hold ``wanted_rps`` with room for hiccups.
    ``max_rps`` is the most that is tried per worker. What counts as held, ``say=print``, the run directories and what
    is raised, and ``former``: as for ``find_worker_saturation``.
    """
    todays = arguments_of_today("find_rps_saturation", former, RPS_ARGUMENTS, RPS_ARGUMENTS_GONE)
    given = numbers(
        saturation_users=saturation_users,
        lag_limit_s=lag_limit_s,
        step_time_s=step_time_s,
        max_rps=max_rps,
        wanted_rps=wanted_rps,
        **{"max_workers": max_workers, **todays},
    )
    conditions = Conditions(
        factories_file=Path(factories_file),
        endpoint_name=endpoint_name,
        worker_rps=given.pop("saturation_users"),
        output_dir=Path(output_dir),
        **given,
    )
    return measure_client(conditions, say)


def measure_client(conditions: Conditions, say: Callable[[str], None]) -> RpsSaturation:
    """``find_rps_saturation`` of conditions that are put together; stored in a folder of its own."""
    with trials(conditions, KIND, say) as tried:
        rows, limited_by = _measure_rows(conditions, tried)
        result = RpsSaturation(tuple(rows), limited_by, conditions, tried.folder, tried.environment, usable_cores())
        store(result, tried.folder)
        return result


def _measure_rows(conditions: Conditions, tried: Trials) -> tuple[list[WorkersRow], ClientLimit]:
    """A row for each number of workers, and why there are no more."""
    enough = math.inf if conditions.wanted_rps is None else conditions.wanted_rps / HEADROOM
    rows = [_first_row(conditions, tried, enough)]
    most = conditions.max_workers or (conditions.hosts.workers if conditions.hosts else usable_cores() + 1)
    while (end := limit_reached(rows, enough, conditions.max_rps)) is None:
        workers = rows[-1].workers + 1
        if workers > most:
            return rows, "max_workers"
        tried.say(f"{workers} workers:")
        limit = min(conditions.max_rps * workers, enough)
        settings = SearchSettings(start=rows[-1].rate * LEAST_GAIN, growth=GROWTH, max_rate=limit, repeats=0)
        try:
            rows.append(WorkersRow.of(workers, search(tried.measure(workers), settings, tried.say)))
        except KeyboardInterrupt:
            return rows, "interrupted"
    return rows, end


def _first_row(conditions: Conditions, tried: Trials, enough: float) -> WorkersRow:
    if conditions.worker_rps is not None:
        return WorkersRow(1, conditions.worker_rps, None)
    tried.say("1 worker:")
    return WorkersRow.of(
        1, saturate_worker(tried, min(conditions.max_rps, enough), repeats=0, start=conditions.start_rps)
    )


def limit_reached(rows: list[WorkersRow], enough: float, max_rps: float) -> ClientLimit | None:
    """Why no more workers are tried; None where they are."""
    last = rows[-1]
    # What a short step completed of the most that is wanted may round to a little less.
    held_it = last.limited_by == "max_rps" and enough <= max_rps * last.workers
    if last.limited_by in ("server", "errors", "interrupted"):
        return last.limited_by
    if last.rate >= enough or held_it:
        return "wanted"
    if not last.rate or (len(rows) > 1 and last.rate < LEAST_GAIN * rows[-2].rate):
        return "client"
    return None
