"""One worker of a wave, as its reports show it. Their content is untrusted. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.data.typed import require
from inference_benchmarker.facts.client_use import LoopDelay, WorkerUse
from inference_benchmarker.records.batch import OUTCOME
from inference_benchmarker.records.columns import MOST_ATTEMPT
from inference_benchmarker.records.record import ABANDONED, OUTCOMES, Ledger
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

MOST_DELAYS = 1 << 17  # of a worker's event loop, which are held: 87 minutes of them


@dataclass(slots=True)
class WorkerState:
    """One worker's reports so far.

    ``last_due``: when the last arrival of them was due. ``last_done``: the last answer of the window. ``outcomes``: of
    requests that were counted, how many of each.
    """

    ledger: Ledger = field(default_factory=Ledger)
    at: int = 0
    final: bool = False
    changes: int = 0
    lost_at: int | None = None
    silence_ns: int = 0
    use: dict[str, Any] = field(default_factory=dict)
    delays_us: StreamingHistogram = field(default_factory=lambda: StreamingHistogram(MOST_DELAYS))
    labels: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    finish_reasons: list[str] = field(default_factory=list)
    metrics: list[str] = field(default_factory=list)
    rows: int = 0
    warmup: int = 0
    counted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    last_due: int = 0
    last_done: int | None = None

    @property
    def counted_ledger(self) -> Ledger:
        """The ledger of requests that were counted: those of which a worker forgot the counts are not over."""
        return replace(self.ledger, **{name: min(getattr(self.ledger, name), self.outcomes[name]) for name in OUTCOMES})

    def take_cells(self, cells: Iterable[Mapping[str, Any]]) -> None:
        """Take in the outcomes of a batch's cells, which were found to be some."""
        for cell in cells:
            for name in OUTCOMES:
                counts = cell.get(name, 0)
                self.outcomes[name] += sum(counts[1::2]) if type(counts) is list else counts

    @property
    def worker_use(self) -> WorkerUse:
        """The worker's use, by its last report."""
        if not self.use:
            return WorkerUse()
        delay = self.delays_us.distribution()
        summed = None
        if delay is not None:
            p50, p95, p99 = (delay.percentile(percent) / 1e6 for percent in (50, 95, 99))
            summed = LoopDelay(delay.count, p50, p95, p99, delay.maximum / 1e6)
        return replace(decoded({**self.use, "silence_s": self.silence_ns / 1e9}, WorkerUse), loop_delay=summed)

    def take_rows(self, rows: npt.NDArray[Any], attempts: list[list[int]], turns: npt.NDArray[Any]) -> None:
        """Take in a batch's requests; ``attempts``: pairs of a row of it and the how many-th of its arrival it is.

        ``turns``: which turn of its session each is; none where there are no sessions.
        """
        if len(turns) not in (0, len(rows)):
            raise ValueError(f"{len(turns):,} turns of {len(rows):,} requests")
        if len(attempts) > len(rows):
            raise ValueError(f"{len(attempts):,} attempts of {len(rows):,} requests")
        require(attempts, list[list[int]], "attempts")
        if not all(len(pair) == 2 and 0 <= pair[0] < len(rows) and 0 < pair[1] <= MOST_ATTEMPT for pair in attempts):
            raise ValueError("an attempt of no request")
        self.rows += len(rows)
        self.warmup += int(np.count_nonzero(rows["index"] < 0))
        first = np.ones(len(rows), bool)
        first[[row for row, _ in attempts]] = False
        if len(turns):
            first &= turns["turn"] <= 1
        self.last_due = max(self.last_due, int(rows["due"][first].max(initial=0)))
        answered = (rows["index"] >= 0) & (rows["outcome"] & OUTCOME != ABANDONED)
        if answered.any():
            done = int(rows["done"][answered].max())
            self.last_done = done if self.last_done is None else max(self.last_done, done)
