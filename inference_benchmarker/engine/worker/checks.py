"""The check of a request's answer, once the request is over: as a canary, or against what is expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from inference_benchmarker.engine.endpoint.expected import AnswerCheck
    from inference_benchmarker.engine.worker.canaries import Canaries
    from inference_benchmarker.engine.worker.slot import Slot
    from inference_benchmarker.records.batch_writer import BatchWriter


class Checks:
    """Holds the answer that a slot keeps against all that is known of it."""

    def __init__(self, check: AnswerCheck | None, canaries: Canaries | None, writer: BatchWriter) -> None:
        self._check = check
        self._canaries = canaries
        self._writer = writer

    def __call__(self, slot: Slot) -> None:
        """Add to a slot's usage what its canary tells. Raises UnexpectedAnswerError."""
        assert slot.arrival is not None
        if self._canaries is not None:
            told = self._canaries.judge(slot.arrival.index, slot.answer)
            if told:
                self._writer.metric_numbers.take_up(told)
                metrics = Response(metrics=told)
                slot.usage = metrics if slot.usage is None else slot.usage.updated(metrics)
            if self._canaries.is_one(slot.arrival.index):
                return
        if self._check is not None:
            self._check(slot.answer)
