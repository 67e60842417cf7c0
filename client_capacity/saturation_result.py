"""The highest rate of a client, as measured: a row for each number of workers, what limits each, and the text."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from client_capacity.deprecated_names import (
    RPS_KEYS_GONE,
    FormerKeys,
)
from client_capacity.search import LimitedBy
from client_capacity.staircase import rate_text
from client_capacity.worker_saturation import (
    HEADROOM,
    at_least_text,
    disturbed_text,
    public_json,
    reason_text,
    share_text,
    steps_table,
)
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.wording import aligned, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from client_capacity.conditions import Conditions
    from client_capacity.search import HighestRate, Step

KIND = "rps_saturation"
TITLE = "CLIENT SATURATION – InferenceBenchmarker"
ClientLimit = LimitedBy | Literal["max_workers", "wanted"]
LEAST_GAIN = 1.05


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
    def of(cls, workers: int, found: HighestRate) -> WorkersRow:
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
        steps = [step for row in self.rows for step in row.steps]
        if self.limited_by == "client" and not self.rate and steps:
            least = rate_text(min(step.rate for step in steps))
            yield f"This client cannot even send {least}/s: {steps[-1].reason}. Make invoke faster."
        elif self.limited_by == "client":
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
