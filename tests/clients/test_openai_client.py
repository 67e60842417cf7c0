"""OpenAIClient held against the openai package: the same answers of the same server must give the same."""

from __future__ import annotations

import gzip
import itertools
import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker import Answer, Response
from inference_benchmarker.clients import OpenAIClient
from inference_benchmarker.clients.openai_errors import APIConnectionError, APIError
from inference_benchmarker.clients.sse import EventReader, NoEventsError
from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from inference_benchmarker.records.error_key import error_key
from tests.scripted_server import CLOSE, Script, ScriptedServer, answer, chunked_head, chunks

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

TIMEOUT_S = 0.4
CHAT = {"model": "m", "messages": [{"role": "user", "content": "one two"}]}
TEXT = {"model": "m", "prompt": "one two"}
INPUT = {"model": "m", "input": ["one two", "three"], "encoding_format": "float"}


class Outcome(NamedTuple):
    """What a call came to."""

    result: Any = None
    key: str | None = None
    response: Any = None


def outcome(call: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(call())
    except Exception as error:
        reported = [getattr(error, name, None) for name in ("code", "type", "param", "body")]
        return Outcome(key=error_key(error), response=reported)


@dataclass(frozen=True)
class Pair:
    """The openai package's client and ours of one server."""

    server: ScriptedServer
    theirs: openai.OpenAI
    ours: OpenAIClient

    def give(self, script: Script) -> None:
        self.server.scripts = [script]
        self.server.asked.clear()


def clients(url: str) -> tuple[openai.OpenAI, OpenAIClient]:
    base = f"{url}/v1"
    theirs = openai.OpenAI(base_url=base, api_key="key", max_retries=0, timeout=TIMEOUT_S)
    return theirs, OpenAIClient(base, "key", connect_timeout_s=TIMEOUT_S, read_timeout_s=TIMEOUT_S)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with ScriptedServer([]) as server:
        yield Pair(server, *clients(server.url))


def events(*objects: Any, end: bytes = b"\n\n", done: bool = True) -> bytes:
    lines = [json.dumps(reported).encode() for reported in objects] + ([b"[DONE]"] if done else [])
    return b"".join(b"data: " + line + end for line in lines)


def delta(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    change = more if text is None else {"content": text, **more}
    choice = {"index": 0, "delta": change, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


USAGE = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
LAST = {**delta(), "choices": [], "usage": USAGE}
TOKENS = [delta("", role="assistant"), delta("a"), delta(" é"), delta("b\n"), delta(finish="stop"), LAST]


def stream(*pieces: bytes) -> Script:
    return [chunked_head(Content_Type="text/event-stream"), chunks(*pieces)]


def spelled(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"index": 0, "function": call}]


def read(client: OpenAIClient, payload: Any = CHAT) -> list[str | Response]:
    return list(client.stream_chat(payload))


def read_theirs(client: openai.OpenAI) -> list[str]:
    parts = client.chat.completions.create(stream=True, **CHAT)  # type: ignore[call-overload]
    return [part.choices[0].delta.content for part in parts if part.choices and part.choices[0].delta.content]


# --- answers in one piece


@pytest.mark.parametrize(("name", "payload"), [("chat", CHAT), ("completions", TEXT), ("embeddings", INPUT)])
def test_the_embedded_endpoints_answers_are_the_same(name: str, payload: dict[str, Any]) -> None:
    with start(EndpointConfig(service="none", tokens=5)) as endpoint:
        theirs, ours = clients(endpoint.url)
        found = getattr(ours, name)(payload)
        resource = theirs.chat.completions if name == "chat" else getattr(theirs, name)
        raw = resource.with_raw_response.create(**payload)
    changing = ("id", "created")
    same = json.loads(raw.text)
    assert {k: v for k, v in found.content.items() if k not in changing} == {
        k: v for k, v in same.items() if k not in changing
    }
    assert (found.bytes, found.model) == (len(raw.content), "m")
    words = 3 if name == "embeddings" else 2
    assert (found.tokens_in, found.tokens_out) == (words, None if name == "embeddings" else 5)
    assert isinstance(found, Response)


def test_the_request_is_what_was_given(pair: Pair) -> None:
    pair.give(whole("stop"))
    pair.ours.chat(CHAT)
    pair.ours.chat(json.dumps(CHAT).encode())
    pair.theirs.chat.completions.create(**CHAT)  # type: ignore[call-overload]
    first, second, theirs = pair.server.asked
    assert first.line == second.line == theirs.line == "POST /v1/chat/completions HTTP/1.1"
    assert json.loads(first.body) == json.loads(second.body) == json.loads(theirs.body) == CHAT
    for name in ("authorization", "content-type", "host"):
        assert first.headers[name] == theirs.headers[name]
    assert first.connection == second.connection


def test_a_server_without_a_key() -> None:
    with ScriptedServer([[answer(b'{"data": [{"embedding": [0.5]}]}')]]) as server:
        OpenAIClient(server.url, headers={"X-Own": "o"}).embeddings(INPUT)
    assert "authorization" not in server.asked[0].headers
    assert (server.asked[0].line, server.asked[0].headers["x-own"]) == ("POST /embeddings HTTP/1.1", "o")


# --- errors

ERROR = {"error": {"message": "m", "type": "t", "param": "p", "code": "c"}}
FAILURES: dict[str, Script] = {
    **{
        str(status): [answer(json.dumps(ERROR).encode(), f"{status} X", Content_Type="application/json")]
        for status in (400, 401, 403, 404, 409, 418, 422, 429, 500, 503, 529)
    },
    "no error object": [answer(b'{"detail":"d"}', "400 X", Content_Type="application/json")],
    "a page": [answer(b"<html>", "502 X", Content_Type="text/html")],
    "no body": [answer(b"", "503 X")],
    "no answer": [CLOSE],
    "no HTTP": [b"SSH-2.0-server\r\n\r\n", CLOSE],
    "silence": [3 * TIMEOUT_S],
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_the_same(name: str, pair: Pair) -> None:
    pair.give(FAILURES[name])
    theirs = outcome(lambda: pair.theirs.chat.completions.create(**CHAT))  # type: ignore[call-overload]
    ours = outcome(lambda: pair.ours.chat(CHAT))
    streamed = outcome(lambda: read(pair.ours))
    assert theirs.key
    assert ours == streamed
    assert (ours.key, *ours.response[:3]) == (theirs.key, *theirs.response[:3])
    if theirs.response[3] is not None:
        assert (ours.response[3] or "") == theirs.response[3]
    assert len(pair.server.asked) == 3, "each was sent once"


def whole(*reasons: str | None) -> Script:
    choices = [{"index": n, "message": {"content": "a"}, "finish_reason": reason} for n, reason in enumerate(reasons)]
    fields = {"model": "m", "choices": choices, "usage": USAGE}
    return [answer(json.dumps(fields).encode(), Content_Type="application/json")]


def ending(*reasons: str | None) -> Script:
    return stream(events(delta("a"), *(delta(finish=reason) for reason in reasons), LAST))


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        *(((reason,), reason) for reason in ("stop", "length", "tool_calls", "content_filter", "eos_token", None)),
        (("stop", "length"), "length"),
    ],
)
def test_why_an_answer_ended_is_reported(reasons: tuple[str | None, ...], expected: str | None, pair: Pair) -> None:
    pair.give(whole(*reasons))
    assert pair.ours.chat(CHAT).finish_reason == pair.ours.completions(TEXT).finish_reason == expected
    pair.give(ending(*reasons))
    for call, payload in ((pair.ours.stream_chat, CHAT), (pair.ours.stream_completions, TEXT)):
        last = list(call(payload))[-1]
        assert last == Response(2, 3, model="m", finish_reason=expected)


@pytest.mark.parametrize("reasons", [("abort",), ("error",), ("stop", "abort"), ("abort", "stop")])
def test_an_answer_that_the_server_gave_up_is_a_failure(reasons: tuple[str, ...], pair: Pair) -> None:
    key = f"FinishReasonError {next(reason for reason in reasons if reason != 'stop')}"
    pair.give(whole(*reasons))
    assert [outcome(lambda: pair.ours.chat(CHAT)).key, outcome(lambda: pair.ours.completions(TEXT)).key] == [key, key]
    pair.give(ending(*reasons))
    pieces: list[Any] = []
    assert outcome(lambda: pieces.extend(pair.ours.stream_chat(CHAT))).key == key
    assert pieces == ["a"], "what came until then has its times"


def test_a_body_cut_in_the_middle(pair: Pair) -> None:
    pair.give([answer(b'{"a":1}')[:-1], CLOSE])
    assert outcome(lambda: pair.ours.chat(CHAT)).key == "APIConnectionError broken"


def test_an_error_object_in_a_success_is_no_success(pair: Pair) -> None:
    pair.give([answer(json.dumps(ERROR).encode(), Content_Type="application/json")])
    assert outcome(lambda: pair.ours.chat(CHAT)).key == "APIError c"


def test_a_header_of_the_users_takes_the_place_of_ours() -> None:
    with ScriptedServer([whole("stop")]) as server:
        OpenAIClient(server.url, "key", headers={"authorization": "own"}).chat(CHAT)
    assert server.asked[0].headers["authorization"] == "own"


def test_nobody_there_is_the_same() -> None:
    theirs, ours = clients("http://127.0.0.1:1")
    key = "APIConnectionError ECONNREFUSED"
    assert outcome(lambda: ours.chat(CHAT)).key == outcome(lambda: read_theirs(theirs)).key == key
    with pytest.raises(APIConnectionError, match=r"127\.0\.0\.1:1 \(is the server running there\?\)$"):
        ours.chat(CHAT)


def test_a_certificate_that_is_not_trusted_and_a_name_that_is_none_are_the_same(tls: ssl.SSLContext) -> None:
    with ScriptedServer([], tls) as server:
        theirs, ours = clients(server.url)
        assert outcome(lambda: ours.chat(CHAT)).key == outcome(lambda: read_theirs(theirs)).key
        assert outcome(lambda: ours.chat(CHAT)).key == "APIConnectionError CERTIFICATE_VERIFY_FAILED"
    theirs, ours = clients("http://host.invalid")
    assert outcome(lambda: ours.chat(CHAT)).key == outcome(lambda: read_theirs(theirs)).key
    assert outcome(lambda: ours.chat(CHAT)).key == "APIConnectionError gaierror"


PAGE: Script = [answer(b"<html>Welcome to nginx</html>", Content_Type="text/html; charset=utf-8")]


@pytest.mark.parametrize(
    ("script", "key", "text"),
    [
        (PAGE, "APIError text/html", "200 with content type text/html.*Welcome"),
        ([answer(b"pong", Content_Type="text/plain")], "APIError text/plain", "pong"),
        ([answer(b"pong")], "APIError no_content_type", "pong"),
        ([answer(b"[1]", Content_Type="application/json")], "APIError application/json", r"\[1\]"),
        ([answer(b"{}", Content_Type="application/json")], "APIError application/json", "not as asked for: {}"),
        ([answer(b'{"choices": []}')], "APIError no_content_type", "choices"),
        ([answer(b'{"predictions": [0.5]}')], "APIError no_content_type", "predictions"),
        ([answer(b'{"choices": [{"message": {"content": ""}}]}')], "APIError empty_answer", "finish_reason is None"),
    ],
)
def test_a_success_that_is_no_answer_is_counted_by_its_content_type(
    script: Script, key: str, text: str, pair: Pair
) -> None:
    pair.give(script)
    with pytest.raises(APIError, match=text) as failed:
        pair.ours.chat(CHAT)
    assert error_key(failed.value) == key


THINKING = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3}}


@pytest.mark.parametrize(
    ("expected", "key"),
    [
        ([], "APIError empty_answer"),
        ([delta("")], "APIError empty_answer"),
        ([delta("", finish="stop")], "APIError empty_answer"),
        ([delta("", finish="length"), {"choices": [], "usage": {"completion_tokens": 0}}], "APIError empty_answer"),
        ([delta("", finish="length"), THINKING], None),
        ([delta("", finish="content_filter")], None),
        ([delta("", finish="tool_calls")], None),
    ],
)
def test_a_stream_with_nothing_in_it_is_a_failure(expected: list[Any], key: str | None, pair: Pair) -> None:
    pair.give(stream(events(*expected)))
    assert outcome(lambda: read(pair.ours)).key == key


MISSHAPEN = [
    *(
        b"[1, 2]",
        b"5",
        b"null",
        b'"x"',
        b'{"choices": 5}',
        b'{"choices": "abc"}',
        b'{"choices": [null]}',
        b"[" * 100_000,
    ),
    *(b'{"choices": [{"message": {"content": 5}}]}', b'{"choices": [{"text": ["x"]}]}'),
    *(b'{"choices": [{"delta": {"content": {"a": 1}}}], "usage": {"completion_tokens": 5}}',),
    *(b'{"choices": [{"message": "x"}]}', b'{"choices": [{"message": {"content": "x", "tool_calls": [5]}}]}'),
    *(b'{"choices": [{"delta": {"content": "\xff"}}]}', b'{"choices": [' + b"9" * 5000 + b"]}", b"pong"),
]


@pytest.mark.parametrize("body", MISSHAPEN, ids=range(len(MISSHAPEN)))
def test_json_of_another_shape_is_a_failure_that_names_what_came(body: bytes, pair: Pair) -> None:
    shown = body[:400].decode("utf-8", "replace")
    pair.give([answer(body, Content_Type="application/json")])
    with pytest.raises(APIError) as failed:
        pair.ours.chat(CHAT)
    assert (error_key(failed.value), shown in str(failed.value)) == ("APIError application/json", True)
    pair.give(stream(b"data: " + body + b"\n\n"))
    with pytest.raises(APIError) as failed:
        read(pair.ours)
    assert (error_key(failed.value), shown in str(failed.value)) == ("APIError unreadable_event", True)


@pytest.mark.parametrize("error", ["busy", ["busy"], {"detail": "busy"}])
def test_an_error_in_whatever_words_is_reported(error: Any, pair: Pair) -> None:
    pair.give([answer(json.dumps({"error": error}).encode(), Content_Type="application/json")])
    with pytest.raises(APIError, match="busy"):
        pair.ours.chat(CHAT)


@pytest.mark.parametrize(
    ("expected", "tokens"),
    [
        (12.0, 12),
        (0, 0),
        (1.5, None),
        (-1, None),
        ("12", None),
        (True, None),
        (10**30, None),
        ([1], None),
        (None, None),
    ],
)
def test_a_usage_that_can_be_none_is_as_if_none_were_reported(expected: Any, tokens: int | None, pair: Pair) -> None:
    usage = {"prompt_tokens": expected, "completion_tokens": expected}
    pair.give(stream(events(delta("a", finish="stop"), {"choices": [], "usage": usage})))
    last = read(pair.ours)[-1]
    assert isinstance(last, Response)
    assert (last.tokens_in, last.tokens_out) == (tokens, tokens)
    pair.give(stream(events(delta("a", finish="stop"), {"choices": [], "usage": [expected]})))
    assert read(pair.ours)[-1] == Response(model="m", finish_reason="stop")


@pytest.mark.parametrize(
    ("details", "metrics"),
    [
        ({"cached_tokens": 7}, {"cached_tokens": 7.0}),
        ({"cached_tokens": 0, "audio_tokens": 3}, {"cached_tokens": 0.0}),
        ({"cached_tokens": 9}, {"cached_tokens": 9.0}),
        ({"cached_tokens": 10}, None),  # of a prompt of 9
        ({"cached_tokens": None}, None),
        ({"cached_tokens": -1}, None),
        ({"cached_tokens": "7"}, None),
        ({}, None),
        (None, None),
        ([7], None),
    ],
)
def test_the_cached_tokens_of_a_prompt_are_a_metric(details: Any, metrics: Any, pair: Pair) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": details}
    pair.give(stream(events(delta("a", finish="stop"), {"choices": [], "usage": usage})))
    last = read(pair.ours)[-1]
    assert isinstance(last, Response)
    assert last.metrics == metrics


@pytest.mark.parametrize(
    ("details", "expected"), [({"reasoning_tokens": 5}, 5.0), ({}, None), (None, None), ([5], None)]
)
def test_the_tokens_of_a_models_reasoning_are_a_metric(details: Any, expected: float | None, pair: Pair) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 8, "completion_tokens_details": details}
    pair.give(stream(events(delta("a", finish="stop"), {"choices": [], "usage": usage})))
    last = read(pair.ours)[-1]
    assert isinstance(last, Response)
    assert last.metrics == (None if expected is None else {"reasoning_tokens": expected})


def test_llama_cpp_tells_cached_tokens_in_its_timings(pair: Pair) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    last_event = {"choices": [], "usage": usage, "timings": {"cache_n": 8, "prompt_n": 1}}
    pair.give(stream(events(delta("a", finish="stop"), last_event)))
    last = read(pair.ours)[-1]
    assert isinstance(last, Response)
    assert (last.tokens_in, last.metrics) == (9, {"cached_tokens": 8.0})


@pytest.mark.parametrize("reason", [["stop"], {"type": "stop"}, 5, "x" * 10_000])
def test_a_finish_reason_of_another_type_is_reported_as_a_text(reason: Any, pair: Pair) -> None:
    pair.give(stream(events(delta("a", finish=reason), delta("b", finish=reason))))
    last = read(pair.ours)[-1]
    assert isinstance(last, Response)
    assert last.finish_reason == str(reason)


def test_a_stream_that_is_cut_anywhere_is_broken_whatever_was_cut(pair: Pair) -> None:
    body = events(delta("a"), delta("b"), done=False)
    for cut in range(0, len(body), 7):
        pair.give([b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", body[:cut], CLOSE])
        assert outcome(lambda: read(pair.ours)).key == "APIConnectionError broken", body[:cut]


def test_a_line_without_end_is_given_up(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference_benchmarker.clients.sse.MOST_EVENT", 1000)
    pair.give(stream(b"data: " + b"x" * 5000))
    assert outcome(lambda: read(pair.ours)).key == "EndlessLineError"


def test_a_page_and_a_text_are_no_streams(pair: Pair) -> None:
    pair.give(PAGE)
    assert outcome(lambda: read(pair.ours)).key == "APIError text/html"
    pair.give([answer(b"upstream is down", Content_Type="text/plain")])
    with pytest.raises(APIConnectionError, match="it began with 'upstream is down'") as failed:
        read(pair.ours)
    assert error_key(failed.value) == "APIConnectionError broken"


# --- streams

SAME_STREAMS: dict[str, Script] = {
    "as it should be": stream(events(*TOKENS)),
    "an event a chunk": stream(*(events(token, done=False) for token in TOKENS), b"data: [DONE]\n\n"),
    "CRLF": stream(events(*TOKENS, end=b"\r\n\r\n")),
    "CR": stream(events(*TOKENS, end=b"\r\r")),
    "events split over reads": [
        chunked_head(),
        *(part for byte in events(*TOKENS[:3], TOKENS[4]) for part in (b"1\r\n%c\r\n" % byte,)),
        b"0\r\n\r\n",
    ],
    "comments and other fields": stream(b": ping\n\nevent: message\nid: 1\nretry: 5\n" + events(*TOKENS) + b":\n\n"),
    "no space after the colon": stream(events(*TOKENS).replace(b"data: ", b"data:")),
    "no usage": stream(events(*TOKENS[:-1])),
    "no [DONE] after finish_reason": stream(events(*TOKENS, done=False)),
    "a connection that ends with it": [b"HTTP/1.1 200 OK\r\n\r\n", events(*TOKENS), CLOSE],
    "something after [DONE]": stream(events(*TOKENS) + b"\n\n"),
    "pieces after [DONE]": stream(events(*TOKENS) + events(*TOKENS)),
    "a space after [DONE]": stream(events(*TOKENS, done=False) + b"data: [DONE] \n\n"),
    "data of several lines": stream(events(*TOKENS).replace(b', "choices"', b',\ndata:  "choices"')),
}
# As DJL's LMI containers stream: the openai package finds no event in it.
JSON_LINES = b"".join(json.dumps(token).encode() + b"\n" for token in TOKENS) + b"\n\n"


@pytest.mark.parametrize("name", SAME_STREAMS)
def test_a_stream_is_the_same(name: str, pair: Pair) -> None:
    pair.give(SAME_STREAMS[name])
    *pieces, last = read(pair.ours)
    assert pieces == read_theirs(pair.theirs)
    assert pieces[:2] == ["a", " é"]
    assert isinstance(last, Response)
    with_usage = json.dumps(USAGE).encode() in b"".join(p for p in SAME_STREAMS[name] if isinstance(p, bytes))
    usage = (2, 3) if with_usage else (None, None)
    assert (last.tokens_in, last.tokens_out, last.model) == (*usage, "m")


def test_answers_that_a_server_compresses_unasked_are_read(pair: Pair) -> None:
    fields = {"choices": [{"message": {"content": "a"}}], "usage": USAGE}
    packed = gzip.compress(json.dumps(fields).encode())
    pair.give([answer(packed, Content_Type="application/json", Content_Encoding="gzip")])
    assert pair.ours.chat(CHAT).content == fields
    packed = gzip.compress(events(*TOKENS))
    pair.give([chunked_head(Content_Type="text/event-stream", Content_Encoding="gzip"), chunks(packed)])
    assert read(pair.ours)[:-1] == ["a", " é", "b\n"]


FAILING_STREAMS: dict[str, tuple[Script, str]] = {
    "an error object": (stream(events(delta("a"), ERROR)), "APIError c"),
    "one without a code": (stream(events(delta("a"), {"error": {"message": "m", "type": "t"}})), "APIError t"),
    "one with a status": (stream(events(delta("a"), {"error": {"message": "m", "code": 503}})), "APIError 503"),
    "a text for an error": (stream(events(delta("a"), {"error": "m"})), "APIError"),
    "a cut": (
        [chunked_head(), b"%x\r\n%b\r\n" % (len(events(delta("a"))), events(delta("a"))), CLOSE],
        "APIConnectionError broken",
    ),
    "silence": (
        [chunked_head(), b"%x\r\n%b\r\n" % (len(events(delta("a"), done=False)), events(delta("a"), done=False)), 1.2],
        "APITimeoutError",
    ),
    "no JSON": (stream(b"data: {\n\n"), "APIError unreadable_event"),
}


@pytest.mark.parametrize("name", FAILING_STREAMS)
def test_a_stream_that_fails_does_so_as_with_openai(name: str, pair: Pair) -> None:
    script, key = FAILING_STREAMS[name]
    pair.give(script)
    pieces: list[Any] = []
    ours = outcome(lambda: pieces.extend(pair.ours.stream_chat(CHAT)))
    theirs = outcome(lambda: read_theirs(pair.theirs))
    assert ours.key == key
    if name != "a cut":  # their stream ended with [DONE] before
        assert theirs.key is not None
        if name != "no JSON":  # theirs is a JSONDecodeError, which does not say what came
            assert key.split()[0] == theirs.key.split()[0]
            assert ours.response == theirs.response


@pytest.mark.parametrize(
    ("script", "key"),
    [
        (stream(events(delta("a"), delta("b"), done=False)), "APIConnectionError broken"),
        (stream(), "APIConnectionError broken"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", events(delta("a"), done=False), CLOSE], "APIConnectionError broken"),
        ([answer(json.dumps(ERROR).encode(), Content_Type="application/json")], "APIError c"),
        (
            [answer(json.dumps({"choices": []}).encode(), Content_Type="application/json; charset=utf-8")],
            "APIError application/json",
        ),
    ],
)
def test_what_openai_takes_for_an_end_is_a_failure_here(script: Script, key: str, pair: Pair) -> None:
    pair.give(script)
    assert outcome(lambda: read_theirs(pair.theirs)).key is None
    assert outcome(lambda: read(pair.ours)).key == key


@pytest.mark.parametrize("cut", [1, 7, len(JSON_LINES)])
def test_lines_of_json_are_a_stream(cut: int, pair: Pair) -> None:
    parts = [JSON_LINES[at : at + cut] for at in range(0, len(JSON_LINES), cut)]
    pair.give([chunked_head(Content_Type="application/jsonlines"), chunks(*parts)])
    *pieces, last = read(pair.ours)
    assert pieces[:2] == ["a", " é"]
    assert last == Response(2, 3, model="m", finish_reason="stop")


@pytest.mark.parametrize(
    ("expected", "piece"),
    [
        (delta("a"), ["a"]),
        (delta(""), []),
        (delta(role="assistant"), []),
        (delta(reasoning_content="why"), ["why"]),
        (delta(None, reasoning="why", reasoning_content="why"), ["why"]),
        (delta("a", reasoning_content="why"), ["awhy"]),
        (delta(refusal="no"), ["no"]),
        (delta(tool_calls=spelled({"name": "f", "arguments": ""})), ["f"]),
        (delta(tool_calls=spelled({"arguments": '{"x"'})), ['{"x"']),
        (delta(content=None, tool_calls=None, reasoning_content=None), []),
        ({**delta(), "choices": [*delta("a")["choices"], *delta("b")["choices"]]}, ["ab"]),
        ({**delta(), "choices": None}, []),
        ({"object": "text_completion", "choices": [{"index": 0, "text": "t"}]}, ["t"]),
        ({**delta("a"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}}, ["a"]),
        ({**delta("a"), "error": None}, ["a"]),
    ],
)
def test_what_is_a_piece(expected: dict[str, Any], piece: list[str], pair: Pair) -> None:
    pair.give(stream(events(expected, *(() if piece else (delta("a"),)))))
    *pieces, last = read(pair.ours)
    assert pieces == (piece or ["a"])
    assert isinstance(last, Response)
    assert last.tokens_in == (9 if "usage" in expected else None)


def test_what_a_model_thinks_is_in_the_pieces_of_an_answer_and_not_in_its_text(pair: Pair) -> None:
    reported = (delta(reasoning_content="so "), delta("yes", reasoning="then "), delta("!"), *TOKENS)
    pair.give(stream(events(*reported)))
    *pieces, _ = read(pair.ours)
    assert pieces[:3] == ["so ", "yesthen ", "!"]
    assert Answer.of(pieces[:3], None).text == "yes!"


def test_a_content_in_parts_is_its_text(pair: Pair) -> None:
    """As of Mistral's models that reason: what they think is a part of its own."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [thought, {"type": "text", "text": "yes"}, {"type": "reference", "reference_ids": [1]}]
    ending = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    events = [{"choices": [{"delta": {"content": parts}}], "usage": {"completion_tokens": 2}}, ending]
    pair.give(stream(*(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)))
    *pieces, _ = pair.ours.stream_chat(CHAT)
    assert pieces == ["yeshm"]
    assert Answer.of(pieces, None).text == "yes"
    whole = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    pair.give([answer(json.dumps(whole).encode())])
    assert pair.ours.chat(CHAT).text == "yes"


def test_a_stream_asks_for_one_and_for_usage_unless_told_otherwise(pair: Pair) -> None:
    pair.give(stream(events(*TOKENS)))
    own = {**CHAT, "stream_options": {"include_usage": False}}
    for payload in (CHAT, own, b"bytes"):
        read(pair.ours, payload)
    list(pair.ours.stream_completions(TEXT))
    bodies = [asked.body for asked in pair.server.asked]
    assert json.loads(bodies[0]) == {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
    assert json.loads(bodies[1]) == {**own, "stream": True}
    assert bodies[2] == b"bytes"
    assert pair.server.asked[3].line == "POST /v1/completions HTTP/1.1"
    assert "stream" not in CHAT, "the payload is the user's"
    assert len({asked.connection for asked in pair.server.asked}) == 1


def test_the_embedded_endpoints_streams_come_when_they_are_due() -> None:
    with start(EndpointConfig(service_s=0.2, tokens=4)) as endpoint:
        theirs, ours = clients(endpoint.url)
        seen = [(time.monotonic_ns(), piece) for piece in ours.stream_chat(CHAT)]
        begun = endpoint.arrivals()["start_ns"][-1]
        *pieces, last = [piece for _, piece in seen]
        assert pieces == ["0", " 1", " 2", " 3"] == read_theirs(theirs) == list(ours.stream_completions(TEXT))[:-1]
        assert last == Response(tokens_in=2, tokens_out=4, model="m", finish_reason="stop")
        assert all(at >= begun + (number + 1) * 50_000_000 for number, (at, _) in enumerate(seen[:4]))
        assert seen[0][0] < begun + 150_000_000, "the first came before the last was due"


def test_an_endpoint_that_breaks_in_the_middle_leaves_a_time_to_first_token() -> None:
    with start(EndpointConfig(service="none", tokens=4, break_share=1)) as endpoint:
        ours = clients(endpoint.url)[1].stream_chat(CHAT)
        assert [next(ours), next(ours)] == ["0", " 1"]
        with pytest.raises(APIError, match="as configured") as failed:
            next(ours)
    assert error_key(failed.value) == "APIError server_error"


# --- server-sent events


@given(
    texts=st.lists(st.text(st.sampled_from("a:é \t{"), min_size=1), max_size=5),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(1, 80), max_size=12),
)
def test_events_cut_anywhere_are_the_same(texts: list[str], end: bytes, cuts: list[int]) -> None:
    data = b"".join(b"data: " + text.encode() + end + b": comment" + end + end for text in texts)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    reader = EventReader()
    found = [reported for start, stop in itertools.pairwise(places) for reported in reader.feed(data[start:stop])]
    assert [reported.decode() for reported in (*found, *reader.end())] == texts


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\ndata:b\ndata:  c\n\n", [b"a\nb\n c"]),
        (b"data\n\n", [b""]),
        (b"dat: a\n\ndata2: b\n\n", []),
        (b'{"a": 1}\n{"a":\r\n{"b": "data:"}', [b'{"a": 1}', b'{"a":', b'{"b": "data:"}']),
        (b"data: a", [b"a"]),
        (b"data: a\r", [b"a"]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"", []),
    ],
)
def test_events(data: bytes, expected: list[bytes]) -> None:
    reader = EventReader()
    assert [*reader.feed(data), *reader.end()] == expected


@pytest.mark.parametrize("cuts", [1, 2, 5, 100])
def test_the_events_over_pieces(cuts: int) -> None:
    text = b"data: a\n\ndata: b\n\n: comment\n\ndata: c"
    pieces = [text[begin : begin + cuts] for begin in range(0, len(text), cuts)]
    assert list(EventReader.over(pieces)) == [b"a", b"b", b"c"]


def test_an_event_is_given_before_the_next_piece_is_asked_for() -> None:
    pieces = iter([b"data: a\n\n", b"data: b\n\n"])
    assert next(EventReader.over(pieces)) == b"a"
    assert list(pieces) == [b"data: b\n\n"]


@pytest.mark.parametrize("text", [b"", b"<html>", b": comment\n\n"])
def test_pieces_without_an_event_are_reported(text: bytes) -> None:
    with pytest.raises(NoEventsError) as raised:
        list(EventReader.over([text[:3], text[3:]]))
    assert str(raised.value) == f"expected events, but received: {text[:3].decode()}"


def test_a_query_follows_every_path() -> None:
    said = answer(b'{"data": [1]}')
    with ScriptedServer([[said], [chunked_head(), chunks(b"data: [DONE]\n\n")]]) as server:
        client = OpenAIClient(server.url, query="api-version=1")
        assert client.embeddings(INPUT).content == {"data": [1]}
        with pytest.raises(APIError):
            list(client.stream_chat(CHAT))
    lines = [asked.line for asked in server.asked]
    assert lines == [f"POST {path}?api-version=1 HTTP/1.1" for path in ("/embeddings", "/chat/completions")]


def test_pieces_have_the_tokens_that_the_server_counts_in_them() -> None:
    with start(EndpointConfig(service="none", tokens=8, tokens_per_piece=3)) as endpoint:
        theirs, ours = clients(endpoint.url)
        counted = {**CHAT, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
        *pieces, last = ours.stream_chat(counted)
        assert pieces == ["0 1 2", " 3 4 5", " 6 7"] == read_theirs(theirs)
        assert [getattr(piece, "tokens", None) for piece in pieces] == [3, 3, 2]
        assert last == Response(tokens_in=2, tokens_out=8, model="m", finish_reason="stop", metrics={"pieces": 3})
        *pieces, last = ours.stream_chat(CHAT)
        assert [type(piece) for piece in pieces] == [str] * 3
        assert last == Response(tokens_in=2, tokens_out=8, model="m", finish_reason="stop")
