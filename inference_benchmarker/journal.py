"""What a wave's spool says so far: read while the wave runs for the live view, and once more when it is over."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inference_benchmarker.columns import BASE_DTYPE, STREAM_DTYPE, Records, WorkerColumns
from inference_benchmarker.distribution import Distribution
from inference_benchmarker.record import Ledger, split_batch
from inference_benchmarker.spool import BATCH, SpoolReader
from inference_benchmarker.usage import LoopDelay, Sample, WorkerUse

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


@dataclass(slots=True)
class WorkerJournal:
    """What one worker reported so far."""

    ledger: Ledger = field(default_factory=Ledger)
    at: int = 0
    final: bool = False
    lost_at: int | None = None
    silence_ns: int = 0
    use: dict[str, Any] = field(default_factory=dict)
    delays_us: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    base: list[npt.NDArray[Any]] = field(default_factory=list)
    streams: list[npt.NDArray[Any]] = field(default_factory=list)
    gaps: list[npt.NDArray[np.uint32]] = field(default_factory=list)

    @property
    def worker_use(self) -> WorkerUse:
        """What the worker used, as its last report tells."""
        if not self.use:
            return WorkerUse()
        delay = Distribution.of(self.delays_us)
        summed = None
        if delay is not None:
            p50, p95, p99 = (delay.percentile(percent) / 1e6 for percent in (50, 95, 99))
            summed = asdict(LoopDelay(delay.count, p50, p95, p99, delay.maximum / 1e6))
        return WorkerUse.from_json({**self.use, "silence_s": self.silence_ns / 1e9, "loop_delay": summed})

    def columns(self, number: int) -> WorkerColumns:
        """All batches joined."""
        return WorkerColumns(
            worker=number,
            base=_joined(self.base, BASE_DTYPE),
            streams=_joined(self.streams, STREAM_DTYPE),
            gaps=_joined(self.gaps, np.dtype(np.uint32)),
            labels=self.labels,
            errors=self.errors,
        )


class Journal:
    """The state of a wave as its spool tells it; ``read`` takes in what was appended since."""

    def __init__(self, spools: Iterable[Path], workers: int) -> None:
        self._readers = [SpoolReader(path) for path in spools]
        self.workers = [WorkerJournal() for _ in range(workers)]
        self.texts: dict[str, list[str]] = {}
        self.start: dict[str, Any] | None = None
        self.stop_at: int | None = None
        self.ended = False
        self.samples: list[Sample] = []
        self.foreign_connections = 0

    def add_spool(self, path: Path) -> None:
        """Go on in another file: the first one's disk was full."""
        self._readers.append(SpoolReader(path))

    def read(self) -> list[npt.NDArray[Any]]:
        """Take in the new frames; returns their request rows (``BASE_DTYPE``)."""
        fresh: list[npt.NDArray[Any]] = []
        for reader in self._readers:
            for kind, data in reader.frames():
                if kind == BATCH:
                    fresh.append(self._take_batch(data))
                else:
                    self._take_event(json.loads(data))
        return fresh

    def records(self) -> Records:
        """Every request reported so far."""
        return Records.of_workers(worker.columns(number) for number, worker in enumerate(self.workers))

    @property
    def ledger(self) -> Ledger:
        """The workers' own counts, added up."""
        return sum((worker.ledger for worker in self.workers), Ledger())

    def _take_event(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "start":
                self.start = event
            case "stop":
                self.stop_at = event["at"]
            case "lost":
                self.workers[event["worker"]].lost_at = event["at"]
            case "client":
                self.samples += [Sample(*values) for values in event["samples"]]
            case "foreign_connections":
                self.foreign_connections = event["count"]
            case "end":
                self.ended = True

    def _take_batch(self, data: bytes) -> npt.NDArray[Any]:
        meta, base, streams, gaps = split_batch(data)
        worker = self.workers[meta["worker"]]
        worker.ledger = Ledger.from_json(meta["ledger"])
        worker.silence_ns = max(worker.silence_ns, meta["at"] - max(worker.at, 0))
        worker.at, worker.final = meta["at"], meta["final"]
        worker.use = meta.get("use", {})  # a spool of an older version has none
        worker.delays_us += worker.use.pop("delays_us", [])
        worker.labels += meta["labels"]
        worker.errors += meta["errors"]
        for key, text in meta["texts"]:
            texts = self.texts.setdefault(key, [])
            if text not in texts and len(texts) < 3:
                texts.append(text)
        rows = np.frombuffer(base, BASE_DTYPE)
        worker.base.append(rows)
        worker.streams.append(np.frombuffer(streams, STREAM_DTYPE))
        worker.gaps.append(np.frombuffer(gaps, np.uint32))
        return rows


def _joined(parts: list[npt.NDArray[Any]], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
