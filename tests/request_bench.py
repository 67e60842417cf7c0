"""A worker's requests without a scheduler, a process or Locust: tokens in, records out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.engine.worker.sessions import invoke_sessions
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records.batch import split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.packed import WorkerColumns, unpacked

if TYPE_CHECKING:
    from inference_benchmarker.engine.endpoint.factories_file import Endpoint
    from inference_benchmarker.plan.retries import Retries
    from inference_benchmarker.records.record import RequestRecord


class Bench:
    """Requests without a scheduler: sends tokens one by one and reads back what was recorded."""

    def __init__(self, endpoint: Endpoint, timeout_s: float | None = None, retries: Retries | None = None) -> None:
        self.writer = BatchWriter()
        self.fired: list[dict[str, Any]] = []
        self.sessions = invoke_sessions(endpoint, 1, self._note, self.writer, timeout_s=timeout_s, retries=retries)
        self.requests = self.sessions.requests

    def _note(self, name: str, response_ms: float, length: int, exception: Exception | None) -> None:
        event = {"name": name, "response_time": response_ms, "response_length": length, "exception": exception}
        self.fired.append(event)

    def send(self, *indices: int) -> list[RequestRecord]:
        """Send these arrivals in one slot, all due at 0."""
        slot = Slot()
        self.requests.slots.append(slot)
        tokens = iter([Arrival(index, 0) for index in indices])
        slot.take = lambda: next(tokens, None)
        self.sessions.serve(slot)
        return self.records()

    def records(self) -> list[RequestRecord]:
        """Everything recorded since the last call."""
        meta, *sections = split_batch(self.writer.take({}))
        columns = WorkerColumns(
            worker=0,
            **unpacked(sections),
            labels=meta["labels"],
            errors=meta["errors"],
            finish_reasons=meta["finish_reasons"],
            metric_names=[*self.writer.metric_numbers],
            attempts=np.array(meta.get("attempts", []), np.int64).reshape(-1, 2),
        )
        return list(Records.of_workers([columns]))
