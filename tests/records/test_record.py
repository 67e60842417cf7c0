"""Records: what a worker packs is what a reader unpacks, and an error's key is never its free text."""

from __future__ import annotations

import errno
import http.client
import io
import json
import socket
import ssl
import subprocess
import sys
import urllib.error
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from itertools import pairwise
from typing import Any, cast
from urllib.parse import quote

import botocore.session
import grpc.aio
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError
from grpc.aio import Metadata
from hypothesis import given, settings
from hypothesis import strategies as st
from urllib3.exceptions import MaxRetryError, NewConnectionError, ProtocolError

from inference_benchmarker.records.batch import BASE, MAX_TEXT_LENGTH, MAX_TEXTS, STREAM, Report, redacted, split_batch
from inference_benchmarker.records.batch_writer import MAX_GAP_US, RAW_TEXT_LENGTH, BatchWriter
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.error_cause import causes, connection_cause, local_errno
from inference_benchmarker.records.error_key import error_key
from inference_benchmarker.records.names import MAX_NAME_LENGTH, MAX_NAMES, OTHER, Names
from inference_benchmarker.records.packed import BASE_DTYPE, STREAM_DTYPE
from inference_benchmarker.records.record import OUTCOMES, Ledger, RequestRecord
from inference_benchmarker.words.redact import HIDDEN
from tests.waves import Worker, stream

instants = st.integers(-(2**55), 2**55)
counts = st.none() | st.integers(0, 2**62)
SECRET = "Zq9x+W8vU7/tS6rQ5p=="
LABELS = ("", "a", "größe 🙂", "x" * 50)
KEYS = ("ClientError Throttled", "TimeoutError")


@st.composite
def rows(draw: st.DrawFn) -> RequestRecord:
    outcome = draw(st.sampled_from(OUTCOMES))
    times = draw(st.none() | st.lists(st.integers(0, 2**40), max_size=5).map(sorted))
    has_stream = times is not None or draw(st.booleans())
    return RequestRecord(
        index=0,
        worker=draw(st.integers(0, 3)),
        due=draw(instants),
        sent=draw(instants),
        done=draw(instants),
        outcome=outcome,
        label=draw(st.sampled_from(LABELS)),
        error=draw(st.sampled_from(KEYS)) if outcome == "failed" else None,
        build_ns=draw(st.integers(0, 2**40)),
        first_token=times[0] if times else None,
        last_token=times[-1] if times else None,
        chunks=None if times is None else len(times),
        tokens_in=draw(counts) if has_stream else None,
        tokens_out=draw(counts) if has_stream else None,
        bytes=draw(counts),
        gaps=None if times is None else tuple((b - a) // 1000 for a, b in pairwise(times)),
        finish_reason=draw(st.sampled_from([None, "stop", "length"])),
    )


@given(st.lists(rows(), max_size=30), st.integers(1, 7))
@settings(max_examples=150)
def test_what_is_written_in_batches_is_what_is_read(made: list[RequestRecord], every: int) -> None:
    written = [record._replace(index=index - 5) for index, record in enumerate(made)]
    workers = [Worker(number) for number in range(4)]
    for number, record in enumerate(written):
        workers[record.worker].write(record)
        if number % every == 0:
            workers[record.worker].flush()
    for worker in workers:
        worker.flush()
    read = list(Records.of_workers([worker.columns() for worker in workers]))
    # gaps are whole microseconds; the writer is given times made from them, so only the last gap's rest is lost
    assert [r._replace(gaps=None) for r in read] == [w._replace(gaps=None) for w in written]
    assert [r.gaps and len(r.gaps) for r in read] == [w.gaps and len(w.gaps) for w in written]
    assert [None if r.gaps is None else len(r.gaps) for r in read] == [
        None if w.gaps is None else len(w.gaps) for w in written
    ]


BATCH_META = {"worker": 3, "sequence": 7, "at": 5, "final": True, "ledger": Ledger(scheduled=2, sent=2, ok=1).to_json()}


NO_NUMBERS: list[Any] = ["3", 3.0, None, True, [3]]
NO_TRUTHS: list[Any] = [1, None, "yes"]
NO_LEDGERS: list[Any] = [None, [], {}, 5, {**Ledger().to_json(), "ok": "1"}]


def batch_of(**meta: Any) -> bytes:
    """A batch with an ok request and a stream; ``meta`` replaces or adds to what it says of itself."""
    worker = Worker()
    worker.write(RequestRecord(0, 0, 0, 0, 0))
    worker.write(stream([1_000, 4_000], tokens_in=3))
    worker.writer.error(ValueError("no"))
    return worker.writer.take({**BATCH_META, **meta})


class TestReport:
    def test_it_is_what_the_batch_says_of_itself(self) -> None:
        batch = batch_of()
        assert Report.of(batch) == Report(3, 7, True, Ledger(scheduled=2, sent=2, ok=1), redacted(batch), 5)

    @pytest.mark.parametrize(
        "meta",
        [
            *({name: wrong} for name in ("worker", "sequence", "at") for wrong in NO_NUMBERS),
            *({"final": wrong} for wrong in NO_TRUTHS),
            *({"ledger": wrong} for wrong in NO_LEDGERS),
            {"use": []},
        ],
    )
    def test_what_is_no_number_or_no_ledger_is_refused(self, meta: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="a batch"):
            Report.of(batch_of(**meta))

    def test_a_batch_that_is_longer_or_shorter_than_it_says_is_refused(self) -> None:
        whole = batch_of()
        for data in (*(whole[:end] for end in range(len(whole))), whole + b"x"):
            with pytest.raises(ValueError, match="a batch"):
                Report.of(data)

    @given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 20))
    def test_junk_is_refused_and_nothing_else_happens(self, junk: bytes, start: int, length: int) -> None:
        whole = batch_of()
        for data in (junk, whole[:start] + junk + whole[start + length :]):
            with suppress(ValueError):
                Report.of(data)


def test_a_packed_request_is_a_fixed_few_tens_of_bytes() -> None:
    assert BASE.size == BASE_DTYPE.itemsize == 53
    assert STREAM.size == STREAM_DTYPE.itemsize


@pytest.mark.parametrize(
    ("times", "first", "last", "chunks", "gaps"),
    [
        (None, None, None, None, None),
        ([], None, None, 0, ()),
        ([5], 5, 5, 1, ()),
        ([1_000, 3_999, 4_000], 1_000, 4_000, 3, (2, 0)),
        ([0, 5_000_000_000_000], 0, 5_000_000_000_000, 2, (MAX_GAP_US,)),
        ([-3_000, 1_000], -3_000, 1_000, 2, (4,)),
    ],
    ids=["usage only", "empty", "one", "three", "gap of more than 71 minutes", "in the warm-up"],
)
def test_a_stream_keeps_its_ends_and_gaps_and_does_not_move_its_neighbours(
    times: list[int] | None, first: int | None, last: int | None, chunks: int | None, gaps: tuple[int, ...] | None
) -> None:
    record = stream(times, tokens_in=3)
    assert (record.first_token, record.last_token, record.chunks) == (first, last, chunks)
    assert record.gaps == gaps
    assert (record.tokens_in, record.tokens_out) == (3, None)


class TestNames:
    def test_numbers_are_given_once_and_names_handed_out_once(self) -> None:
        names = Names("")
        assert [names[name] for name in ("", "a", "b", "a")] == [0, 1, 2, 1]
        assert names.unreported() == names.unreported() == ["", "a", "b"]
        names.mark_reported()
        assert names["c"] == 3
        assert names.unreported() == ["c"]
        names.mark_reported()
        assert names.unreported() == []
        assert names.name(2) == "b"

    def test_beyond_the_limit_every_new_name_is_other(self) -> None:
        names = Names("")
        numbers = [names[f"label {number}"] for number in range(MAX_NAMES + 50)]
        assert len(set(numbers)) == MAX_NAMES
        assert {names.name(number) for number in numbers[MAX_NAMES - 1 :]} == {OTHER}
        assert names.name(names["label 3"]) == "label 3"
        assert max(numbers) < 2**16

    def test_a_name_that_no_file_takes_is_made_storable(self) -> None:
        worker = Worker()
        for label in ("\ud800", "y" * 10**6):
            worker.write(RequestRecord(0, 0, 0, 0, 0, label=label))
        worker.flush()
        labels = [record.label for record in Records.of_workers([worker.columns()])]
        assert labels[0] == "?"
        assert labels[1].startswith("y" * 100)
        assert len(labels[1]) == MAX_NAME_LENGTH

    def test_names_that_begin_alike_are_kept_apart(self) -> None:
        names = Names("")
        long = ["x" * MAX_NAME_LENGTH, *("x" * MAX_NAME_LENGTH + end for end in "ab"), "x" * 10**6]
        numbers = [names[name] for name in (*long, *long)]
        assert numbers == [1, 2, 3, 4] * 2
        assert len({names.name(number) for number in numbers}) == 4
        assert max(map(len, names.unreported())) == MAX_NAME_LENGTH
        assert max(len(key) for key in names._ids) <= MAX_NAME_LENGTH

    def test_a_secret_is_in_no_name_and_parts_none(self) -> None:
        writer = BatchWriter([SECRET, "other-secret-value"])
        numbers = [writer.labels[f"of {secret}"] for secret in (SECRET, "other-secret-value", SECRET)]
        assert (numbers, writer.labels.name(1)) == ([1, 1, 1], f"of {HIDDEN}")
        far = writer.labels.name(writer.labels["x" * (MAX_NAME_LENGTH - 20) + SECRET + "y" * 500])
        assert SECRET[:4] not in far
        for code in (SECRET, "x" * 195 + SECRET, quote(SECRET, safe=""), f"Bearer {SECRET[::-1]}"):
            _, key = writer.error(ClientError({"Error": {"Code": code}}, "X"))
            assert SECRET[:4] not in key
            assert SECRET[::-1][:4] not in key
            assert len(key) <= MAX_NAME_LENGTH


def http_error(status: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError("free text", response=response)


def with_attributes(name: str, base: type[BaseException] = Exception, **attributes: Any) -> BaseException:
    exception: BaseException = type(name, (base,), {})("free text")
    for attribute, value in attributes.items():
        setattr(exception, attribute, value)
    return exception


class Holder:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class _InactiveRpcError(grpc.RpcError):  # type: ignore[misc]  # it comes without types
    """Like gRPC's own, by name and method."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE


class RequestNotSetError(Exception):
    """Like httpx, whose exceptions raise RuntimeError when asked for a request they do not have."""

    @property
    def response(self) -> None:
        raise RuntimeError("The .response property has not been set.")

    def __str__(self) -> str:
        raise AttributeError("no text either")


ERRORS: list[tuple[BaseException, str]] = [
    (ValueError("free text"), "ValueError"),
    (KeyError("id-123"), "KeyError"),
    (
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "free text"}}, "InvokeEndpoint"),
        "ClientError ThrottlingException",
    ),
    (ClientError({"Error": {"Code": "424"}}, "X"), "ClientError 424"),
    (with_attributes("ServiceUnavailable", response={"Error": {"Code": "ServiceUnavailable"}}), "ServiceUnavailable"),
    (
        with_attributes("ModelError", response={"Error": {"Code": "ModelError"}, "OriginalStatusCode": 502}),
        "ModelError 502",
    ),
    (ClientError({}, "X"), "ClientError"),
    (EndpointConnectionError(endpoint_url="https://free-text"), "EndpointConnectionError"),
    (http_error(503), "HTTPError 503"),
    (requests.HTTPError("free text"), "HTTPError"),
    (requests.ConnectionError("free text"), "ConnectionError"),
    (urllib.error.HTTPError("http://x", 429, "free text", Message(), io.BytesIO()), "HTTPError 429"),
    (urllib.error.URLError("free text"), "URLError"),
    (with_attributes("HTTPStatusError", response=Holder(status_code=500)), "HTTPStatusError 500"),
    (with_attributes("ClientResponseError", status=502), "ClientResponseError 502"),
    (with_attributes("RateLimitError", status_code=429, code="rate_limit"), "RateLimitError 429"),
    (with_attributes("Enumerated", status=HTTPStatus.BAD_GATEWAY), "Enumerated 502"),
    (with_attributes("Old", response=Holder(status=404)), "Old 404"),
    (with_attributes("NoStatus", status=True), "NoStatus"),
    (with_attributes("NoStatus", status=7), "NoStatus"),
    (with_attributes("NoStatus", status="free text"), "NoStatus"),
    (with_attributes("NoStatus", code=lambda: 500), "NoStatus"),
    (_InactiveRpcError(), "RpcError UNAVAILABLE"),
    (grpc.aio.AioRpcError(grpc.StatusCode.NOT_FOUND, Metadata(), Metadata()), "AioRpcError NOT_FOUND"),
    (grpc.RpcError("free text"), "RpcError"),
    (with_attributes("PayloadError", _benchmark_detail="ValueError"), "PayloadError ValueError"),
    (OSError(24, "Too many open files"), "OSError EMFILE"),
    (OSError(99999, "free text"), "OSError 99999"),
    (OSError("free text"), "OSError"),
    (ConnectionRefusedError(111, "free text"), "ConnectionRefusedError"),
    (ConnectionResetError(104, "free text"), "ConnectionResetError"),
    (SystemExit(1), "SystemExit"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (RequestNotSetError(), "RequestNotSetError"),
]


@pytest.mark.parametrize(("exception", "key"), ERRORS, ids=[key for _, key in ERRORS])
def test_an_error_is_known_by_its_class_and_code(exception: BaseException, key: str) -> None:
    assert error_key(exception) == key
    number, written = BatchWriter().error(exception)
    assert (number, written) == (1, key)


def raised(cause: BaseException, *, implicit: bool = False) -> BaseException:
    """An exception that was made of another one, or while it was handled."""
    try:
        try:
            raise cause
        except BaseException as error:
            if implicit:
                raise RuntimeError("of a client")  # noqa: B904 - the context is what is asked for
            raise RuntimeError("of a client") from error
    except RuntimeError as error:
        return error


class ApiError(Exception):
    """Stands for a client's."""


def of_the_users(error: BaseException, *, hidden: bool = False) -> BaseException:
    """An error of the user's own while a refused connection was handled; ``hidden``: raised ``from None``."""
    try:
        try:
            raise REFUSED
        except OSError:
            if hidden:
                raise error from None
            raise error  # noqa: B904 - the context is what is asked for
    except BaseException as raised:
        return raised


def refused_by_kernel() -> str:
    """The errno with which this host refuses TCP to the broadcast address, whatever its routes."""
    with socket.socket() as probe:
        return errno.errorcode[probe.connect_ex(("255.255.255.255", 9))]


UNTRUSTED = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")
UNTRUSTED.reason = "CERTIFICATE_VERIFY_FAILED"
LOCAL = OSError(errno.EMFILE, "Too many open files")
NEW_CONNECTION = NewConnectionError(cast("Any", None), "Failed to establish a new connection")
NEW_CONNECTION.__cause__ = OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")
NO_ROUTE = raised(OSError(errno.ENETUNREACH, "Network is unreachable"))

LOCAL_ERRORS: list[tuple[str, BaseException, str | None]] = [
    ("itself", LOCAL, "EMFILE"),
    ("a kind of it", PermissionError(errno.EACCES, "Permission denied"), "EACCES"),
    ("not permitted", PermissionError(errno.EPERM, "Operation not permitted"), "EPERM"),
    ("in use", OSError(errno.EADDRINUSE, "Address already in use"), "EADDRINUSE"),
    ("no buffers", OSError(errno.ENOBUFS, "No buffer space available"), "ENOBUFS"),
    ("the table is full", OSError(errno.ENFILE, "Too many open files in system"), "ENFILE"),
    ("the network is down", OSError(errno.ENETDOWN, "Network is down"), "ENETDOWN"),
    ("its cause", raised(LOCAL), "EMFILE"),
    ("its context", raised(LOCAL, implicit=True), "EMFILE"),
    ("a cause of its cause", raised(NO_ROUTE), "ENETUNREACH"),
    ("its first argument", requests.ConnectionError(LOCAL), "EMFILE"),
    ("its reason", urllib.error.URLError(LOCAL), "EMFILE"),
    ("urllib3", MaxRetryError(cast("Any", None), "/", NEW_CONNECTION), "EADDRNOTAVAIL"),
    ("requests", requests.ConnectionError(MaxRetryError(cast("Any", None), "/", NEW_CONNECTION)), "EADDRNOTAVAIL"),
    ("the other side refused", ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), None),
    ("the other side refused a client", raised(ConnectionRefusedError(errno.ECONNREFUSED, "refused")), None),
    ("the other side broke off", ConnectionResetError(errno.ECONNRESET, "reset"), None),
    ("an HTTP error", http_error(503), None),
    ("an HTTP error that is an OSError", urllib.error.HTTPError("u", 24, "x", Message(), io.BytesIO()), None),
    ("a throttled call", ClientError({"Error": {"Code": "ThrottlingException"}}, "X"), None),
    ("no errno", OSError("Too many open files"), None),
    ("an errno in a text only", ValueError("[Errno 24] Too many open files"), None),
    ("a number that is none", requests.ConnectionError(24), None),
    ("no arguments", ValueError(), None),
    ("attributes that raise", RequestNotSetError(), None),
    ("OpenSSL's number, which is EPERM's", requests.ConnectionError(UNTRUSTED), None),
]
MISTAKES = (KeyError, IndexError, TypeError, ValueError, AttributeError, ZeroDivisionError, AssertionError, NameError)
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
CAUSES: list[tuple[BaseException, str]] = [
    (raised(REFUSED), "ECONNREFUSED"),
    (raised(raised(REFUSED, implicit=True)), "ECONNREFUSED"),
    (raised(ConnectionResetError(errno.ECONNRESET, "reset")), "ECONNRESET"),
    (raised(LOCAL), "EMFILE"),
    (raised(NO_ROUTE), "ENETUNREACH"),
    (raised(UNTRUSTED), "CERTIFICATE_VERIFY_FAILED"),
    (UNTRUSTED, "CERTIFICATE_VERIFY_FAILED"),
    (ssl.SSLError(1, "without a reason"), ""),
    (raised(socket.gaierror(-2, "Name or service not known")), "gaierror"),
    (requests.ConnectionError(ProtocolError("aborted", http.client.RemoteDisconnected("closed"))), "broken"),
    (requests.exceptions.ChunkedEncodingError(ProtocolError("broken", http.client.IncompleteRead(b""))), "broken"),
    (raised(ProtocolError("Response ended prematurely")), "broken"),
    (requests.ConnectionError(ProtocolError("aborted", ConnectionResetError(errno.ECONNRESET, "reset"))), "ECONNRESET"),
    (ProtocolError("Response ended prematurely", http.client.IncompleteRead(b"")), ""),
    (ProtocolError("aborted", ConnectionResetError(errno.ECONNRESET, "reset")), "ECONNRESET"),
    (EndpointConnectionError(endpoint_url="u", error="e"), ""),
    (REFUSED, ""),  # its class says it
    (http.client.RemoteDisconnected("closed"), ""),
    (raised(ValueError("another fault")), ""),
    *((of_the_users(kind("of the user")), "") for kind in MISTAKES),
    *((of_the_users(kind("of a client"), hidden=True), "") for kind in (ApiError, OSError, KeyError)),
    (of_the_users(ApiError("of a client")), "ECONNREFUSED"),
    (raised(of_the_users(KeyError("of the user"))), ""),
    (KeyError(REFUSED), "ECONNREFUSED"),
    (raised(FileNotFoundError(errno.ENOENT, "no such file")), ""),
    (raised(TimeoutError("timed out")), ""),
]


@pytest.mark.parametrize(("exception", "cause"), CAUSES)
def test_what_ended_a_connection_is_part_of_the_key(exception: BaseException, cause: str) -> None:
    assert connection_cause(causes(exception)) == cause
    assert error_key(exception) == " ".join(filter(None, (type(exception).__name__, cause)))


class TestLocalErrno:
    @pytest.mark.parametrize(("exception", "name"), [row[1:] for row in LOCAL_ERRORS], ids=[r[0] for r in LOCAL_ERRORS])
    def test_it_is_found_wherever_the_client_put_it(self, exception: BaseException, name: str | None) -> None:
        assert local_errno(causes(exception)) == name

    def test_a_chain_that_goes_round_ends(self) -> None:
        one, other = ValueError("one"), ValueError("other")
        one.__cause__, other.__cause__ = other, one
        one.__context__ = other.__context__ = one
        assert local_errno(causes(one)) is None
        other.args = (LOCAL,)
        assert local_errno(causes(one)) == "EMFILE"

    def test_a_chain_without_an_end_is_given_up(self) -> None:
        class EndlessError(Exception):
            @property
            def reason(self) -> Exception:
                return EndlessError()

        assert local_errno(causes(EndlessError())) is None
        deep: BaseException = LOCAL
        for _ in range(1000):
            deep = raised(deep)
        assert local_errno(causes(deep)) is None

    def test_a_real_connection_of_requests(self) -> None:
        with pytest.raises(requests.ConnectionError) as error:
            requests.get("http://255.255.255.255:9/", timeout=5)
        assert local_errno(causes(error.value)) == refused_by_kernel()

    def test_a_real_connection_that_the_other_side_refuses(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it, and it refuses
            with pytest.raises(requests.ConnectionError) as error:
                requests.get(f"http://127.0.0.1:{free.getsockname()[1]}/", timeout=5)
        assert local_errno(causes(error.value)) is None
        assert error_key(error.value) == "ConnectionError ECONNREFUSED"

    def test_a_real_connection_of_boto3(self) -> None:
        client = botocore.session.Session().create_client(
            "sagemaker-runtime",
            region_name="eu-west-1",
            endpoint_url="http://255.255.255.255:9",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}, proxies={}),
        )
        with pytest.raises(EndpointConnectionError) as error:
            client.invoke_endpoint(EndpointName="e", Body=b"")
        assert local_errno(causes(error.value)) == refused_by_kernel()

    def test_a_real_want_of_descriptors(self) -> None:
        """In a process of its own, which has none left."""
        script = """
import resource, socket, sys
import requests, urllib3, idna
from inference_benchmarker.records.error_cause import causes, local_errno
session = requests.Session()
session.trust_env = False
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(socket.socket())
except OSError:
    pass
try:
    session.get("http://127.0.0.1:9/")
except requests.ConnectionError as error:
    name = local_errno(causes(error))
held.clear()
print(name)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.split() == ["EMFILE"], done.stderr


def texts_of(writer: BatchWriter) -> list[list[str]]:
    texts: list[list[str]] = split_batch(writer.take({}))[0]["texts"]
    return texts


class TestErrorTexts:
    def test_the_first_few_of_each_key_are_kept(self) -> None:
        writer = BatchWriter()
        for number in range(10):
            writer.error(ValueError(f"value {number}"))
            writer.error(http_error(500))
        texts = texts_of(writer)
        assert [text for key, text in texts if key == "ValueError"] == ["value 0", "value 1", "value 2"][:MAX_TEXTS]
        assert len(texts) == 2 * MAX_TEXTS
        assert texts_of(writer) == []

    def test_a_long_text_is_cut_after_its_secrets_are_hidden(self) -> None:
        writer = BatchWriter([SECRET])
        writer.error(ValueError("x" * (MAX_TEXT_LENGTH - 40) + " Authorization: Bearer abcdefghijklmnopqrstuvwxyz"))
        writer.error(ValueError("y" * 10**7))
        (_, first), (_, second) = split_batch(redacted(writer.take({})))[0]["texts"]
        assert "abcdef" not in first
        assert HIDDEN in first
        assert len(first) <= MAX_TEXT_LENGTH
        assert second == "y" * MAX_TEXT_LENGTH

    def test_a_name_of_another_host_has_no_secret_of_this_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There the server reported it, and the variable is not set."""
        writer = BatchWriter()
        for number in (1, 2):
            assert writer.labels[f"{number} of {SECRET}"] == number
        writer.finish_reasons[f"stop {SECRET}"]
        writer.error(ValueError(SECRET))
        writer.errors[f"of {SECRET}"]
        batch = writer.take({})
        assert redacted(batch).count(SECRET.encode()) == 5
        monkeypatch.setenv("UPSTREAM_TOKEN", SECRET)
        reported = redacted(batch)
        assert SECRET.encode() not in reported
        meta, *sections = split_batch(reported)
        assert (meta["labels"], meta["errors"][-1]) == (["", f"1 of {HIDDEN}", f"2 of {HIDDEN}"], f"of {HIDDEN}")
        assert meta["finish_reasons"] == ["", f"stop {HIDDEN}"]
        assert sections == list(split_batch(batch))[1:]

    def test_a_worker_keeps_little_of_a_text_and_no_given_secret(self) -> None:
        """What it keeps is searched for forms of credentials elsewhere, so that the pacing never waits for it."""
        writer = BatchWriter([SECRET])
        writer.error(ValueError("a." * 5_000_000))
        writer.error(ValueError(f"{SECRET} " + "x" * (RAW_TEXT_LENGTH - 30) + SECRET * 3))
        writer.error(ValueError("https://user:of-nobody@host"))
        batch = writer.take({"worker": 3})
        texts = [text for _, text in split_batch(batch)[0]["texts"]]
        assert max(map(len, texts)) <= RAW_TEXT_LENGTH
        assert not any(SECRET[:3] in text for text in texts)
        meta, *sections = split_batch(redacted(batch))
        assert [text for _, text in meta.pop("texts")][2] == f"https://{HIDDEN}@host"
        assert meta.pop("feed") == []
        assert meta == {"worker": 3, "labels": [""], "finish_reasons": [""], "errors": ["", "ValueError"]}
        assert sections == list(split_batch(batch)[1:])

    def test_a_batch_without_texts_stays_as_it_is(self) -> None:
        batch = BatchWriter().take({"worker": 3})
        assert redacted(batch) is batch

    def test_a_text_that_cannot_be_had_or_stored_is_no_reason_to_lose_the_record(self) -> None:
        writer = BatchWriter()
        writer.error(RequestNotSetError())
        writer.error(ValueError("\udcff"))
        texts = texts_of(writer)
        assert "AttributeError" in texts[0][1]
        assert texts[1] == ["ValueError", "?"]

    def test_memory_is_bounded_however_many_keys_there_are(self) -> None:
        writer = BatchWriter()
        for number in range(MAX_NAMES + 100):
            written = writer.error(type(f"Error{number}", (Exception,), {})("text"))
        assert written[1] == OTHER
        assert len(writer._text_counts) <= MAX_NAMES + 1


class TestLedger:
    def test_it_adds_up_and_survives_json(self) -> None:
        one = Ledger(scheduled=10, sent=8, dropped=1, lost=1, ok=5, failed=1, abandoned=1)
        assert (one.in_flight, one.completed, one.balanced) == (1, 6, True)
        both = one + one
        assert both == Ledger(20, 16, 2, 2, 10, 2, 2)
        assert Ledger.from_json(json.loads(json.dumps(both.to_json()))) == both
        assert both.to_json()["in_flight"] == 2

    @pytest.mark.parametrize(
        "ledger",
        [Ledger(scheduled=2, sent=1), Ledger(scheduled=1, sent=2), Ledger(scheduled=1, sent=1, ok=1, failed=1)],
        ids=["an arrival vanished", "one was sent twice", "more ended than were sent"],
    )
    def test_a_broken_one_says_so(self, ledger: Ledger) -> None:
        assert not ledger.balanced


def test_an_exception_that_compares_in_its_own_way_is_searched_all_the_same() -> None:
    class ApiError(Exception):
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

    class OddError(OSError):
        errno = property(lambda _: [])
        args = property(lambda _: 1 / 0)

    error = ApiError()
    error.__cause__ = ApiError()
    error.__cause__.__cause__ = OddError()
    error.__cause__.__cause__.__cause__ = OSError(errno.EMFILE, "none left")
    assert local_errno(causes(error)) == "EMFILE"


class Hostile(type):
    """A class that answers no question."""

    __name__ = property(lambda _: 1 / 0)
    __mro__ = property(lambda _: 1 / 0)
    __instancecheck__ = __subclasscheck__ = __eq__ = __hash__ = None  # type: ignore[assignment]


class HostileText(str):
    """A text whose methods end the process."""

    def __getitem__(self, key: object) -> str:
        raise SystemExit

    __str__ = __repr__ = __hash__ = __len__ = __format__ = __eq__ = encode = isascii = __getitem__  # type: ignore


class HostileNumber(int):
    """A number that compares with nothing."""

    def __le__(self, other: object) -> bool:
        raise KeyboardInterrupt

    __lt__ = __ge__ = __gt__ = __index__ = __int__ = __bool__ = __str__ = __le__  # type: ignore[assignment]


class HostileDict(dict[str, Any]):
    """A response that raises."""

    def get(self, *_: object) -> Any:
        raise GeneratorExit


def made(kind: type) -> BaseException:
    error: BaseException = kind("x")
    return error


def hostile(**attributes: Any) -> BaseException:
    return made(Hostile("HostileError", (Exception,), attributes))


def saying(text: Any) -> BaseException:
    return made(type("SaysError", (Exception,), {"__str__": lambda _: text}))


def raising(error: type[BaseException], *names: str) -> BaseException:
    def fails(*_: object) -> Any:
        raise error

    members = {name: property(fails) for name in names}
    return made(type("RaisesError", (Exception,), {**members, "__str__": fails, "__repr__": fails, "__eq__": fails}))


ODD = {
    "a class that answers nothing": (hostile(), "HostileError"),
    "a class with a status": (hostile(status=503), "HostileError 503"),
    "a number of its own kind": (with_attributes("E", status=HostileNumber(503)), "E 503"),
    "a huge number": (with_attributes("E", status=10**5000, code=-(10**5000)), "E"),
    "a response of its own kind": (with_attributes("E", response=HostileDict(Error={"Code": "x"})), "E"),
    "a code of its own kind": (with_attributes("E", response={"Error": {"Code": HostileText("x")}}), "E"),
    "a code that is a number": (ClientError({"Error": {"Code": 424}}, "X"), "ClientError 424"),
    "a huge errno": (OSError(10**5000, "x"), "OSError"),
    "an errno that is a text": (OSError("free text", "x"), "OSError"),
    "a name with an escape": (type("\x1b[2J\nVALID", (Exception,), {})(), " [2J VALID"),
    "a detail of its own kind": (with_attributes("E", _benchmark_detail=HostileText("x")), "E"),
    "a text that is none": (saying(7), "SaysError"),
    "a text of its own kind": (saying(HostileText("x")), "SaysError"),
    **{
        f"attributes and text that raise {error.__name__}": (
            raising(error, "response", "status", "status_code", "code", "errno", "args", "__cause__", "__context__"),
            "RaisesError",
        )
        for error in (SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError, RecursionError)
    },
}


@pytest.mark.parametrize(("exception", "key"), ODD.values(), ids=ODD)
def test_an_exception_that_does_what_it_likes_has_a_key_and_a_text(exception: BaseException, key: str) -> None:
    assert error_key(exception) == key
    assert local_errno(causes(exception)) is None
    writer = BatchWriter([SECRET])
    assert writer.error(exception) == (1, key)
    ((written, text),) = texts_of(writer)
    assert written == key
    assert type(text) is str


def test_a_name_of_a_megabyte_is_cut() -> None:
    _, key = BatchWriter().error(type("E" * 10**6, (Exception,), {})("x"))
    assert len(key) == MAX_NAME_LENGTH
