"""The path arrival -> payload -> invoke -> record: the microseconds this project is about."""

from __future__ import annotations

import logging
from collections import Counter
from numbers import Number
from time import monotonic_ns
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

import gevent

from inference_benchmarker.engine.worker.asked_model import MOST_ONCE, asked_model
from inference_benchmarker.engine.worker.raised import Tracebacks
from inference_benchmarker.records.error_cause import causes, local_errno
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.records.names import MAX_NAMES
from inference_benchmarker.records.record import (
    ABANDONED,
    FAILED,
    FINISH_SHIFT,
    HAS_STREAM,
    NONE,
    OK,
    BatchWriter,
    Ledger,
)
from inference_benchmarker.records.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.endpoint import Endpoint
    from inference_benchmarker.engine.worker.slot import Slot
    from inference_benchmarker.plan.pacing import Arrival


logger = logging.getLogger("inference_benchmarker.failed_request")


class RequestTimeout(gevent.Timeout):
    """A request took longer than ``--request-timeout``."""


class AbandonedError(Exception):
    """A request that was still in flight when the drain ended."""


class PayloadError(Exception):
    """Building or labelling a payload raised: nothing was sent."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(error_text(cause))
        self._benchmark_detail = error_key(cause)


class FailedRequestError(Exception):
    """Stands for a failure in Locust's statistics: its text is the error's key, so they stay small."""


class Requests:
    """Sends a worker's requests and keeps its ledger; every arrival becomes exactly one record.

    Subclasses say what one request is, by the ``attempt`` they pass to ``execute``.
    """

    kinds = 1

    def __init__(self, fire: Callable[..., None], writer: BatchWriter, request_timeout_s: float | None) -> None:
        self._fire = fire
        self._writer = writer
        self._sendings = writer.feed.sendings
        self._timeout_s = request_timeout_s
        self._errors: dict[str, FailedRequestError] = {}
        self._tracebacks = Tracebacks(logger.warning, writer.cut)
        self._models: dict[str, int] = {}  # the labels of those that answer under another name than they are asked by
        self.ledger = Ledger()
        self.refused: Counter[str] = Counter()  # requests that failed for want of something of this host's, by errno
        self.slots: list[Slot] = []
        self.t0 = 0
        self.open = True
        self.in_flight = 0
        self.waiting = 0  # clients that are to try again

    def stop(self) -> None:
        """Begin nothing more but what the scheduler hands out."""

    def kind(self, index: int) -> int:  # noqa: ARG002 - one kind of slot serves every arrival
        """Which kind of slot sends this arrival."""
        return 0

    def closed_kinds(self, concurrency: int) -> list[int]:
        """The kind of each of a closed loop's slots."""
        return [0] * concurrency

    def serve(self, slot: Slot) -> None:
        """A slot's life: one arrival after the other."""
        raise NotImplementedError

    def execute(self, slot: Slot, arrival: Arrival, attempt: Callable[[Slot], None]) -> None:
        """Send one request and record it, whatever it raises."""
        now = monotonic_ns() - self.t0
        if arrival.index >= 0:
            self.ledger.sent += 1
            self._sendings.append((arrival.due, now))
        self.in_flight += 1
        slot.begin(arrival, now)
        timer = None if self._timeout_s is None else RequestTimeout.start_new(self._timeout_s)
        try:
            attempt(slot)
        except BaseException as error:
            slot.failure = slot.failure or error
        finally:
            if timer is not None:
                if not timer.pending:  # it went off, whatever the client made of it
                    slot.failure = timer
                timer.close()
                timer = None  # its traceback holds this frame: what the attempt had open would stay so for a while
        slot.done = monotonic_ns() - self.t0
        self.in_flight -= 1
        if self.open:
            self._record(slot, arrival)
        slot.arrival = None

    def abandon(self) -> None:
        """End the books: what is in flight now is recorded as abandoned, at its age."""
        self.open = False
        now = monotonic_ns() - self.t0
        counted = []
        for slot in self.slots:
            if slot.arrival is not None:
                slot.done = now
                self._write(slot, slot.arrival, ABANDONED)
                if slot.arrival.index >= 0:
                    self.ledger.abandoned += 1
                    counted.append(slot)
        for slot in counted:  # after the books are closed: a listener may let other greenlets run
            self._report(slot, AbandonedError("abandoned"))

    def _record(self, slot: Slot, arrival: Arrival) -> None:
        if slot.failure is None:
            self._write(slot, arrival, OK)
            slot.payload = None  # idle slots would keep all that were ever in flight at a time
            if arrival.index >= 0:
                self.ledger.ok += 1
                self._report(slot, None)
            return
        found = causes(slot.failure)
        number, key = self._writer.error(slot.failure, found)
        self._write(slot, arrival, FAILED, number)
        self._tracebacks.take(arrival.index, key, slot.failure)
        if arrival.index >= 0:
            self.ledger.failed += 1
            if name := local_errno(found):
                self.refused[name] += 1
            self._report(slot, self._errors.setdefault(key, FailedRequestError(key)))
        slot.failure = None  # with its traceback, and so the connection that the attempt gave up

    def _write(self, slot: Slot, arrival: Arrival, outcome: int, error: int = 0) -> None:
        usage, add = slot.usage, self._writer.add
        if not slot.label:
            if usage is not None and usage.model:
                self._label_by_answer(slot, usage.model)
            elif outcome:
                self._label_by_payload(slot)
        if usage is None and slot.times is None:
            add(arrival.index, arrival.due, slot.sent, slot.done, slot.build_ns, slot.size, slot.label, error, outcome)
            return
        tokens_in = tokens_out = NONE
        if usage is not None:
            slot.size = slot.size if usage.bytes is None else usage.bytes
            tokens_in = NONE if usage.tokens_in is None else usage.tokens_in
            tokens_out = NONE if usage.tokens_out is None else usage.tokens_out
            if usage.finish_reason:
                outcome |= self._writer.finish_reasons[usage.finish_reason] << FINISH_SHIFT
        outcome |= HAS_STREAM
        add(arrival.index, arrival.due, slot.sent, slot.done, slot.build_ns, slot.size, slot.label, error, outcome)
        self._writer.add_stream(slot.times, tokens_in, tokens_out)
        if usage is not None and usage.metrics:
            self._writer.add_metrics(usage.metrics)

    def _label_by_answer(self, slot: Slot, model: str) -> None:
        """The model that answered; it may have been asked under another name, which is remembered."""
        slot.label = self._writer.labels[model]
        if type(slot.payload) is dict:
            asked = slot.payload.get("model")
            if type(asked) is str and asked != model and len(self._models) < MAX_NAMES:
                self._models[asked] = slot.label

    def _label_by_payload(self, slot: Slot) -> None:
        """The model that was asked, under the name by which it answers, where no answer names one."""
        asked = self._asked_model(slot)
        slot.label = self._models.get(asked) or self._writer.labels[asked]

    def _asked_model(self, slot: Slot) -> str:
        return asked_model(slot.payload)

    def _report(self, slot: Slot, exception: Exception | None) -> None:
        """Tell Locust, once for each sent request."""
        self._fire(
            request_type="invoke",
            name=self._writer.labels.name(slot.label) or "invoke",
            response_time=(slot.done - slot.sent) / 1e6,
            response_length=max(slot.size, 0),
            exception=exception,
            context={},
        )


class InvokeRequests(Requests):
    """Requests of a factories file: a payload, then ``invoke``."""

    def __init__(
        self,
        endpoint: Endpoint,
        seed: int,
        fire: Callable[..., None],
        writer: BatchWriter,
        request_timeout_s: float | None = None,
        *,
        row_of: Callable[[int], dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(fire, writer, request_timeout_s)
        self._row_of = row_of
        self._endpoint = endpoint
        self._invoke = endpoint.invoke
        self._seed = seed
        self._payload_labels: dict[int, int] = {}
        self._payload_models: dict[int, str] = {}

    def serve(self, slot: Slot) -> None:
        """Send one request after the other, as arrivals are handed over."""
        take, execute, attempt = slot.take, self.execute, self._attempt
        while (arrival := take()) is not None:
            execute(slot, arrival, attempt)

    def _attempt(self, slot: Slot) -> None:
        try:
            payload = slot.payload = self._payload(slot)
        except BaseException as error:
            raise PayloadError(error) from error
        finally:
            slot.sent = monotonic_ns() - self.t0
        result = self._invoke(payload)
        if result is None:
            return
        kind = type(result)
        if kind is bytes:
            slot.size = len(result)
        elif kind is GeneratorType:
            self._drive(slot, result)
        elif kind is str:
            slot.size = _size(result)
        elif isinstance(result, Response):
            slot.usage = result if kind is Response else result.checked()
            if slot.usage.metrics:
                self._writer.metric_numbers.take_up(slot.usage.metrics)
        elif kind is CoroutineType:
            result.close()
            raise TypeError("invoke returned a coroutine; expected it to return when the request is done")

    def _payload(self, slot: Slot) -> Any:
        """The payload, in hand before ``sent`` is stamped; building one is timed apart."""
        endpoint = self._endpoint
        if endpoint.payloads is not None:
            assert slot.arrival is not None
            which = endpoint.choose(self._seed, slot.arrival.index)
            payload = endpoint.payloads[which]
            if endpoint.label is not None:
                slot.label = self._payload_label(which, payload)
            return payload
        assert endpoint.build is not None
        begun = monotonic_ns()
        try:
            payload = endpoint.build() if self._row_of is None else endpoint.build(self._row(slot))
            if endpoint.label is not None:
                slot.label = self._writer.labels[str(endpoint.label(payload))]
        finally:
            slot.build_ns = monotonic_ns() - begun
        return payload

    def _row(self, slot: Slot) -> dict[str, Any]:
        """The row of the recording that the arrival is for."""
        assert self._row_of is not None
        assert slot.arrival is not None
        return self._row_of(slot.arrival.index)

    def _payload_label(self, which: int, payload: Any) -> int:
        """The label of a pre-computed payload, asked for once."""
        known = self._payload_labels.get(which)
        if known is None:
            assert self._endpoint.label is not None
            known = self._payload_labels[which] = self._writer.labels[str(self._endpoint.label(payload))]
        return known

    def _asked_model(self, slot: Slot) -> str:
        """That of a pre-computed payload is read once: failures come at the rate of the load."""
        if self._endpoint.payloads is None or slot.arrival is None:
            return super()._asked_model(slot)
        which = self._endpoint.choose(self._seed, slot.arrival.index)
        if which not in self._payload_models:
            self._payload_models[which] = asked_model(slot.payload, MOST_ONCE)
        return self._payload_models[which]

    def _drive(self, slot: Slot, stream: Any) -> None:
        """Run a generator to its end; each non-empty piece is a token's arrival."""
        times = slot.times = []
        t0, size = self.t0, 0
        for piece in stream:
            now = monotonic_ns() - t0
            kind = type(piece)
            if kind is str or kind is bytes:
                if not piece:
                    continue
                size += len(piece) if kind is bytes else _size(piece)
                slot.size = size
            elif isinstance(piece, Response):
                slot.usage = piece.checked() if slot.usage is None else slot.usage.updated(piece)
                if slot.usage.metrics:
                    self._writer.metric_numbers.take_up(slot.usage.metrics)
                continue
            elif not piece and not isinstance(piece, Number):  # 0 is the number of a token, too
                continue
            times.append(now)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
