"""The path arrival -> attempt -> record: the microseconds this project is about.

A session is what an arrival begins (``sessions``), a turn one question of it, an attempt one request that is sent for
it (``invocation``, or a task of a Locust file). Where a session has several turns (``conversations``) each is an
arrival with its number. Each says what it does and none what the others do: any way to send goes with any way to try
again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event

from inference_benchmarker.engine.worker import statuses
from inference_benchmarker.engine.worker.payloads import requested_model
from inference_benchmarker.engine.worker.raised import Tracebacks
from inference_benchmarker.records.batch import FINISH_SHIFT, HAS_STREAM, OUTCOME
from inference_benchmarker.records.error_cause import causes, local_errno
from inference_benchmarker.records.names import MAX_NAMES
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK, Ledger
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.worker.in_flight import Slot
    from inference_benchmarker.plan.pacing import Arrival
    from inference_benchmarker.records.batch_writer import BatchWriter
    from inference_benchmarker.records.response import Response

logger = logging.getLogger("inference_benchmarker.failed_request")


class RequestTimeout(gevent.Timeout):
    """A request took longer than ``--request-timeout``."""


class AbandonedError(Exception):
    """A request that was still in flight when the drain ended."""


class FailedRequestError(Exception):
    """Stands for a failure in Locust's statistics: its text is the error's key, so they stay small."""


Attempt = Callable[["Slot"], None]
"""Sends the request that a slot is for, and returns when it is over; it raises where the request failed."""
Turn = Callable[["Slot", "Arrival", Attempt], None]
"""Sends the requests of one turn of a session: an attempt (``Requests.execute``), or several (``Retrying.execute``)."""
Report = Callable[[str, float, int, Exception | None], None]
"""Reports a request to Locust: its name, response time (ms), response length (bytes), and why it failed."""


def make_attempt(attempt: Attempt, slot: Slot, timer: gevent.Timeout | None) -> None:
    """Make an attempt until a timer goes off, and have the slot know what it raised. Closes the timer."""
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


class Requests:
    """Sends a worker's requests and keeps its books: each attempt of an arrival becomes exactly one record.

    One whose record cannot be written, for want of memory, has none, and is not counted as over: in the ledger it
    stays in flight.

    ``report`` is called once for each sent request. ``requested_model``: the model that the request of a slot asks
    for, "" where it names none. ``on_failure`` is given the arrival, the error's key and the error of each failed
    request. ``check`` raises where the answer that a slot keeps is not as expected, and may add to its usage.
    ``waiting`` counts the clients that pause between two requests of an arrival, and the sessions that are open.
    ``is_over``: nothing more is begun. ``hear`` lets a slot's session go on before the record of its turn is
    written, which says whether it ended.
    """

    def __init__(
        self,
        report: Report,
        writer: BatchWriter,
        timeout_s: float | None = None,
        *,
        requested_model: Callable[[Slot], str] = lambda slot: requested_model(slot.payload),
        on_failure: Callable[[int, str, BaseException], None] | None = None,
        check: Callable[[Slot], None] | None = None,
    ) -> None:
        self._report_to_locust = report
        self.writer = writer
        self._sendings = writer.feed.sendings
        self._timeout_s = timeout_s
        self._requested_model = requested_model
        self._on_failure = on_failure or Tracebacks(logger.warning, writer.cut).take
        self._check = check
        self._errors: dict[str, FailedRequestError] = {}
        self._said: set[str] = set()
        self._models: dict[str, int] = {}  # the labels of those that answer under another name than they are asked by
        self.ledger = Ledger()
        self.refused: Counter[str] = Counter()  # requests that failed for want of something of this host's, by errno
        self.hidden: Counter[str] = Counter()  # requests that were answered all the same, by their response's status
        self.textless = 0  # streams none of whose pieces showed text
        self.slots: list[Slot] = []
        self.t0 = 0
        self.hear: Callable[[Slot], None] | None = None
        self.open = True
        self.is_over = False
        self.in_flight = self.waiting = 0
        self._stopped = Event()

    def stop(self) -> None:
        """Begin nothing more but what the scheduler hands out; what is in flight goes on."""
        self.is_over = True
        self._stopped.set()

    def is_awaited(self, due: int) -> bool:
        """Wait, between two requests of an arrival, until the next is due; False where the wave ended before."""
        self.waiting += 1
        gevent.sleep(0)  # an invoke that fails at once must not starve the other slots and the reports
        while not self.is_over and (left := due - (monotonic_ns() - self.t0)) > 0:
            try:
                self._stopped.wait(left / NS)
            except BaseException:  # a timer the user's code left behind must not end the slot
                logger.warning("a leftover of an earlier attempt reached a client that waits", exc_info=True)
        self.waiting -= 1
        return not self.is_over

    def unreported(self) -> dict[str, Any]:
        """The members of a report beside its records, of what came since ``mark_reported``."""
        return {}

    def mark_reported(self) -> None:
        """Forget what `unreported` returned: a report has it."""

    def execute(
        self,
        slot: Slot,
        arrival: Arrival,
        attempt: Attempt,
        decide: Callable[[Slot, Arrival], None] | None = None,
    ) -> None:
        """Send one request and record it, whatever it raises; before, ``decide`` says whether another follows."""
        now = monotonic_ns() - self.t0
        if arrival.index >= 0:
            self.ledger.sent += 1
            self._sendings.append((arrival.due, now))
        self.in_flight += 1
        slot.begin(arrival, now)
        make_attempt(attempt, slot, None if self._timeout_s is None else RequestTimeout.start_new(self._timeout_s))
        slot.done = monotonic_ns() - self.t0
        self.in_flight -= 1
        if statuses.failed_statuses:
            self._note_status(slot, arrival)
        if self._check is not None and slot.failure is None:
            self._check_answer(slot)
        if decide is not None:
            decide(slot, arrival)
        if (self.hear is None or self._is_heard(slot, arrival)) and self.open:
            self._record(slot, arrival)
        slot.arrival = None

    def _note_status(self, slot: Slot, arrival: Arrival) -> None:
        """Count a request whose response failed, though nothing was raised."""
        try:
            status = statuses.take()
            if status is not None and slot.failure is None and arrival.index >= 0:
                self.hidden[str(status)] += 1
        except MemoryError:  # it is recorded all the same
            return

    def _is_heard(self, slot: Slot, arrival: Arrival) -> bool:
        """Let a slot's session go on, which may take its time; False where there was no memory for it."""
        assert self.hear is not None
        try:
            if self.open:
                self.hear(slot)
        except BaseException as error:
            if self.open:  # else it is recorded as what it was then
                self._take_back(slot, arrival, error)
            return False
        return True

    def _check_answer(self, slot: Slot) -> None:
        """Fail a request whose answer is not as expected: it is over by then, so no time of its own has the check."""
        assert self._check is not None
        try:
            self._check(slot)
        except BaseException as error:  # an answer may be of a class of the user's
            slot.failure = error
        if slot.session is None:
            slot.answer = None  # which no session hears

    def close(self) -> None:
        """Record nothing more, and begin nothing."""
        self.open = False
        self.is_over = True

    def abandon(self) -> None:
        """End the books: what is in flight now is recorded as abandoned, at its age."""
        self.close()
        now = monotonic_ns() - self.t0
        counted = []
        for slot in self.slots:
            if slot.arrival is not None:
                slot.done = now
                arrival = slot.arrival
                try:
                    self._write(slot, arrival, ABANDONED)
                except BaseException as error:
                    self._take_back(slot, arrival, error)
                else:
                    if arrival.index >= 0:
                        counted.append(slot)
        for slot in counted:  # after the books are closed: a listener may let other greenlets run
            self._report(slot, AbandonedError("abandoned"))

    def _record(self, slot: Slot, arrival: Arrival) -> None:
        failure = slot.failure
        try:
            if failure is None:
                self._write(slot, arrival, OK)
            else:
                found = causes(failure)
                number, key = self.writer.error(failure, found)
                self._write(slot, arrival, FAILED, number)
        except BaseException as error:
            self._take_back(slot, arrival, error)
            return
        try:
            if failure is not None:
                self._tell_failure(slot, arrival, failure, key, found)
                slot.failure = None  # with its traceback, and so the connection that the attempt gave up
                return
            slot.payload = None  # idle slots would keep all that were ever in flight at a time
            if arrival.index >= 0:
                self._report(slot, None)
        except MemoryError as error:  # it is recorded, and its slot goes on
            self._say("reported to Locust", error)

    def _tell_failure(
        self, slot: Slot, arrival: Arrival, failure: BaseException, key: str, found: Sequence[BaseException]
    ) -> None:
        self._on_failure(arrival.index, key, failure)
        if arrival.index >= 0:
            if name := local_errno(found):
                self.refused[name] += 1
            self._report(slot, self._errors.setdefault(key, FailedRequestError(key)))

    def _take_back(self, slot: Slot, arrival: Arrival, error: BaseException) -> None:
        """Leave nothing in the records of a request that could not be written, and let nothing follow it."""
        slot.arrival = slot.payload = slot.answer = slot.times = slot.usage = slot.failure = None  # memory is short
        slot.again = False
        if slot.session is not None:
            slot.session.following = None
        try:
            self.writer.take_back(arrival.index, arrival.due, slot.sent, slot.done)
        except MemoryError:  # it is taken back later
            pass
        else:
            self._say("recorded", error)
        if not isinstance(error, Exception):  # somebody ends this greenlet
            raise error

    def _say(self, failed: str, error: BaseException) -> None:
        """Log the first request of which something could not be done; the report has their number."""
        try:  # not suppress(), which is an object itself
            if failed not in self._said:
                self._said.add(failed)
                logger.error("a request could not be %s: %s", failed, type(error).__name__)
        except MemoryError:
            pass

    def _write(self, slot: Slot, arrival: Arrival, outcome: int, error: int = 0) -> None:
        """Write and count a request: of this arrival, the slot's turn of it, and the slot's attempt at that.

        To count it is the last step: where that or another raises, what was written is taken back.
        """
        usage, writer = slot.usage, self.writer
        if not slot.label:
            if usage is not None and usage.model:
                self._label_by_answer(slot, usage.model)
            elif outcome:
                self._label_by_payload(slot)
        is_stream = usage is not None or slot.times is not None
        if usage is not None:
            slot.size = slot.size if usage.bytes is None else usage.bytes
            outcome |= writer.finish_reasons[usage.finish_reason or ""] << FINISH_SHIFT
        if is_stream:
            outcome |= HAS_STREAM
        writer.add(
            arrival.index, arrival.due, slot.sent, slot.done, slot.build_ns, slot.size, slot.label, error, outcome
        )
        if is_stream:
            self._write_stream(slot, usage)
        session = slot.session
        if session is not None:  # here, since a call would take as long as half of it
            writer.turns.append((NONE if slot.attempt else session.think_ns, session.turn, session.ended))
        if slot.attempt:
            writer.add_attempt(slot.attempt, slot.arrived)
        slot.arrival = None
        if arrival.index >= 0:
            self._count(slot, outcome & OUTCOME)

    def _count(self, slot: Slot, outcome: int) -> None:
        """Count a request by its outcome, and the session that ended with it, if one did: both, or neither."""
        ledger = self.ledger
        if slot.session is not None and slot.session.ended:
            ledger.end_session(slot.session.ended, outcome)
        elif outcome == OK:
            ledger.ok += 1
        elif outcome == FAILED:
            ledger.failed += 1
        else:
            ledger.abandoned += 1

    def _write_stream(self, slot: Slot, usage: Response | None) -> None:
        """Add the pieces of an answer, its usage and the metrics of the user's own."""
        tokens_in = tokens_out = None
        if usage is not None:
            tokens_in, tokens_out = usage.tokens_in, usage.tokens_out
        times = slot.times
        self.writer.add_stream(
            times, NONE if tokens_in is None else tokens_in, NONE if tokens_out is None else tokens_out
        )
        if slot.thought and times:
            self.writer.add_first_answer(times, slot.thought)
        if usage is not None and usage.metrics:
            self.writer.add_metrics(usage.metrics)

    def _label_by_answer(self, slot: Slot, model: str) -> None:
        """The model that answered; it may have been asked under another name, which is remembered."""
        slot.label = self.writer.labels[model]
        if type(slot.payload) is dict:
            asked = slot.payload.get("model")
            if type(asked) is str and asked != model and len(self._models) < MAX_NAMES:
                self._models[asked] = slot.label

    def _label_by_payload(self, slot: Slot) -> None:
        """The model that was asked, under the name by which it answers, where no answer names one."""
        asked = self._requested_model(slot)
        slot.label = self._models.get(asked) or self.writer.labels[asked]

    def _report(self, slot: Slot, exception: Exception | None) -> None:
        """Report to Locust, once for each sent request; it is recorded, so what a listener raises ends no slot."""
        try:
            name = self.writer.labels.name(slot.label) or "invoke"
            self._report_to_locust(name, (slot.done - slot.sent) / 1e6, max(slot.size, 0), exception)
        except BaseException as error:
            self._say("reported to Locust", error)
