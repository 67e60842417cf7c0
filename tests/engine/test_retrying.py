"""Clients that try again: which failures, how often, when, and what is left of it in the books."""

from __future__ import annotations

import errno
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import gevent
import pytest

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.plan.retries import Backoff, Retries
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import NS
from tests.request_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class BotoError(Exception):
    def __init__(self, code: str, status: int) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class Clients(Bench):
    """A bench whose clients try again."""

    def __init__(self, endpoint: Endpoint, retries: Retries, bound_s: float | None = None) -> None:
        super().__init__(endpoint, bound_s, retries)

    def begin(self) -> tuple[Slot, Any]:
        """One arrival on its way in a greenlet of its own."""
        slot = Slot()
        self.requests.slots.append(slot)
        tokens = iter([Arrival(0, 0)])
        slot.take = lambda: next(tokens, None)
        return slot, gevent.spawn(self.sessions.serve, slot)


def raising(*failures: BaseException) -> Callable[[Any], bytes]:
    """An invoke that fails so, one after the other, then succeeds."""
    left = list(failures)

    def invoke(_: Any) -> bytes:
        if left:
            raise left.pop(0)
        return b"ok"

    return invoke


def wrapped(cause: BaseException) -> BaseException:
    error = RuntimeError("of a client")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (ConnectionResetError(errno.ECONNRESET, "reset"), True),
        (wrapped(ConnectionRefusedError(errno.ECONNREFUSED, "refused")), True),
        (TimeoutError("slow"), True),
        (wrapped(TimeoutError("slow")), True),
        (StatusError(429), True),
        (StatusError(408), True),
        (StatusError(500), True),
        (StatusError(503), True),
        (BotoError("ServiceUnavailable", 503), True),
        (BotoError("ThrottlingException", 400), True),
        (BotoError("ValidationException", 400), False),
        (BotoError("ModelError", 424), False),
        (StatusError(400), False),
        (StatusError(404), False),
        (StatusError(409), False),
        (TypeError("no such argument"), False),
        (ValueError("not valid"), False),
        (KeyError("choices"), False),
        (SystemExit(1), False),
        (PermissionError(errno.EACCES, "a file"), False),
    ],
)
def test_a_failure_that_may_be_gone_is_tried_again(failure: BaseException, again: bool) -> None:
    bench = Clients(Endpoint(invoke=raising(failure), payloads=["p"]), Retries(retries=1))
    records = bench.send(0)
    assert [record.outcome for record in records] == (["failed", "ok"] if again else ["failed"])


def test_each_attempt_is_a_record_due_when_it_may_begin() -> None:
    retries = Retries(retries=3, backoff=Backoff.parse("fixed:5ms"))
    bench = Clients(Endpoint(invoke=raising(StatusError(503), StatusError(503)), payloads=["p"]), retries)
    records = bench.send(0)
    assert [(record.index, record.attempt, record.outcome) for record in records] == [
        (0, 0, "failed"),
        (0, 1, "failed"),
        (0, 2, "ok"),
    ]
    for before, after in pairwise(records):
        assert after.due == before.done + 5_000_000 <= after.sent
    assert bench.requests.ledger == Ledger(sent=3, ok=1, failed=2, repeated=2)
    assert len(bench.fired) == 3


def test_a_client_gives_up_after_its_retries() -> None:
    bench = Clients(Endpoint(invoke=raising(*[StatusError(500)] * 9), payloads=["p"]), Retries(retries=2))
    assert [record.attempt for record in bench.send(0, 1)] == [0, 1, 2, 0, 1, 2]
    assert bench.requests.ledger.arrivals == 2


def test_an_attempt_that_takes_too_long_is_ended_and_tried_again() -> None:
    waits = iter([60, 60, 0])
    invoke = lambda _: gevent.sleep(next(waits))  # noqa: E731
    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), Retries(0.01, retries=5))  # type: ignore[arg-type]
    records = bench.send(0)
    assert [(record.outcome, record.error) for record in records] == [("failed", "ClientTimeout")] * 2 + [("ok", None)]


def test_a_client_that_swallows_its_time_limit_has_failed_by_it() -> None:
    def invoke(_: Any) -> bytes:
        try:
            gevent.sleep(60)
        except BaseException as error:
            raise ValueError("gave up") from error
        return b""

    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), Retries(0.01, retries=1))  # type: ignore[arg-type]
    assert [record.error for record in bench.send(0)] == ["ClientTimeout"] * 2


def test_the_request_timeout_bounds_all_attempts_together() -> None:
    invoke = lambda _: gevent.sleep(60)  # noqa: E731
    retries = Retries(0.2, retries=100)  # type: ignore[arg-type]
    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), retries, bound_s=0.5)
    records = bench.send(0)
    assert [record.error for record in records][-1] == "RequestTimeout"
    assert {record.error for record in records[:-1]} == {"ClientTimeout"}
    waiting = Clients(
        Endpoint(invoke=raising(*[StatusError(500)] * 9), payloads=["p"]),
        Retries(retries=9, backoff=Backoff.parse("fixed:30s")),
        bound_s=20,
    )
    assert len(waiting.send(0)) == 1, "a wait that ends after the bound is not begun"


def test_what_is_tried_again_is_the_same_request() -> None:
    made, seen = [], []

    def build() -> object:
        made.append(object())
        return made[-1]

    def invoke(payload: object) -> None:
        seen.append(payload)
        if len(seen) < 3:
            raise StatusError(503)

    endpoint = Endpoint(invoke=invoke, build=build, label=lambda _: "m")
    bench = Clients(endpoint, Retries(retries=2))
    records = bench.send(0)
    assert len(made) == 1
    assert seen == made * 3
    assert [record.label for record in records] == ["m"] * 3
    assert [record.build_ns > 0 for record in records] == [True, False, False]
    assert bench.requests.slots[0].kept is None


def test_a_payload_that_cannot_be_built_is_not_tried_again() -> None:
    def build() -> object:
        raise ConnectionResetError

    bench = Clients(Endpoint(invoke=lambda _: None, build=build), Retries(retries=3))
    assert [record.error for record in bench.send(0)] == ["PayloadError ConnectionResetError"]


def test_a_stream_that_breaks_after_its_first_piece_is_not_tried_again() -> None:
    def invoke(_: Any) -> Any:
        yield "a"
        raise ConnectionResetError

    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), Retries(retries=3))
    assert len(bench.send(0)) == 1


@pytest.mark.parametrize("end", ["stop", "abandon"])
def test_a_client_that_waits_when_the_wave_ends_sends_nothing_more(end: str) -> None:
    retries = Retries(retries=5, backoff=Backoff.parse("fixed:60s"))
    bench = Clients(Endpoint(invoke=raising(*[StatusError(500)] * 9), payloads=["p"]), retries)
    _, greenlet = bench.begin()
    while not bench.requests.waiting:
        gevent.sleep(0.001)
    assert bench.requests.in_flight == 0
    if end == "abandon":
        bench.requests.abandon()
    bench.requests.stop()
    greenlet.join(5)
    assert (greenlet.ready(), bench.requests.waiting) == (True, 0)
    assert [record.outcome for record in bench.records()] == ["failed"]
    assert bench.requests.ledger == Ledger(sent=1, failed=1)


def test_what_is_in_flight_at_the_end_is_abandoned_and_not_tried_again() -> None:
    release = gevent.event.Event()

    def invoke(_: Any) -> None:
        release.wait()
        raise ConnectionResetError

    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), Retries(retries=5))
    _, greenlet = bench.begin()
    gevent.sleep(0)
    bench.requests.abandon()
    release.set()
    greenlet.join(5)
    assert [record.outcome for record in bench.records()] == ["abandoned"]
    assert bench.requests.ledger == Ledger(sent=1, abandoned=1)


def test_a_timer_that_user_code_left_behind_does_not_end_a_wait() -> None:
    left = [gevent.Timeout(0.005)]

    def invoke(_: Any) -> None:
        if left:
            left.pop().start()
            raise StatusError(500)

    bench = Clients(Endpoint(invoke=invoke, payloads=["p"]), Retries(retries=1, backoff=Backoff.parse("fixed:20ms")))
    first, second = bench.send(0)
    assert second.due == first.done + NS // 50 <= second.sent


def test_warmup_is_tried_again_and_not_counted() -> None:
    bench = Clients(Endpoint(invoke=raising(StatusError(500)), payloads=["p"]), Retries(retries=1))
    assert [(record.index, record.attempt) for record in bench.send(-1)] == [(-1, 0), (-1, 1)]
    assert bench.requests.ledger == Ledger()
