"""The report of `benchmark check`: a line for each fact of one request, its payload and its answer."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from inference_benchmarker.facts.address import Address
from inference_benchmarker.facts.probe import Probe, ProbeFacts, size_of, type_name
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.records.response import Response
from inference_benchmarker.report.check import SAGEMAKER_LIMIT, Check, Ended
from inference_benchmarker.words.redact import excerpt
from tests.mentions import row
from tests.waves import MS, streamed

PLAIN = RequestRecord(0, 0, 0, 0, 20 * MS, bytes=21)
SEEN = ProbeFacts(100, 38, 39, "bytes", 38, "returned", "bytes", '{"a": 1}')
SAGEMAKER = replace(SEEN, is_sagemaker=True)
STREAM_SEEN = replace(SEEN, answer="streamed", answer_type="str", preview="a\nb")


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        (b"abc", 3),
        (bytearray(4), 4),
        (memoryview(b"abcd").cast("H"), 4),
        ("äö", 4),
        ("\ud800", 3),
        ({"a": 1}, 8),
        ([1, 2], 6),
        (7, 1),
        (None, 4),
        (object(), None),
        ({"a": b"x"}, None),
    ],
)
def test_the_size_of_a_payload_is_that_of_what_is_sent(payload: object, size: int | None) -> None:
    assert size_of(payload) == size


def test_a_type_is_named_as_people_write_it() -> None:
    assert [type_name(value) for value in (b"", None, Decimal())] == ["bytes", "NoneType", "decimal.Decimal"]


class _Answered:
    def __init__(self, status: object) -> None:
        self.status_code = status


class _Broken:
    @property
    def status(self) -> int:
        raise RuntimeError

    def __str__(self) -> str:
        raise ValueError


class _File(_Broken):
    """What is read like a file has lines, too."""

    def __next__(self) -> str:
        raise StopIteration

    def read(self) -> str:
        return ""


def seen(answer: object) -> ProbeFacts:
    """What is seen of one answer."""
    probe = Probe(lambda _: answer)
    given = probe("payload")
    if hasattr(given, "__next__") and given is not answer:
        list(given)
    return probe.seen(["payload", "p"], partial(excerpt, also=["secret"]))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"a": "secret"}', ProbeFacts(answer="returned", answer_type="bytes", preview='{"a": "[hidden]"}')),
        (None, ProbeFacts(answer="returned", answer_type="NoneType")),
        (b"\xff" * 5000, ProbeFacts(answer="returned", answer_type="bytes", preview="\ufffd" * 200)),
        (
            Response(tokens_in=3),
            ProbeFacts(answer="returned", answer_type="inference_benchmarker.records.response.Response"),
        ),
        (iter([1]), ProbeFacts(answer="streamed", answer_type="int", preview="1")),
        (iter([{"text": "a"}, {}]), ProbeFacts(answer="streamed", answer_type="dict", preview="a")),
        (_File(), ProbeFacts(answer="returned", answer_type=f"{__name__}._File", preview="(ValueError)", unread=True)),
        (_Answered("ok"), ProbeFacts(answer="returned", answer_type=f"{__name__}._Answered")),
        (_Broken(), ProbeFacts(answer="returned", answer_type=f"{__name__}._Broken", preview="(ValueError)")),
        ((x for x in ("a", "", "b")), ProbeFacts(answer="streamed", answer_type="str", preview="ab")),
        (
            (x for x in ("a", b"b", Response())),
            ProbeFacts(answer="streamed", answer_type="str and bytes", preview="ab"),
        ),
        ((x for x in [None]), ProbeFacts(answer="streamed")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_answer_is_seen_as_what_it_is(answer: object, expected: ProbeFacts) -> None:
    found = seen(answer)
    assert (found.payloads, found.smallest, found.largest) == (2, 1, 7)
    assert (found.payload_type, found.payload_bytes) == ("str", 7)
    assert found.preview == expected.preview or found.preview == str(answer)[:200]
    of_answer = ("answer", "answer_type", "unread")
    assert [getattr(found, name) for name in of_answer] == [getattr(expected, name) for name in of_answer]


@pytest.mark.parametrize("as_stream", [False, True], ids=["returned", "streamed"])
def test_no_part_of_a_secret_is_left_where_the_preview_ends(as_stream: bool) -> None:
    secret = "x" * 20
    answer = "." * 190 + secret + "." * 100
    probe = Probe(lambda _: (piece for piece in [answer]) if as_stream else answer)
    result = probe(b"")
    if as_stream:
        list(result)
    preview = probe.seen(None, partial(excerpt, also=[secret])).preview
    assert preview == "." * 190 + "[hidden].."


def test_a_request_that_raised_has_no_answer() -> None:
    probe = Probe(lambda payload: payload / 0)
    with pytest.raises(ZeroDivisionError):
        probe(1)
    found = probe.seen(None, excerpt)
    assert (found.payloads, found.payload_type, found.answer) == (None, "int", None)


def check(record: RequestRecord = PLAIN, seen: ProbeFacts = SEEN, error_text: str | None = None) -> Check:
    return Check("f.py", record, seen, error_text)


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        (check(), "Payloads", "100 pre-computed, 38 to 39 bytes"),
        (check(seen=replace(SEEN, smallest=39)), "Payloads", "100 pre-computed, 39 bytes"),
        (check(seen=replace(SEEN, smallest=None, largest=None)), "Payloads", "100 pre-computed"),
        (check(seen=replace(SEEN, payloads=None)), "Payloads", "built for each request"),
        (check(PLAIN._replace(session=0, turn=1)), "Payloads", "the first turn of a session"),
        (check(), "Sent", "bytes, 38 bytes"),
        (check(seen=replace(SEEN, payload_type="dict")), "Sent", "dict, 38 bytes as JSON"),
        (check(seen=replace(SEEN, payload_type="a.B", payload_bytes=None)), "Sent", "a.B, of unknown size"),
        (check(seen=ProbeFacts()), "Sent", "nothing"),
        (check(), "Answer", 'returned bytes, 21 bytes: {"a": 1}'),
        (check(streamed(0, 50, (10, 30)), STREAM_SEEN), "Answer", "streamed str, 3 pieces: a b"),
        (check(), "Times", "latency 20 ms"),
        (
            check(streamed(0, 50, (10, 30), tokens_out=5, build_ns=MS)),
            "Times",
            "building 1 ms, latency 90 ms, TTFT 50 ms, ITL mean 20 ms, longest gap 30 ms, TPOT 10 ms",
        ),
        (check(streamed(0, 50, (), outcome="failed", error="E")), "Times", "failed after 50 ms, TTFT 50 ms"),
        (check(streamed(0, 50, (10,))), "Tokens", "2 out (counted pieces)"),
        (check(streamed(0, 50, (10,), tokens_in=4, tokens_out=9)), "Tokens", "4 in, 9 out (the server's usage)"),
        (check(PLAIN._replace(tokens_in=4)), "Tokens", "4 in"),
        (check(PLAIN._replace(label="a\nb")), "Label", "a b"),
        (check(seen=replace(SEEN, addresses=[Address("::1", 8)])), "To", "[::1]:8 (loopback: this host)"),
        (check(seen=replace(SEEN, raised_at="f.py, line 7, in a")), "Raised", "f.py, line 7, in a"),
        (check(seen=replace(SEEN, in_hand=["body = a\nb"])), "With", "body = a b"),
    ],
)
def test_each_fact_is_reported_in_a_line(given: Check, name: str, text: str) -> None:
    assert row(given.to_text(), name) == text


def test_what_is_not_there_has_no_line() -> None:
    text = check().to_text()
    assert not [name for name in ("Label:", "Tokens:", "TTFT", "!") if name in text]
    assert text.endswith("\n\nOK\n")


def test_what_failed_before_anything_came_tells_of_no_answer() -> None:
    nothing = PLAIN._replace(chunks=0, gaps=(), bytes=None, outcome="failed", error="E")
    for text in (
        check(nothing, STREAM_SEEN, "no").to_text(),
        check(nothing._replace(chunks=None), ProbeFacts()).to_text(),
    ):
        assert not [name for name in ("Answer:", "Tokens:", "latency", " OK") if name in text]
        assert row(text, "Times") == "failed after 20 ms"
    assert row(check(nothing._replace(tokens_in=4), STREAM_SEEN).to_text(), "Tokens") == "4 in"


def test_a_stream_that_broke_keeps_what_had_come() -> None:
    broken = check(streamed(0, 50, (10,), outcome="failed", error="E"), STREAM_SEEN, "broken").to_text()
    assert row(broken, "Answer") == "streamed str, 2 pieces: a b"
    assert row(broken, "Tokens") == "2 out (counted pieces)"
    assert row(broken, "Times").startswith("failed after 60 ms, TTFT 50 ms")


def test_an_error_is_reported_with_key_and_text() -> None:
    failed = check(PLAIN._replace(outcome="failed", error="HttpError 503"), ProbeFacts(), "503: try\nlater")
    assert failed.to_text().endswith("\n\nFAILED: HttpError 503: 503: try later\n")
    error: dict[str, Any] = {"key": "HttpError 503", "text": "503: try\nlater", "raised_at": None, "with": []}
    assert failed.to_json()["error"] == error


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        (check(), []),
        (check(seen=replace(SAGEMAKER, payload_bytes=SAGEMAKER_LIMIT, largest=SAGEMAKER_LIMIT)), []),
        (check(seen=replace(SAGEMAKER, payload_bytes=SAGEMAKER_LIMIT + 1)), ["payload_size"]),
        (check(seen=replace(SEEN, payload_bytes=SAGEMAKER_LIMIT + 1)), []),  # of another platform
        (check(seen=replace(SAGEMAKER, largest=SAGEMAKER_LIMIT + 1)), ["payload_size"]),  # not the one that was sent
        (check(seen=replace(SEEN, payloads=None, smallest=None, largest=None)), []),
        (check(seen=replace(SEEN, unread=True)), ["unread_answer"]),
        (check(seen=replace(SEEN, unread=True, heard=True)), ["unread_answer"]),
        (check(streamed(0, 50, (10,)), replace(STREAM_SEEN, preview='data: {"choices": []}')), ["raw_events"]),
        (check(seen=replace(SEEN, preview="data: x")), []),
        (check(seen=replace(SEEN, hidden_status="503")), ["hidden_status"]),
        (check(streamed(0, 50, (10,)), STREAM_SEEN), []),
        (check(PLAIN._replace(chunks=0, gaps=()), STREAM_SEEN), ["no_piece"]),
        (check(PLAIN._replace(chunks=2, gaps=(9,), tokens_out=1), STREAM_SEEN), ["impossible_usage"]),
        (check(PLAIN._replace(chunks=2, gaps=(9,), tokens_out=2), STREAM_SEEN), []),
        (check(PLAIN._replace(chunks=0, gaps=(), outcome="failed", error="E"), STREAM_SEEN), []),
    ],
)
def test_it_warns_of_what_would_spoil_a_wave(given: Check, codes: list[str]) -> None:
    assert list(given.warnings()) == codes
    assert [warning["code"] for warning in given.to_json()["warnings"]] == codes
    text = given.to_text()
    assert all(f"! {code}: " in text for code in codes)
    assert max(map(len, text.splitlines())) <= 120


def test_what_is_read_but_once_is_told_as_the_sessions_where_one_hears_it() -> None:
    told = [check(seen=replace(SEEN, unread=True, heard=heard)).warnings()["unread_answer"] for heard in (False, True)]
    assert "a wave reads as one answer" in told[0]
    assert "left to the session" in told[1]
    assert "reads as one answer" not in told[1]


@pytest.mark.parametrize("heard", [False, True])
def test_a_stream_is_read_also_for_a_session(heard: bool) -> None:
    probe = Probe(lambda _: iter(["a", "b"]), heard=heard)
    assert list(probe(b"")) == ["a", "b"]
    found = probe.seen(None, excerpt)
    assert (found.answer, found.preview, found.unread) == ("streamed", "ab", False)


def test_json_has_the_facts_as_values() -> None:
    fields = json.loads(json.dumps(check(streamed(0, 50, (10, 30), tokens_in=4, label="m"), STREAM_SEEN).to_json()))
    assert fields["payload"] == {
        "pre_computed": 100,
        "smallest_bytes": 38,
        "largest_bytes": 39,
        "type": "bytes",
        "bytes": 38,
    }
    assert fields["answer"] == {"kind": "streamed", "type": "str", "bytes": None, "pieces": 3, "preview": "a\nb"}
    assert fields["tokens"] == {"tokens_in": 4, "tokens_out": 3, "counted": "pieces"}
    assert fields["times"] == {"latency": 0.09, "ttft": 0.05, "itl": 0.02, "longest_gap": 0.03, "tpot": 0.02}
    assert (fields["outcome"], fields["label"], fields["error"]) == ("ok", "m", None)


def test_a_process_that_ended_tells_no_more_than_that() -> None:
    ended = Ended("f.py", "the process ended with exit code 7")
    assert ended.to_text().splitlines()[2:] == ["   File:             f.py", "", f"FAILED: {ended.how}"]
    assert ended.to_json()["error"] == {"key": "ProcessEnded", "text": ended.how}
    assert not ended.ok
