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
from inference_benchmarker.records.user_metrics import check_metric_names
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    def number_of(self, metric: str) -> int:
        """The number that stands for a metric in the worker's reports; -1 where none has it."""
        return self.metrics.index(metric) if metric in self.metrics else -1

    def take_report(self, meta: Mapping[str, Any]) -> None:
        """Take in what a batch says beside its requests: the ledger, the worker's use, and names that are new.

        A spool of an older version lacks some of it.
        """
        self.ledger = Ledger.from_json(meta["ledger"])
        self.silence_ns = max(self.silence_ns, meta["at"] - max(self.at, 0))
        self.at, self.final = meta["at"], meta["final"]
        self.changes = meta.get("changes", 0)
        require(self.changes, int, "changes")
        self.use = meta.get("use", {})
        delays = self.use.pop("delays_us", [])
        require(delays, list[int], "delays_us")
        self.delays_us.add(delays)
        self.labels += meta["labels"]
        self.errors += meta["errors"]
        for kind, names in (("finish_reasons", self.finish_reasons), ("metrics", self.metrics)):
            new = meta.get(kind, [])
            require(new, list[str], kind)
            names.extend(new)
        check_metric_names(self.metrics)

    def take_counts(self, meta: Mapping[str, Any], size: int) -> None:
        """Take in what a batch counted, whose form was checked; its size bears out about as many requests."""
        for cell in meta.get("feed", []):
            for name in OUTCOMES:
                counts = cell.get(name, 0)
                self.outcomes[name] += sum(counts[1::2]) if type(counts) is list else counts
        self.counted += size
        self.last_due = max(self.last_due, meta["totals"]["last_due"])
        if done := meta["totals"]["last_done"]:
            self.last_done = max(self.last_done or 0, done)

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
