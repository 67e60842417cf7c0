"""Answers without an end, whoever reads them: a failed request of one kind, and no memory or time beyond the limit."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import answer_size
from inference_benchmarker.answer_size import AnswerTooLargeError, take_at_most
from inference_benchmarker.clients import EventReader, HttpClient, HttpStatusError, OpenAIClient, SageMakerClient
from inference_benchmarker.clients.answer_parser import MOST_HEAD, AnswerParser
from inference_benchmarker.clients.decoding import decoder_of, whole
from inference_benchmarker.clients.event_stream import FrameReader
from inference_benchmarker.clients.sse import EndlessLineError
from inference_benchmarker.embedded.protocols.event_stream import frame
from inference_benchmarker.records.error_key import error_key
from tests.boto3_runtime import PART, isolate
from tests.growth import grows_with_size
from tests.scripted_server import ScriptedServer, answer, chunked_head, chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.scripted_server import Script

brotli = import_module("brotli")  # which has no types
MOST = 100_000
BLOCK = 16 * 1024
OK = [answer(b'{"choices": [{"text": "x", "message": {"content": "x"}, "finish_reason": "stop"}]}')]


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_size, "_most", MOST)


def parsed(*parts: bytes) -> AnswerParser:
    """A parser that was given these bytes as a connection gives them."""
    parser = AnswerParser()
    parser.complete = False
    for part in parts:
        for start in range(0, len(part), BLOCK):
            parser.parse(part[start : start + BLOCK])
    return parser


# --- the parser

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("first", [0, 1, MOST])
@pytest.mark.parametrize("head", [LENGTH, b"HTTP/1.1 200 OK\r\n\r\n"], ids=["length", "until it is closed"])
def test_a_body_may_have_the_limit_and_not_a_byte_more(head: bytes, first: int) -> None:
    """``first``: so much of the body comes with the head."""

    def read(size: int) -> bytes:
        body, parser = b"x" * size, AnswerParser()
        parser.complete = False
        parser.parse((head % size if b"%" in head else head) + body[:first])
        for start in range(first, size, BLOCK):
            parser.parse(body[start : start + BLOCK])
        return b"".join(parser.pieces)

    assert len(read(MOST)) == MOST
    with pytest.raises(AnswerTooLargeError, match=r"body has more than 97\.66 KiB, which --max-answer-size sets"):
        read(MOST + 1)


def test_what_frames_chunks_counts_with_the_body() -> None:
    framed = chunks(*[b"x"] * (MOST // 10))
    assert len(b"".join(parsed(CHUNKED + framed).pieces)) == MOST // 10
    with pytest.raises(AnswerTooLargeError, match="body has more than"):
        parsed(CHUNKED + b"2\r\n{}\r\n2;" + b"a=b;" * MOST)


def test_a_body_in_chunks_of_a_byte_takes_little_more_memory_than_its_bytes() -> None:
    size = MOST // 10
    framed = chunks(*[b"x"] * size)
    tracemalloc.start()
    try:
        parser = parsed(CHUNKED + framed)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert b"".join(parser.pieces) == b"x" * size
    assert kept < 10 * size


def test_nothing_is_kept_beyond_the_limit_and_the_connection_is_of_no_further_use() -> None:
    parser = parsed(CHUNKED)
    piece = b"3e8\r\n" + b"x" * 1000 + b"\r\n"
    with pytest.raises(AnswerTooLargeError):
        all(parser.parse(piece) is None for _ in range(1000))  # type: ignore[func-returns-value]
    assert sum(map(len, parser.pieces)) <= MOST + BLOCK
    assert not parser.reusable


def test_an_answer_that_ends_beyond_the_limit_leaves_no_reusable_connection() -> None:
    parser = AnswerParser()
    parser.complete = False
    with pytest.raises(AnswerTooLargeError):
        parser.parse(LENGTH % (MOST + 1) + b"x" * (MOST + 1))
    assert parser.complete
    assert not parser.reusable


TRAILERS = {"many": b"abc: def\r\n" * (MOST_HEAD // 5), "one": b"abc: " + b"d" * 2 * MOST_HEAD}


@pytest.mark.parametrize("trailers", TRAILERS)
def test_trailers_that_do_not_end_are_given_up_like_a_head(trailers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_size, "_most", 10 * MOST_HEAD)
    sent = CHUNKED + b"2\r\n{}\r\n0\r\n" + TRAILERS[trailers]
    tracemalloc.start()
    try:
        with pytest.raises(AnswerTooLargeError, match="trailers do not end within 1,048,576 bytes"):
            parsed(sent)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_HEAD // 4, "none of them is kept"


def test_trailers_are_no_headers() -> None:
    parser = parsed(CHUNKED + b"0\r\nConnection: close\r\n\r\n")
    assert parser.complete
    assert parser.headers == {"transfer-encoding": "chunked"}


def test_headers_of_which_one_is_repeated_are_joined_in_one_pass() -> None:
    def head(number: int) -> None:
        names = b"".join(b"a%x:v\r\n" % name for name in range(number))
        assert parsed(b"HTTP/1.1 200 OK\r\n" + names + b"a1:w\r\n\r\n").headers["a1"] == "v, w"

    assert grows_with_size(head, 500)


# --- lines and frames in pieces


def in_pieces(text: bytes) -> Iterator[bytes]:
    return (text[start : start + 256] for start in range(0, len(text), 256))


def test_a_line_in_many_pieces_is_read_in_one_pass() -> None:
    def line(size: int) -> None:
        assert list(EventReader.over(in_pieces(b"data: " + b"x" * size + b"\n\n"))) == [b"x" * size]

    assert grows_with_size(line, 1 << 18)


def test_a_frame_in_many_pieces_is_read_in_one_pass() -> None:
    def one(size: int) -> None:
        reader = FrameReader()
        assert (
            sum(len(payload) for piece in in_pieces(frame({}, bytes(size))) for _, payload in reader.feed(piece))
            == size
        )

    assert grows_with_size(one, 1 << 18)


@pytest.mark.parametrize("line", [b"x" * 1000, b"data: x\n", b"data:\n"], ids=["line", "lines", "empty lines"])
def test_an_event_that_does_not_end_is_given_up(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference_benchmarker.clients.sse.MOST_EVENT", MOST)
    with pytest.raises(EndlessLineError, match="of the stream does not end within"):
        list(EventReader.over(itertools.chain([b"data: a"], itertools.repeat(line, MOST))))


# --- what is far more than it seems


def deflated(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


ZEROS = bytes(4 << 20)
BOMBS = {
    "gzip": gzip.compress(ZEROS),
    "x-gzip": gzip.compress(bytes(BLOCK)) * (MOST // BLOCK + 1),
    "deflate": zlib.compress(ZEROS),
    "Deflate": deflated(ZEROS),
    "br": brotli.compress(ZEROS),
    "gzip, gzip": gzip.compress(gzip.compress(ZEROS)),
    "br, gzip": gzip.compress(brotli.compress(ZEROS)),
    "gzip, br": brotli.compress(gzip.compress(bytes(0)) * 10_000),
}


class _OldBrotli:
    """A library that cannot be made to stop, as they were."""

    error = brotli.error

    class Decompressor:
        def __init__(self) -> None:
            self._stream = brotli.Decompressor()

        def process(self, data: bytes) -> Any:
            return self._stream.process(data)

        def is_finished(self) -> Any:
            return self._stream.is_finished()


@pytest.mark.parametrize("encoding", [*BOMBS, "old br"])
@pytest.mark.parametrize("cut", [BLOCK, 100])
def test_a_body_that_is_far_more_than_it_seems_is_given_up(
    encoding: str, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if encoding == "old br":
        encoding = "br"
        monkeypatch.setattr("inference_benchmarker.clients.decoding._first_of", lambda *_: _OldBrotli)
    bomb = BOMBS[encoding]

    def by_pieces() -> None:
        decoder = decoder_of(encoding)
        assert decoder is not None
        found = 0
        for start in range(0, len(bomb), cut):
            found += len(decoder.decode(bomb[start : start + cut]))
            assert found <= MOST

    for decode in (lambda: whole(decoder_of(encoding) or pytest.fail("none"), bomb), by_pieces):
        with pytest.raises(AnswerTooLargeError, match="when it is decoded"):
            decode()


def test_a_body_of_the_limit_is_decoded() -> None:
    body = bytes(MOST)
    for encoding, encode in {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}.items():
        decoder = decoder_of(encoding)
        assert decoder is not None
        assert whole(decoder, encode(body)) == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_what_follows_a_compressed_body_is_left_out_in_one_pass(encoding: str) -> None:
    body, more = {"gzip": gzip.compress(b"x"), "deflate": zlib.compress(b"x")}[encoding], bytes(1024)

    def rest(number: int) -> None:
        decoder = decoder_of(encoding)
        assert decoder is not None
        assert decoder.decode(body) == b"x"
        assert not any(decoder.decode(more) for _ in range(number))

    assert grows_with_size(rest, 512)


def test_small_members_after_a_large_one_cost_no_more_than_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_size, "_most", 1 << 24)
    one = gzip.compress(b"x")

    def members(number: int) -> None:
        decoder = decoder_of("gzip")
        assert decoder is not None
        assert len(decoder.decode(gzip.compress(bytes(4096 * number)) + one * number)) == 4097 * number

    assert grows_with_size(members, 64)


# --- each client


def _posts(url: str) -> object:
    return HttpClient(url).post(b"")


def _streams(url: str) -> object:
    return sum(map(len, HttpClient(url).stream(b"")))


def _chats(url: str) -> object:
    return OpenAIClient(url).chat({})


def _streams_a_chat(url: str) -> object:
    return list(OpenAIClient(url).stream_chat({}))


def _invokes(url: str) -> object:
    return SageMakerClient(endpoint_url=url).invoke_endpoint(EndpointName="e", Body=b"")


def _streams_an_invocation(url: str) -> object:
    client = SageMakerClient(endpoint_url=url)
    return list(client.invoke_endpoint_with_response_stream(EndpointName="e", Body=b"")["Body"])


CLIENTS = [_posts, _streams, _chats, _streams_a_chat, _invokes, _streams_an_invocation]
LARGE: dict[str, Script] = {
    "body": [answer(b" " * (MOST + 1))],
    "chunks": [chunked_head(), *[b"3e8\r\n" + b"\n" * 1000 + b"\r\n"] * 200],
    "events": [chunked_head(), *(chunks(frame(PART, bytes(1000)))[:-5] for _ in range(200))],
    "trailers": [chunked_head(), b"1\r\n\n\r\n0\r\n", b"abc: def\r\n" * (MOST_HEAD // 5)],
}


NO_FRAMES = ("body", "chunks")  # whose first bytes are an error of another kind


@pytest.mark.parametrize(
    ("call", "script"),
    [(call, name) for call in CLIENTS for name in LARGE if call is not _streams_an_invocation or name not in NO_FRAMES],
)
def test_every_client_fails_an_endless_answer_under_one_key_and_closes_the_connection(
    call: Callable[[str], object], script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(monkeypatch)
    with ScriptedServer([LARGE[script]]) as server:
        with pytest.raises(AnswerTooLargeError) as failed:
            call(server.url)
        assert error_key(failed.value) == "AnswerTooLargeError"


def test_the_connection_of_an_endless_answer_is_closed_and_the_next_request_succeeds() -> None:
    with ScriptedServer([LARGE["body"], [answer(b"ok")]]) as server:
        client = HttpClient(server.url)
        with pytest.raises(AnswerTooLargeError):
            client.post(b"")
        assert client.post(b"") == b"ok"
    assert [asked.connection for asked in server.asked] == [0, 1]


def test_an_error_that_is_more_than_it_seems_keeps_its_status() -> None:
    with (
        ScriptedServer([[answer(BOMBS["gzip"], "502 X", Content_Encoding="gzip")]]) as server,
        pytest.raises(HttpStatusError) as failed,
    ):
        HttpClient(server.url).post(b"")
    assert (failed.value.status, failed.value.body) == (502, BOMBS["gzip"])


def test_the_limit_holds_for_connections_that_are_made_from_then_on() -> None:
    take_at_most(10)
    with ScriptedServer([[answer(b"x" * 11)], [answer(b"x" * 10)]]) as server:
        client = HttpClient(server.url)
        with pytest.raises(AnswerTooLargeError, match="more than 10 bytes"):
            client.post(b"")
        assert len(client.post(b"")) == 10
