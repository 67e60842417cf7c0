"""The fast HTTP client against a server that answers byte for byte as written down."""

from __future__ import annotations

import errno
import gzip
import itertools
import os
import socket
import ssl
import sys
import threading
import time
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import gevent
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.clients import HttpClient, HttpStatusError, pool
from inference_benchmarker.clients.answer_parser import IncompleteAnswerError, NotHttpError
from inference_benchmarker.clients.connection import ConnectionClosedError, ReadTimeoutError
from inference_benchmarker.clients.decoding import UndecodableAnswerError, decoder_of, whole
from inference_benchmarker.clients.http import encode
from inference_benchmarker.clients.pool import Answer, ConnectTimeoutError
from inference_benchmarker.records.error_key import error_key
from inference_benchmarker.system.host import raise_descriptor_limit
from tests.scripted_server import CLOSE, RESET, Script, ScriptedServer, answer, chunked_head, chunks

if TYPE_CHECKING:
    from pathlib import Path

OK = [answer(b"ok")]


def test_a_payload_is_posted_and_the_connection_kept() -> None:
    with ScriptedServer([OK]) as server:
        client = HttpClient(f"{server.url}/base/", headers={"X-Key": "k"})
        assert client.post({"a": [1, 2.5]}) == b"ok"
        assert client.post(b"\xff\x00", "/more?x=1", headers={"X-Own": "o"}) == b"ok"
        assert client.get() == b"ok"
    first, second, third = server.asked
    assert (first.line, first.body) == ("POST /base HTTP/1.1", b'{"a":[1,2.5]}')
    assert first.headers == {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "application/json",
        "x-key": "k",
        "content-length": "13",
    }
    assert (second.line, second.body) == ("POST /base/more?x=1 HTTP/1.1", b"\xff\x00")
    assert (second.headers["x-key"], second.headers["x-own"]) == ("k", "o")
    assert (third.line, third.body) == ("GET /base HTTP/1.1", b"")
    assert {asked.connection for asked in server.asked} == {0}


@pytest.mark.parametrize(
    ("payload", "as_csv", "expected"),
    [
        (b"as it is", False, b"as it is"),
        (bytearray(b"x"), True, b"x"),
        ("é", False, "é".encode()),
        ("1,2\n", True, b"1,2\n"),
        ({"é": None}, False, b'{"\\u00e9":null}'),
        ([[1, 2.5], ["a,b", 'c"d']], True, b'1,2.5\n"a,b","c""d"\n'),
        ([[1, 2]], False, b"[[1,2]]"),
    ],
)
def test_payloads_become_bytes(payload: Any, as_csv: bool, expected: bytes) -> None:
    assert encode(payload, as_csv=as_csv) == expected


def test_a_header_of_the_users_takes_the_place_of_ours_however_it_is_spelt() -> None:
    client = HttpClient("http://127.0.0.1:1", headers={"content-type": "a/b", "X-A": "1"})
    assert client._encode("POST", "", b"", None).lower().count(b"content-type:") == 1
    head = client._encode("POST", "", b"", {"Content-Type": "c/d", "x-a": "2", "HOST": "h"}).lower().decode()
    assert sorted(head.split("\r\n")[1:-2]) == ["content-length: 0", "content-type: c/d", "host: h", "x-a: 2"]


def test_the_content_type_makes_rows_csv() -> None:
    with ScriptedServer([OK]) as server:
        HttpClient(server.url, content_type="text/csv; charset=utf-8").post([[1, "a"]])
    assert server.asked[0].body == b"1,a\n"
    assert server.asked[0].headers["content-type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize(
    ("script", "body"),
    [
        ([answer(b"abc")], b"abc"),
        ([chunked_head(), chunks(b"ab", b"c" * 70_000)], b"ab" + b"c" * 70_000),
        ([chunked_head(), b"3;ext=1\r\nabc\r\n0\r\nTrailer: x\r\n\r\n"], b"abc"),
        ([b"HTTP/1.1 200 OK\r\n\r\nabc", CLOSE], b"abc"),
        ([b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", CLOSE], b"abc"),
        ([b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n", 0.01, answer(b"abc")], b"abc"),
        ([b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"], b""),
        ([answer(b"abc") + b"trailing garbage"], b"abc"),
        ([answer(b"abc") * 2], b"abc"),
    ],
)
def test_bodies_of_every_framing(script: list[Any], body: bytes) -> None:
    with ScriptedServer([script, OK]) as server:
        client = HttpClient(server.url)
        assert client.post(b"1") == body
        assert client.post(b"2") == b"ok"  # whatever became of the connection


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(1, 150), max_size=12))
def test_an_answer_cut_anywhere_is_the_same(cuts: list[int]) -> None:
    whole = chunked_head(X_One="first", X_Two="") + chunks(b"ab", b"cdefg")
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in itertools.pairwise(places)]
    script = [part for piece in pieces for part in (piece, 0.001)]
    with ScriptedServer([script]) as server:
        found = HttpClient(server.url).request("POST")
    assert found == (200, {"x-one": "first", "x-two": "", "transfer-encoding": "chunked"}, b"abcdefg")


def test_headers_that_come_twice_are_joined() -> None:
    with ScriptedServer([[b"HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nB: x\r\nContent-Length: 0\r\n\r\n"]]) as server:
        assert HttpClient(server.url).request("GET").headers == {"a": "1, 2", "b": "x", "content-length": "0"}


def test_head_has_no_body() -> None:
    with ScriptedServer([[b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"], OK]) as server:
        client = HttpClient(server.url)
        assert client.request("HEAD").body == b""
        assert client.get() == b"ok"
    assert [asked.connection for asked in server.asked] == [0, 0]


@pytest.mark.parametrize("status", [301, 304, 400, 404, 429, 500, 503, 599])
def test_what_is_no_success_raises_under_its_status(status: int) -> None:
    with ScriptedServer([[answer(b"" if status == 304 else b"why", f"{status} X", Retry_After="1")], OK]) as server:
        client = HttpClient(server.url)
        with pytest.raises(HttpStatusError) as failed:
            client.post(b"")
        assert client.post(b"") == b"ok"
    assert error_key(failed.value) == f"HttpStatusError {status}"
    assert (failed.value.status, failed.value.headers["retry-after"]) == (status, "1")
    assert failed.value.body == (b"" if status == 304 else b"why")
    assert {asked.connection for asked in server.asked} == {0}, "the connection of an error is kept"


def test_a_stream_gives_pieces_as_they_come() -> None:
    gap = 0.1
    script: Script = [chunked_head(), b"1\r\na\r\n", gap, b"1\r\nb\r\n", gap, b"0\r\n\r\n"]
    with ScriptedServer([script, OK]) as server:
        client = HttpClient(server.url)
        seen = [(time.monotonic(), piece) for piece in client.stream(b"")]
        assert client.post(b"") == b"ok"
    assert [piece for _, piece in seen] == [b"a", b"b"]
    assert seen[1][0] - seen[0][0] > gap / 2
    assert [asked.connection for asked in server.asked] == [0, 0]


def test_a_stream_left_early_costs_its_connection_only() -> None:
    with ScriptedServer([[chunked_head(), b"1\r\na\r\n"], OK]) as server:
        client = HttpClient(server.url)
        stream = client.stream(b"")
        assert next(stream) == b"a"
        stream.close()  # type: ignore[attr-defined]
        assert client.post(b"") == b"ok"
    assert [asked.connection for asked in server.asked] == [0, 1]


def test_a_streams_error_has_its_body() -> None:
    with ScriptedServer([[answer(b"why", "503 Busy")]]) as server, pytest.raises(HttpStatusError, match="503: why"):
        next(iter(HttpClient(server.url).stream(b"")))


@pytest.mark.parametrize(
    ("script", "error", "key"),
    [
        ([CLOSE], ConnectionClosedError, "ConnectionClosedError"),
        ([RESET], ConnectionResetError, "ConnectionResetError"),
        ([b"HTTP/1.1 200 OK\r\nA: ", CLOSE], IncompleteAnswerError, "IncompleteAnswerError"),
        ([answer(b"abc")[:-1], CLOSE], IncompleteAnswerError, "IncompleteAnswerError"),
        ([chunked_head(), b"3\r\nabc\r\n", CLOSE], IncompleteAnswerError, "IncompleteAnswerError"),
        ([b"SSH-2.0-x\r\n\r\n"], NotHttpError, "NotHttpError"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"], NotHttpError, "NotHttpError"),
    ],
)
def test_a_broken_answer_fails_its_request_and_nothing_is_sent_again(
    script: list[Any], error: type[Exception], key: str
) -> None:
    with ScriptedServer([OK, script, OK]) as server:
        client = HttpClient(server.url)
        client.post(b"1")
        with pytest.raises(error) as failed:
            client.post(b"2")
        assert client.post(b"3") == b"ok"
    assert error_key(failed.value) == key
    assert [asked.body for asked in server.asked] == [b"1", b"2", b"3"]
    assert [asked.connection for asked in server.asked] == [0, 0, 1]


def test_the_beginning_of_what_is_no_http_is_reported() -> None:
    text = r"the answer is not HTTP \(.*\): 'SSH-2.0-OpenSSH_9.6.* \.\.\."
    script = [b"SSH-2.0-OpenSSH_9.6\r\n" + b"x" * 1000]
    with ScriptedServer([script]) as server, pytest.raises(NotHttpError, match=text) as failed:
        HttpClient(server.url).post(b"")
    assert len(str(failed.value)) < 300


def test_a_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    with ScriptedServer([[answer(b"ok"), 0.05, CLOSE]]) as server:
        client = HttpClient(server.url)
        for number in range(4):
            assert client.post(b"%d" % number) == b"ok"
            gevent.sleep(0.15)
    assert [asked.body for asked in server.asked] == [b"0", b"1", b"2", b"3"]
    assert [asked.connection for asked in server.asked] == [0, 1, 2, 3]


def test_as_many_connections_as_requests_in_flight_and_no_more() -> None:
    with ScriptedServer([[0.2, answer(b"ok")]]) as server:
        client = HttpClient(server.url)
        begun = time.monotonic()
        for _ in range(2):
            requests = [gevent.spawn(client.post, b"") for _ in range(50)]
            gevent.joinall(requests, raise_error=True)
        assert time.monotonic() - begun < 50 * 0.2, "none waited for another's connection"
    assert {asked.connection for asked in server.asked} == set(range(50))


def test_descriptors_beyond_1023_serve_as_well() -> None:
    raise_descriptor_limit()
    taken = [os.dup(0) for _ in range(1100)]
    try:
        with ScriptedServer([OK]) as server:
            client = HttpClient(server.url)
            assert [client.post(b""), client.post(b"")] == [b"ok"] * 2
        assert [asked.connection for asked in server.asked] == [0, 0]
    finally:
        for descriptor in taken:
            os.close(descriptor)


def test_a_server_that_says_nothing_times_out() -> None:
    with ScriptedServer([[0.5, answer(b"late")], OK]) as server:
        client = HttpClient(server.url, read_timeout_s=0.1)
        with pytest.raises(ReadTimeoutError, match=r"0.1 s") as failed:
            client.post(b"")
        assert error_key(failed.value) == "ReadTimeoutError"
        assert client.post(b"") == b"ok"


def test_only_silence_times_out_not_length() -> None:
    slowly: Script = [part for _ in range(6) for part in (b"1\r\na\r\n", 0.1)]
    script = [chunked_head(), *slowly, b"0\r\n\r\n"]
    with ScriptedServer([script, [chunked_head(), b"1\r\na\r\n", 1.0]]) as server:
        client = HttpClient(server.url, read_timeout_s=0.35)
        assert client.post(b"") == b"aaaaaa"
        begun = time.monotonic()
        with pytest.raises(ReadTimeoutError):
            client.post(b"")
        assert 0.3 < time.monotonic() - begun < 0.9


def test_a_client_that_was_held_up_is_no_silence_of_the_server() -> None:
    with ScriptedServer([[0.1, answer(b"ok")]]) as server:
        request = gevent.spawn(HttpClient(server.url, read_timeout_s=1).post, b"")
        gevent.sleep(0.05)
        time.sleep(1.5)  # nothing runs meanwhile
        assert request.get() == b"ok"


def test_who_reads_late_does_not_time_out() -> None:
    with ScriptedServer([[chunked_head(), b"1\r\na\r\n", 0.05, b"1\r\nb\r\n0\r\n\r\n"]]) as server:
        client = HttpClient(server.url, read_timeout_s=0.5)
        for pause in (gevent.sleep, time.sleep):
            stream = client.stream(b"")
            assert next(stream) == b"a"
            pause(1.2)
            assert list(stream) == [b"b"]


def test_the_servers_silence_begins_when_the_request_is_sent() -> None:
    body = b"x" * 20_000_000

    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock, sock.makefile("rb") as reader:
            while reader.readline() != b"\r\n":
                pass
            time.sleep(0.7)
            reader.read(len(body))
            time.sleep(0.7)
            sock.sendall(answer(b"ok"))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}", read_timeout_s=1.2)
        assert client.post(body) == b"ok"
        thread.join()


def test_a_server_that_answers_and_takes_no_more_times_out_too() -> None:
    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            for _ in range(2):
                sock.recv(65536)
                sock.sendall(answer(b"ok"))
            sock.recv(10)
            sock.sendall(answer(b"", "413 Too Large"))
            time.sleep(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}", read_timeout_s=0.2)
        assert client.post(b"1") == client.post(b"2") == b"ok"
        with pytest.raises(ReadTimeoutError):
            client.post(b"x" * 50_000_000)
        thread.join()


@pytest.mark.parametrize("lingers", [False, True])
def test_an_answer_to_a_request_that_the_server_does_not_read_is_its_answer(lingers: bool) -> None:
    def serve(listener: socket.socket) -> None:
        for reply in (answer(b"too large", "413 X"), b""):
            sock, _ = listener.accept()
            with sock:
                sock.recv(1000)
                sock.sendall(reply)
                sock.shutdown(socket.SHUT_WR)
                time.sleep(0.2 * lingers)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        client = HttpClient(f"http://127.0.0.1:{listener.getsockname()[1]}", read_timeout_s=5)
        with pytest.raises(HttpStatusError, match="413: too large"):
            client.post(b"x" * 20_000_000)
        with pytest.raises((ConnectionClosedError, ConnectionResetError)):
            client.post(b"x" * 20_000_000)
        thread.join()


def test_an_idle_connection_has_no_time_out() -> None:
    with ScriptedServer([OK]) as server:
        client = HttpClient(server.url, read_timeout_s=0.5)
        client.post(b"")
        gevent.sleep(0.7)
        client.post(b"")
    assert [asked.connection for asked in server.asked] == [0, 0]


def test_a_connection_that_never_stands_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        client = HttpClient(f"http://127.0.0.1:{full.getsockname()[1]}", connect_timeout_s=0.1)
        with pytest.raises(ConnectTimeoutError, match=r"to 127\.0\.0\.1:\d+ within 0\.1 s"):
            client.post(b"")
        for sock in waiting:
            sock.close()


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(
        ConnectionRefusedError, match=rf"Connection refused: 127\.0\.0\.1:{port} \(is the server running there\?\)$"
    ) as refused:
        HttpClient(f"http://127.0.0.1:{port}").post(b"")
    assert refused.value.errno == errno.ECONNREFUSED


def test_a_name_that_nobody_knows_is_reported_with_its_port(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: tuple[str, int]) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(pool, "create_connection", unknown)
    with pytest.raises(socket.gaierror, match=r"Name or service not known: no\.such\.host:443$") as raised:
        HttpClient("https://no.such.host").post(b"")
    assert raised.value.errno == socket.EAI_NONAME


@pytest.mark.parametrize("url", ["", "host:80", "ftp://host", "http://", "http:///path"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ValueError, match="not the URL of a server"):
        HttpClient(url)


def test_a_query_is_not_lost() -> None:
    with pytest.raises(ValueError, match="host has a query"):
        HttpClient("http://host/path?version=1")


def test_a_password_in_the_url_is_neither_lost_nor_shown() -> None:
    with pytest.raises(ValueError, match="host names a user") as refused:
        HttpClient("http://user:secret@host/path")
    assert "secret" not in str(refused.value)


def test_nothing_slips_into_the_head() -> None:
    client = HttpClient("http://127.0.0.1:1")
    for headers in ({"A": "1\r\nB: 2"}, {"A\n": "1"}, {"A": "1\r"}):
        with pytest.raises(ValueError, match="line break"):
            client.post(b"", headers=headers)
    for path in ("/a b", "/a\r\n", "a"):
        with pytest.raises(ValueError, match="not a path"):
            client.post(b"", path)


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://h", "h"),
        ("http://h:80", "h"),
        ("https://h:443", "h"),
        ("https://h:80", "h:80"),
        ("http://[::1]:8/", "[::1]:8"),
    ],
)
def test_the_host_header(url: str, host: str) -> None:
    assert f"Host: {host}\r\n" in HttpClient(url)._common


def test_tls_trusts_what_it_is_configured_to(certificate: Path, tls: ssl.SSLContext) -> None:
    import gevent.ssl

    own = gevent.ssl.create_default_context(cafile=str(certificate))
    body = b"x" * 300_000
    with ScriptedServer([[answer(body)]], tls) as server:
        for verify in (certificate, False, own):
            client = HttpClient(server.url, verify=verify)
            assert client.post(b"") == client.post(b"") == body
        with pytest.raises(ssl.SSLCertVerificationError) as refused:
            HttpClient(server.url).post(b"")
    assert error_key(refused.value) == "SSLCertVerificationError CERTIFICATE_VERIFY_FAILED"
    assert [asked.connection for asked in server.asked] == [0, 0, 2, 2, 4, 4], "each wrapped socket is kept, too"


def test_tls_waits_without_holding_up_others(certificate: Path, tls: ssl.SSLContext) -> None:
    with ScriptedServer([[1.0, answer(b"late")]], tls) as server:
        client = HttpClient(server.url, verify=certificate, read_timeout_s=0.2)
        with pytest.raises(ReadTimeoutError):
            client.post(b"")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        client = HttpClient(f"https://127.0.0.1:{mute.getsockname()[1]}", connect_timeout_s=0.2)
        with pytest.raises(
            ConnectTimeoutError, match=r"^connected, but there was no TLS handshake with 127.* is it an http server\?$"
        ):
            client.post(b"")


# --- compressed answers

PLAIN = b"".join(b"data: %d\n\n" % number for number in range(200))


def raw_deflate(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-15)


ENCODED = {
    "gzip": gzip.compress(PLAIN),
    "X-GZIP": gzip.compress(PLAIN[:50]) + gzip.compress(PLAIN[50:]),
    "gzip ": gzip.compress(PLAIN) + b"\0" * 20,
    "deflate": zlib.compress(PLAIN),
    "Deflate": raw_deflate(PLAIN),
    "deflate, gzip": gzip.compress(zlib.compress(PLAIN)),
    "br": import_module("brotli").compress(PLAIN),
    "identity": PLAIN,
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_compressed_answer_is_decoded_whole_and_as_a_stream(encoding: str) -> None:
    body = ENCODED[encoding]
    scripts = [[answer(body, Content_Encoding=encoding)], OK, [chunked_head(Content_Encoding=encoding), chunks(body)]]
    with ScriptedServer([*scripts, OK]) as server:
        client = HttpClient(server.url)
        assert client.post(b"") == PLAIN
        assert client.post(b"") == b"ok", "the next answer is plain"
        assert b"".join(client.stream(b"")) == PLAIN
        assert client.post(b"") == b"ok"
    assert {asked.connection for asked in server.asked} == {0}
    assert "accept-encoding" not in server.asked[0].headers


@settings(max_examples=25)
@given(st.sampled_from(sorted(ENCODED)), st.lists(st.integers(1, 400), max_size=8))
def test_compressed_bytes_cut_anywhere_are_the_same(encoding: str, cuts: list[int]) -> None:
    body = ENCODED[encoding]
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    decoder = decoder_of(encoding)
    if decoder is None:
        return
    assert b"".join(decoder.decode(body[start:end]) for start, end in itertools.pairwise(places)) == PLAIN
    decoder.end()


def test_a_compressed_stream_is_given_as_it_comes() -> None:
    compressor = zlib.compressobj(wbits=31)
    first = compressor.compress(b"a") + compressor.flush(zlib.Z_SYNC_FLUSH)
    rest = compressor.compress(b"b") + compressor.flush()
    script = [chunked_head(Content_Encoding="gzip"), *(b"%x\r\n%b\r\n" % (len(p), p) for p in (first[:10], first[10:]))]
    with ScriptedServer([[*script, 0.3, chunks(rest)]]) as server:
        seen = [(time.monotonic(), piece) for piece in HttpClient(server.url).stream(b"")]
    assert [piece for _, piece in seen] == [b"a", b"b"]
    assert seen[1][0] - seen[0][0] > 0.1, "the first did not wait for the second"


@pytest.mark.parametrize(
    ("encoding", "body", "text"),
    [
        ("gzip", gzip.compress(PLAIN)[:-9], "gzip ends in the middle"),
        ("gzip", b"plain all the same", "gzip is damaged"),
        ("deflate", zlib.compress(PLAIN)[:-5], "deflate ends in the middle"),
        ("deflate", b"\xff" * 9, "deflate is damaged"),
        ("zstd", b"x", "encoded with 'zstd'; known are gzip, x-gzip, deflate, br"),
        ("br", b"x", "needs `pip install brotli`"),
    ],
)
def test_what_cannot_be_decoded_is_a_failure_that_says_so(
    encoding: str, body: bytes, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("brotli", "brotlicffi"):
        monkeypatch.setitem(sys.modules, library, None)
    with ScriptedServer([[answer(body, Content_Encoding=encoding)]]) as server:
        client = HttpClient(server.url)
        for call in (lambda: client.post(b""), lambda: list(client.stream(b""))):
            with pytest.raises(UndecodableAnswerError, match=text):
                call()
    with ScriptedServer([[answer(body, "502 X", Content_Encoding=encoding)]]) as server:
        with pytest.raises(HttpStatusError) as failed:
            HttpClient(server.url).post(b"")
        assert (failed.value.status, failed.value.body) == (502, body)


def test_a_body_that_is_encoded_many_times_is_given_up() -> None:
    with (
        ScriptedServer([[answer(b"", Content_Encoding=", ".join(["gzip"] * 99))]]) as server,
        pytest.raises(UndecodableAnswerError, match="encoded 99 times"),
    ):
        HttpClient(server.url).post(b"")


def test_many_members_of_gzip_cost_no_more_than_their_bytes() -> None:
    class Counting:
        longest = 0

        def decode(self, data: bytes) -> bytes:
            self.longest = max(self.longest, len(data))
            return data

        def end(self) -> None: ...

    decoder, body = Counting(), bytes(range(256)) * 1000
    assert whole(decoder, body) == body
    assert decoder.longest == 16 * 1024, "what follows a member is copied for each"


def test_an_empty_body_needs_no_decoding() -> None:
    with ScriptedServer([[answer(b"", Content_Encoding="gzip")]]) as server:
        client = HttpClient(server.url)
        assert client.post(b"") == client.request("HEAD").body == b""
        assert list(client.stream(b"")) == []


def test_verify_names_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"verify=.*no\.pem"):
        HttpClient("https://127.0.0.1:1", verify=tmp_path / "no.pem")
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(ValueError, match=r"empty\.pem' has no certificates"):
        HttpClient("https://127.0.0.1:1", verify=str(tmp_path / "empty.pem"))
    HttpClient("https://127.0.0.1:1", verify=tmp_path)


def test_a_certificate_that_is_not_trusted_is_reported_with_what_to_try(tls: ssl.SSLContext) -> None:
    with ScriptedServer([[answer(b"")]], tls) as server, pytest.raises(ssl.SSLCertVerificationError) as raised:
        HttpClient(server.url).get()
    hint = "(to trust a certificate of your own: SSL_CERT_FILE=FILE.pem in the environment)"
    assert str(raised.value).endswith(f": 127.0.0.1:{server.port} {hint}")


def test_an_empty_content_type_is_not_reported() -> None:
    with ScriptedServer([[answer(b"")]]) as server:
        HttpClient(server.url, content_type="").get()
        HttpClient(server.url).get()
    assert [asked.headers.get("content-type") for asked in server.asked] == [None, "application/json"]


def test_a_redirect_tells_where_it_leads() -> None:
    said = answer(b"moved", "308 Permanent Redirect", Location="https://there/")
    text = r"^answered 308 \(it is at https://there/\): moved$"
    with ScriptedServer([[said]]) as server, pytest.raises(HttpStatusError, match=text):
        HttpClient(server.url).get()


@pytest.mark.parametrize("before", [420, 470, 490, 499])
def test_a_secret_that_the_server_sends_back_is_not_cut_in_half(before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What hides secrets finds them whole only."""
    secret = "".join(map(chr, range(48, 91))) + "z" * 45
    monkeypatch.setenv("LONG_API_KEY", secret)
    text = str(HttpStatusError(Answer(500, {}, b"x" * before + secret.encode() + b"y" * 400)))
    assert "x" * before in text
    assert secret[:6] not in text
