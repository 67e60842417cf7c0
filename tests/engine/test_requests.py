"""One token becomes one record, whatever invoke does."""

from __future__ import annotations

import errno
import json
import socket
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from multiprocessing.pool import ApplyResult
from typing import TYPE_CHECKING, Any, Self

import gevent
import pytest
from gevent import Greenlet
from gevent.event import AsyncResult

from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker import payloads as worker_payloads
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.facts.returned import StatusError, look_of
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records.response import Response
from inference_benchmarker.words.units import NS
from tests.request_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.records.record import RequestRecord


def one(invoke: Callable[[Any], Any], payload: Any = "p") -> RequestRecord:
    """The record of a single request."""
    (record,) = Bench(Endpoint(invoke=invoke, payloads=[payload])).send(0)
    return record


async def _async_invoke(payload: object) -> None:
    """An async function that got past the loader, e.g. behind a lambda."""


@pytest.mark.parametrize(
    ("result", "size"),
    [(None, None), (b"", 0), (b"abc", 3), ("abc", 3), ("äö", 4), ("\ud800", 3), (17, None), ({"a": 1}, None)],
)
def test_a_result_is_a_success_and_bytes_and_text_give_its_size(result: object, size: int | None) -> None:
    record = one(lambda _: result)
    assert (record.outcome, record.bytes, record.chunks, record.error) == ("ok", size, None, None)


def test_a_response_gives_its_numbers_and_the_model_as_label() -> None:
    record = one(lambda _: Response(tokens_in=3, tokens_out=4, bytes=5, model="m"))
    assert (record.tokens_in, record.tokens_out, record.bytes, record.label) == (3, 4, 5, "m")
    assert record.first_token is None
    assert record.chunks is None


def test_a_stream_counts_its_pieces_and_keeps_every_gap() -> None:
    def invoke(_: object) -> Any:
        yield ""
        yield "a"
        yield b""
        yield "bc"
        yield None
        yield 3
        yield Response(tokens_out=7)

    record = one(invoke)
    assert (record.outcome, record.chunks, record.tokens_out, record.bytes) == ("ok", 3, 7, 3)
    assert record.first_token is not None
    assert record.last_token is not None
    assert record.sent <= record.first_token <= record.last_token <= record.done
    assert record.gaps is not None
    assert len(record.gaps) == 2


def test_a_tokens_number_is_a_piece_whatever_it_is() -> None:
    record = one(lambda _: (token for token in (7, 0, 3)))
    assert (record.outcome, record.chunks) == ("ok", 3)


def test_usage_may_come_in_parts() -> None:
    def invoke(_: object) -> Any:
        yield Response(tokens_in=5, tokens_out=1, model="m")
        yield "a"
        yield Response(tokens_out=7)

    record = one(invoke)
    assert (record.tokens_in, record.tokens_out, record.chunks, record.label) == (5, 7, 1, "m")


def test_a_stream_without_a_token_has_no_first_one() -> None:
    record = one(lambda _: (piece for piece in ("", None)))
    assert (record.outcome, record.chunks, record.first_token, record.gaps) == ("ok", 0, None, ())


def test_a_stream_that_breaks_keeps_what_came() -> None:
    def invoke(_: object) -> Any:
        yield "a"
        raise ConnectionResetError

    record = one(invoke)
    assert (record.outcome, record.error, record.chunks) == ("failed", "ConnectionResetError", 1)
    assert record.first_token is not None


@pytest.mark.parametrize(
    "error",
    [ValueError("v"), SystemExit(3), KeyboardInterrupt(), gevent.GreenletExit(), GeneratorExit(), MemoryError()],
)
def test_whatever_invoke_raises_is_a_failed_request(error: BaseException) -> None:
    def invoke(_: object) -> None:
        raise error

    record = one(invoke)
    assert (record.outcome, record.error) == ("failed", type(error).__name__)


class ListenedTo(Bench):
    """Requests of which a listener hears that raises."""

    def __init__(self, endpoint: Endpoint, error: BaseException) -> None:
        super().__init__(endpoint)
        self._error = error

    def _note(self, name: str, response_ms: float, length: int, exception: Exception | None) -> None:
        super()._note(name, response_ms, length, exception)
        raise self._error


_OF_LISTENERS = [SystemExit(1), gevent.GreenletExit(), gevent.Timeout(), ValueError("v"), MemoryError()]


@pytest.mark.parametrize("error", _OF_LISTENERS)
def test_what_a_listener_of_locusts_event_raises_ends_no_slot(error: BaseException) -> None:
    bench = ListenedTo(Endpoint(invoke=lambda payload: b"" if payload else 1 / 0, payloads=[0, 1]), error)
    assert sorted(record.outcome for record in bench.send(*range(4))) == ["failed", "failed", "ok", "ok"]
    ledger = bench.requests.ledger
    assert (ledger.sent, ledger.ok, ledger.failed, len(bench.fired)) == (4, 2, 2, 4)


@pytest.mark.parametrize("error", _OF_LISTENERS)
def test_what_a_listener_raises_at_the_end_leaves_every_request_abandoned(error: BaseException) -> None:
    bench = ListenedTo(Endpoint(invoke=lambda _: gevent.sleep(60), payloads=["p"]), error)
    greenlets = [gevent.spawn(bench.send, index) for index in range(3)]
    gevent.sleep(0)
    bench.requests.abandon()
    assert [record.outcome for record in bench.records()] == ["abandoned"] * 3
    gevent.killall(greenlets)
    assert len(bench.fired) == 3


def test_a_coroutine_is_no_answer() -> None:
    record = one(_async_invoke)
    assert (record.outcome, record.error) == ("failed", "TypeError")


class Answered:
    """A response as HTTP clients have it."""

    def __init__(self, **members: object) -> None:
        vars(self).update(members)


class Spoiled:
    """A user's own, whose attributes raise."""

    @property
    def status_code(self) -> int:
        raise OSError


class OfTriton:
    """A request that goes on, as Triton's client has it."""

    def get_result(self) -> object:
        raise NotImplementedError


class OfIbm(OfTriton):
    """An answer of one of IBM's SDKs, which is finished."""

    def __init__(self, status: int) -> None:
        self.status = str(status)

    def get_status_code(self) -> int:
        return int(self.status)


@contextmanager
def opened() -> Iterator[None]:
    """A stream of httpx: its request is sent when it is opened."""
    yield


class OnlyOpened:
    """One of the openai package's."""

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError


class OnlyAwaited:
    """One of an asynchronous client, which can be closed, too."""

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def aclose(self) -> None:
        raise NotImplementedError


class Picture(OnlyOpened):
    """What is done, though it can be opened: a picture of PIL's."""

    def save(self) -> None:
        raise NotImplementedError


LAMBDA = {"ResponseMetadata": {"HTTPStatusCode": 200}, "StatusCode": 200}


@pytest.mark.parametrize(
    ("answer", "outcome", "error"),
    [
        (Answered(status_code=200), "ok", ""),
        (Answered(status_code=399), "ok", ""),
        (Answered(status_code=503), "failed", "StatusError 503"),
        (Answered(status=429), "failed", "StatusError 429"),
        (Answered(status="500"), "ok", ""),
        (Answered(status=700), "ok", ""),
        (Spoiled(), "ok", ""),
        ({"status": 500}, "ok", ""),  # what is in an answer is the user's affair
        (LAMBDA, "ok", ""),
        ({**LAMBDA, "FunctionError": "Unhandled"}, "failed", "FunctionError Unhandled"),
        (Future(), "failed", "TypeError"),
        (AsyncResult(), "failed", "TypeError"),
        (Greenlet(lambda: None), "failed", "TypeError"),
        (ApplyResult.__new__(ApplyResult), "failed", "TypeError"),
        (OfTriton(), "failed", "TypeError"),
        (OfIbm(200), "ok", ""),
        (OfIbm(503), "failed", "StatusError 503"),
        (opened(), "failed", "TypeError"),
        (OnlyOpened(), "failed", "TypeError"),
        (OnlyAwaited(), "failed", "TypeError"),
        (Picture(), "ok", ""),
        (partial(print, "x"), "failed", "TypeError"),
        (lambda: None, "failed", "TypeError"),
    ],
)
def test_an_answer_that_says_that_it_failed_or_is_not_over_is_a_failure(
    answer: object, outcome: str, error: str
) -> None:
    """Also where the first answer of its class was a good one."""
    answers = iter([Answered(), Answered(status=200), {}, answer])
    bench = Bench(Endpoint(invoke=lambda _: next(answers), payloads=["p"]))
    records = bench.send(*range(4))
    assert [record.outcome for record in records] == ["ok", "ok", "ok", outcome]
    assert (records[-1].error or "") == error


class Streamed:
    """A response whose content is read once, in pieces."""

    def __init__(self, pieces: int) -> None:
        self.left = pieces

    def read(self, most: int) -> bytes:
        assert most > 0
        gevent.sleep(0.01)
        self.left -= 1
        return b"x" * 10 if self.left >= 0 else b""


class OfRequests(Answered):
    """A response of requests, as far as its content goes."""

    def iter_content(self, size: int) -> Iterator[bytes]:
        assert size > 0
        if self.closed:
            raise RuntimeError
        for _ in range(2):
            gevent.sleep(0.01)
            yield b"x" * 10

    @property
    def content(self) -> bytes:
        if self.closed:
            raise RuntimeError
        return b"x" * 20

    closed = False


class EventStream:
    """A stream of botocore's events."""

    def __iter__(self) -> Iterator[dict[str, object]]:
        for _ in range(2):
            gevent.sleep(0.01)
            yield {"PayloadPart": {"Bytes": b"x"}}


class Ended(Streamed):
    """One whose reading raises."""

    def __init__(self, error: Exception, pieces: int = 0) -> None:
        super().__init__(pieces)
        self.error = error

    def read(self, most: int) -> bytes:
        if piece := super().read(most):
            return piece
        raise self.error


META: dict[str, object] = {"ResponseMetadata": {}}


@pytest.mark.parametrize(
    ("answer", "size", "outcome"),
    [
        (Streamed(2), 20, "ok"),
        (OfRequests(status_code=200), 20, "ok"),
        (OfRequests(status_code=500), None, "failed"),
        ({**META, "Body": Streamed(2)}, 20, "ok"),
        ({**META, "Body": EventStream()}, None, "ok"),
    ],
)
def test_an_answer_is_over_when_what_is_left_of_it_has_been_read(
    answer: object, size: int | None, outcome: str
) -> None:
    record = one(lambda _: answer)
    assert (record.outcome, record.bytes) == (outcome, size)
    assert record.done - record.sent >= 0.02 * NS


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Ended(ValueError("closed file")), None),
        (OfRequests(closed=True), None),
        (Streamed(0), None),
        (Ended(EOFError()), "EOFError"),
        (Ended(ValueError("cut"), pieces=1), "ValueError"),  # in the middle: the rest is missing
    ],
)
def test_what_was_read_or_closed_by_the_file_itself_is_done(answer: object, error: str | None) -> None:
    record = one(lambda _: answer)
    assert record.error == error


def test_what_is_left_of_an_answer_has_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference_benchmarker.facts.returned.largest_answer", lambda: 50)
    assert one(lambda _: Streamed(5)).bytes == 50
    assert one(lambda _: Streamed(10**9)).error == "AnswerTooLargeError"


@pytest.fixture
def cut_off() -> Iterator[Callable[[bytes], HTTPConnection]]:
    """Connections whose answer is what is asked for, and breaks off there."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(said: bytes) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + said)

    def ask(said: bytes) -> HTTPConnection:
        threading.Thread(target=answer, args=(said,), daemon=True).start()
        connection = HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=10)
        connection.request("POST", "/")
        return connection

    yield ask
    listener.close()


@pytest.mark.parametrize(
    ("said", "error", "size"),
    [
        (b"Content-Length: 10\r\n\r\n" + b"x" * 10, None, 10),
        (b"Content-Length: 10\r\n\r\n" + b"x" * 5, "IncompleteRead", None),
        (b"Content-Length: 10\r\n\r\n", "IncompleteRead", None),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n0\r\n\r\n", None, 5),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\n", "IncompleteRead", None),
        (b"Transfer-Encoding: chunked\r\n\r\n5\r\nxx", "IncompleteRead", None),
        (b"\r\n" + b"x" * 5, None, 5),
    ],
)
def test_a_response_of_the_standard_library_that_ends_early_is_a_failure(
    cut_off: Callable[[bytes], HTTPConnection], said: bytes, error: str | None, size: int | None
) -> None:
    record = one(lambda _: cut_off(said).getresponse())
    assert (record.error, record.bytes) == (error, size)


def test_a_response_that_the_file_closed_itself_is_done(cut_off: Callable[[bytes], HTTPConnection]) -> None:
    def invoke(_: object) -> object:
        with cut_off(b"Content-Length: 10\r\n\r\n" + b"x" * 10).getresponse() as response:
            return response

    assert one(invoke).error is None


@pytest.mark.parametrize(
    ("answer", "left", "status"), [(Streamed(2), 2, None), (OfRequests(status_code=500), None, 500), (META, None, None)]
)
def test_a_session_reads_for_itself_what_can_be_read_only_once(
    answer: Any, left: int | None, status: int | None
) -> None:
    look = look_of(answer, heard=True)
    if status is not None:
        with pytest.raises(StatusError):
            look(answer)
    else:
        look(answer)
        assert getattr(answer, "left", None) == left


class SdkStream:
    """A stream of an SDK: an iterator, and no generator. Before each event but the first it waits a little."""

    def __init__(self, *events: object) -> None:
        self.events = iter(events)
        self.given = 0

    def __iter__(self) -> SdkStream:
        return self

    def __next__(self) -> object:
        gevent.sleep(0.01 * bool(self.given))
        self.given += 1
        return next(self.events)


class ClosedStream:
    """One of botocore's: it is iterated once, and closed."""

    def __init__(self, *events: object) -> None:
        self.events = events

    def __iter__(self) -> Iterator[object]:
        yield from SdkStream(*self.events)

    def close(self) -> None:
        """Give the connection back."""


def generated(*events: object) -> Iterator[object]:
    yield from SdkStream(*events)


def chunk(content: str | None = None, **more: object) -> Answered:
    """An event of OpenAI's API."""
    return Answered(choices=[Answered(delta=Answered(content=content), **more)])


STREAMS = [SdkStream, ClosedStream, generated]


@pytest.mark.parametrize("stream", STREAMS)
def test_the_events_of_an_sdk_are_tokens_where_they_show_text(stream: Callable[..., Any]) -> None:
    events = [chunk(""), chunk("one "), chunk("two"), chunk(finish_reason="stop"), Answered(choices=[], usage={})]
    record = one(lambda _: stream(*events))
    assert (record.outcome, record.chunks, record.bytes) == ("ok", 2, 7)
    assert record.first_token is not None
    assert record.first_token - record.sent >= 0.01 * NS, "the role is no token"
    assert record.done - record.sent >= 0.05 * NS


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("event", [object(), {"token": 3}, [1, 2], {}])
def test_events_of_which_nobody_knows_the_text_are_no_tokens(stream: Callable[..., Any], event: object) -> None:
    record = one(lambda _: stream(event, event, Response(tokens_out=7)))
    assert (record.outcome, record.chunks, record.first_token, record.gaps) == ("ok", None, None, None)
    assert (record.tokens_out, record.bytes) == (7, None)
    assert record.done - record.sent >= 0.03 * NS


def test_a_stream_whose_status_says_so_failed() -> None:
    stream = SdkStream("no")
    vars(stream)["status_code"] = 503
    record = one(lambda _: stream)
    assert (record.error, record.chunks) == ("StatusError 503", 1)


def test_a_payload_that_cannot_be_built_is_a_failed_request_of_its_own_kind() -> None:
    def build() -> object:
        raise KeyError("x")

    bench = Bench(Endpoint(invoke=lambda _: None, build=build))
    (record,) = bench.send(0)
    assert (record.outcome, record.error) == ("failed", "PayloadError KeyError")
    assert record.sent - record.build_ns - record.due >= 0


def test_building_is_before_sent_and_timed_apart() -> None:
    bench = Bench(Endpoint(invoke=lambda _: None, build=lambda: sum(range(20_000))))
    (record,) = bench.send(0)
    assert 0 < record.build_ns <= record.sent


def test_a_payload_that_was_built_is_not_kept_by_the_idle_slot() -> None:
    bench = Bench(Endpoint(invoke=lambda _: None, payloads=None, build=object))
    bench.send(0)
    assert bench.requests.slots[0].payload is None


def test_a_label_is_asked_for_once_a_payload() -> None:
    asked = []

    def label(payload: str) -> str:
        asked.append(payload)
        return payload

    records = Bench(Endpoint(invoke=lambda _: None, payloads=["a", "b"], label=label)).send(*range(6))
    assert [record.label for record in records] == ["a", "b"] * 3
    assert sorted(asked) == ["a", "b"]


def test_warmup_is_recorded_but_neither_counted_nor_reported() -> None:
    bench = Bench(Endpoint(invoke=lambda _: None, payloads=["p"]))
    assert [record.index for record in bench.send(-2, -1, 0)] == [-2, -1, 0]
    assert (bench.requests.ledger.sent, bench.requests.ledger.ok, len(bench.fired)) == (1, 1, 1)


def test_locust_is_reported_the_size_that_a_response_gives() -> None:
    bench = Bench(Endpoint(invoke=lambda _: Response(bytes=271), payloads=["p"]))
    bench.send(0)
    assert [event["response_length"] for event in bench.fired] == [271]


def test_every_sent_request_is_reported_once_and_errors_share_one_exception() -> None:
    def invoke(payload: str) -> bytes:
        if payload == "bad":
            raise ValueError("a text of its own")
        return b"12"

    bench = Bench(Endpoint(invoke=invoke, payloads=["good", "bad"]))
    bench.send(*range(4))
    assert [event["response_length"] for event in bench.fired] == [2, 0, 2, 0]
    assert [str(event["exception"]) for event in bench.fired] == ["None", "ValueError"] * 2
    assert bench.fired[1]["exception"] is bench.fired[3]["exception"]
    assert bench.requests.ledger.failed == 2


def test_what_this_host_refused_is_counted_by_its_errno() -> None:
    errors: list[BaseException] = [
        OSError(errno.EMFILE, "Too many open files"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
        ValueError("EMFILE"),
    ]

    def invoke(number: int) -> None:
        try:
            raise errors[number]
        except OSError as error:
            raise RuntimeError("of a client") from error

    bench = Bench(Endpoint(invoke=invoke, payloads=list(range(4))))
    bench.send(*range(8))
    assert bench.requests.refused == {"EMFILE": 2, "EADDRNOTAVAIL": 2}
    assert bench.requests.ledger.failed == 8


def test_what_was_refused_in_the_warmup_or_answered_in_the_end_is_not() -> None:
    def invoke(fails: bool) -> None:
        try:
            raise OSError(errno.EMFILE, "Too many open files")
        except OSError:
            if fails:
                raise

    warm = Bench(Endpoint(invoke=invoke, payloads=[True]))
    warm.send(-3, -2, -1, 0)
    assert warm.requests.refused == {"EMFILE": 1}
    retried = Bench(Endpoint(invoke=invoke, payloads=[False]))
    assert [record.outcome for record in retried.send(0, 1)] == ["ok", "ok"]
    assert retried.requests.refused == {}


def test_a_request_that_takes_longer_than_its_timeout_fails() -> None:
    bench = Bench(Endpoint(invoke=lambda _: gevent.sleep(60), payloads=["p"]), timeout_s=0.01)
    (record,) = bench.send(0)
    assert (record.outcome, record.error) == ("failed", "RequestTimeout")


def test_what_is_in_flight_at_the_end_is_abandoned_once() -> None:
    release = gevent.event.Event()
    bench = Bench(Endpoint(invoke=lambda _: release.wait(), payloads=["p"]))
    slot = Slot()
    tokens = iter([Arrival(0, 0)])
    slot.take = lambda: next(tokens, None)
    bench.requests.slots.append(slot)
    greenlet = gevent.spawn(bench.sessions.serve, slot)
    gevent.sleep(0)
    bench.requests.abandon()
    release.set()
    greenlet.join()
    (record,) = bench.records()
    ledger = bench.requests.ledger
    assert (record.outcome, ledger.sent, ledger.abandoned, ledger.ok) == ("abandoned", 1, 1, 0)
    assert [str(event["exception"]) for event in bench.fired] == ["abandoned"]


def test_a_client_that_swallows_the_time_limit_has_failed_by_it_all_the_same() -> None:
    def invoke(_: object) -> bytes:
        try:
            gevent.sleep(60)
        except BaseException as error:
            raise ConnectionError("gave up") from error
        return b""

    bench = Bench(Endpoint(invoke=invoke, payloads=["p"]), timeout_s=0.01)
    (record,) = bench.send(0)
    assert (record.outcome, record.error) == ("failed", "RequestTimeout")


def test_a_client_that_raises_what_it_likes_fails_its_requests_and_nobody_else() -> None:
    """Its own words end the process, were they asked for unprotected; the next request is sent as ever."""

    def fails(*_: object) -> Any:
        raise SystemExit

    odd = type("OddError", (BaseException,), {"__str__": fails, "__repr__": fails, "response": property(fails)})

    def invoke(payload: str) -> bytes:
        if payload == "odd":
            raise odd
        return b""

    bench = Bench(Endpoint(invoke=invoke, payloads=["odd", "good"]))
    assert [record.error for record in bench.send(*range(4))] == ["OddError", None] * 2
    built = Bench(Endpoint(invoke=invoke, build=lambda: invoke("odd")))
    assert [record.error for record in built.send(0, 1)] == ["PayloadError OddError"] * 2


class Unspeakable:
    """A name whose text cannot be had."""

    def __str__(self) -> str:
        raise SystemExit


class Derived(Response):
    """A response whose counts are not what it was made of."""

    def __init__(self) -> None:
        """Without its fields."""

    tokens_in = property(lambda _: -3)


ODD_RESPONSES: dict[str, Callable[[], Any]] = {
    "a model without a text": lambda: Response(model=Unspeakable()),  # type: ignore[arg-type]
    "too many tokens": lambda: Response(tokens_out=2**53 + 1),
    "less than none": lambda: Response(bytes=-1),
    "a truth": lambda: Response(tokens_in=True),
    "a float": lambda: Response(tokens_in=3.0),  # type: ignore[arg-type]
    "no number": lambda: Response(tokens_in=float("nan")),  # type: ignore[arg-type]
    "a class of its own": Derived,
}


@pytest.mark.parametrize("made", ODD_RESPONSES.values(), ids=ODD_RESPONSES)
@pytest.mark.parametrize("as_stream", [False, True], ids=["returned", "streamed"])
def test_a_response_that_is_none_is_a_failed_request(made: Callable[[], Any], as_stream: bool) -> None:
    def stream() -> Any:
        yield "a"
        yield made()

    bench = Bench(Endpoint(invoke=lambda _: stream() if as_stream else made(), payloads=["p"]))
    records = bench.send(0, 1)
    assert [record.outcome for record in records] == ["failed"] * 2
    assert bench.requests.ledger.failed == 2


@pytest.mark.parametrize(
    ("label", "error"),
    [(lambda _: Unspeakable(), "SystemExit"), (lambda payload: payload[9], "IndexError")],
    ids=["no text", "raises"],
)
@pytest.mark.parametrize("ready", [True, False], ids=["pre-computed", "built"])
def test_a_label_that_cannot_be_had_is_a_failed_request(label: Callable[[Any], Any], error: str, ready: bool) -> None:
    endpoint = Endpoint(
        invoke=lambda _: None, label=label, payloads=["p"] if ready else None, build=None if ready else lambda: "p"
    )
    assert [record.error for record in Bench(endpoint).send(0, 1)] == [f"PayloadError {error}"] * 2


@pytest.mark.parametrize("as_stream", [False, True], ids=["returned", "streamed"])
def test_an_answer_that_the_server_gave_up_is_a_failed_request(as_stream: bool) -> None:
    reasons = iter(["stop", "abort", "error", "eos_token", None])

    def stream() -> Any:
        yield "a"
        yield Response(tokens_out=1, finish_reason=next(reasons))

    def invoke(_: str) -> Any:
        return stream() if as_stream else Response(tokens_out=1, finish_reason=next(reasons))

    records = Bench(Endpoint(invoke=invoke, payloads=["p"])).send(*range(5))
    assert [(record.error, record.finish_reason) for record in records] == [
        (None, "stop"),
        ("FinishReasonError abort", None),
        ("FinishReasonError error", None),
        (None, "eos_token"),
        (None, None),
    ]
    assert all(record.first_token is not None for record in records) is as_stream


def failing_at(*numbers: int, model: str | None = None) -> Callable[[Any], Any]:
    """An invoke whose n-th calls fail; the others answer with a model's name."""
    calls = iter(range(1000))

    def invoke(payload: Any) -> Response:
        if next(calls) in numbers:
            raise ValueError
        return Response(model=model or payload["model"])

    return invoke


class OddPayload(dict[str, Any]):
    """One that does not like to be asked."""

    def get(self, *_: object) -> Any:
        raise SystemExit


@pytest.mark.parametrize(
    ("payload", "label"),
    [
        ({"model": "m"}, "m"),
        (b'{"model": "m"}', "m"),
        ('{"x": {"model": "n"}, "model": "m"}', "m"),
        (b'{"model": "m"', ""),
        (b'["model"]', ""),
        ({"model": 7}, ""),
        ({"inputs": "a"}, ""),
        (OddPayload(model="m"), ""),
        (b"\xff", ""),
        (7, ""),
        (b'{"model": "m", "image": "' + b"a" * (1 << 20) + b'"}', ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failed_request_is_labelled_by_the_model_it_asked_for(payload: Any, label: str) -> None:
    assert one(failing_at(0), payload).label == label


def test_what_names_no_model_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures come at the rate of the load: to parse a tensor for each would make the client late."""
    parsed: list[object] = []
    monkeypatch.setattr(worker_payloads, "loads", parsed.append)
    tensor = json.dumps({"inputs": [0.5] * 100})
    assert [one(failing_at(0), payload).label for payload in (tensor, tensor.encode(), "text")] == [""] * 3
    assert parsed == []


def test_a_payload_that_is_used_again_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []

    def loads(text: Any) -> Any:
        parsed.append(text)
        return json.loads(text)

    monkeypatch.setattr(worker_payloads, "loads", loads)
    payloads = [b'{"model": "a"}', b'{"model": "b"}', b'{"no": "model"}']
    found = Bench(Endpoint(invoke=failing_at(*range(9)), payloads=payloads)).send(*range(9))
    assert [record.label for record in found] == ["a", "b", ""] * 3
    assert parsed == payloads


def test_a_long_payload_is_parsed_where_it_is_used_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is built for each request would cost its parsing with each failure."""
    long = json.dumps({"model": "m", "prompt": "a" * worker_payloads.MOST_EACH})
    (built,) = Bench(Endpoint(invoke=failing_at(0), build=lambda: long)).send(0)
    (kept,) = Bench(Endpoint(invoke=failing_at(0), payloads=[long])).send(0)
    assert (built.label, kept.label) == ("", "m")


def test_a_model_that_answers_under_another_name_keeps_its_failures() -> None:
    bench = Bench(Endpoint(invoke=failing_at(1, model="m-2024"), payloads=[{"model": "m"}]))
    assert [record.label for record in bench.send(0, 1, 2)] == ["m-2024"] * 3


def test_an_abandoned_request_is_labelled_by_the_model_it_asked_for() -> None:
    bench = Bench(Endpoint(invoke=lambda _: gevent.sleep(5), payloads=[{"model": "m"}]))
    waiting = gevent.spawn(bench.send, 0)
    gevent.sleep(0)
    bench.requests.abandon()
    assert [(record.label, record.outcome) for record in bench.records()] == [("m", "abandoned")]
    waiting.kill()


def test_a_label_of_the_users_goes_before_the_model() -> None:
    endpoint = Endpoint(invoke=failing_at(0), payloads=[{"model": "m"}], label=lambda _: "mine")
    assert [record.label for record in Bench(endpoint).send(0, 1)] == ["mine"] * 2


def test_more_finish_reasons_than_there_is_room_for_are_one() -> None:
    names = iter(range(40))
    bench = Bench(Endpoint(invoke=lambda _: Response(finish_reason=f"r{next(names)}"), payloads=["p"]))
    found = [record.finish_reason for record in bench.send(*range(40))]
    assert found == [f"r{number}" for number in range(30)] + ["(other)"] * 10


def test_a_model_of_another_type_labels_by_its_text() -> None:
    class Name:
        def __str__(self) -> str:
            return "of a class"

    assert one(lambda _: Response(model=Name())).label == "of a class"  # type: ignore[arg-type]
