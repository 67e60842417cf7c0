"""Sessions without a process: what is sent, what a session hears, and how it ends."""

from __future__ import annotations

import gc
import tracemalloc
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import gevent
import pytest

from inference_benchmarker import Answer, Response, Turn
from inference_benchmarker.engine.endpoint.factories_file import Endpoint, load
from inference_benchmarker.engine.worker.conversations import Conversations
from inference_benchmarker.engine.worker.in_flight import Slot
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.plan.think import Think
from inference_benchmarker.records.pieces import Piece, Reasoning
from inference_benchmarker.words.units import NS
from tests.request_bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from inference_benchmarker.records.record import RequestRecord


class Talks(Bench):
    """A bench whose sessions go on at once: one slot, each turn when it is asked for."""

    def __init__(self, session: Any, invoke: Callable[[Any], Any], think: Think | None = None) -> None:
        super().__init__(Endpoint(invoke=invoke, session=session))
        assert isinstance(self.sessions, Conversations)
        self.talks: Conversations = self.sessions
        self.talks._think = think
        self.talks.later = self._later
        self.dues: list[tuple[int, int]] = []

    def _later(self, due: int, number: int) -> None:
        self.dues.append((due, number))

    def run(self, *numbers: int) -> list[RequestRecord]:
        """These sessions, to their end."""
        slot, waiting = Slot(), [Arrival(number, 0) for number in numbers]
        self.requests.slots.append(slot)

        def take() -> Arrival | None:
            if waiting:
                return waiting.pop(0)
            if self.dues:
                due, number = self.dues.pop(0)
                return Arrival(number, due)
            return None

        slot.take = take
        self.talks.serve(slot)
        return self.records()


def test_a_session_hears_what_invoke_returned_and_of_a_generator_an_answer() -> None:
    usage = Response(tokens_in=3, tokens_out=2)

    def invoke(payload: Any) -> Any:
        def stream() -> Any:
            yield "Hel"
            yield ""
            yield b"raw"
            yield "lo"
            yield usage

        return {"bytes": b"x", "text": "t", "none": None, "usage": usage, "stream": stream()}[payload]

    heard: list[Any] = []

    def session(_: int) -> Generator[Turn, Any, None]:
        for kind in ("bytes", "text", "none", "usage", "stream"):
            answer = yield Turn(kind)
            heard.append(answer)

    records = Talks(session, invoke).run(0)
    assert heard == [b"x", "t", None, usage, Answer("Hello", ("Hel", b"raw", "lo"), usage)]
    assert [(record.session, record.turn, record.ended) for record in records] == [
        *((0, turn, None) for turn in range(1, 5)),
        (0, 5, "completed"),
    ]
    assert records[-1].chunks == 3


class SdkStream:
    """A stream of an SDK: an iterator, and no generator."""

    def __init__(self, *events: object) -> None:
        self.events = iter(events)

    def __iter__(self) -> SdkStream:
        return self

    def __next__(self) -> object:
        gevent.sleep(0.01)
        return next(self.events)


def test_a_stream_of_an_sdk_is_timed_before_the_session_reads_it() -> None:
    role: dict[str, object] = {"choices": []}
    word = {"text": "so"}
    heard: list[list[object]] = []

    def session(_: int) -> Generator[Turn, Any, None]:
        for _turn in range(2):
            answer = yield Turn("q")
            heard.append(list(answer))

    first, second = Talks(session, lambda _: SdkStream(role, word, word)).run(0)
    assert heard == [[role, word, word]] * 2
    for record in (first, second):
        assert record.chunks == 2
        assert record.first_token is not None
        assert record.first_token - record.sent >= 0.02 * NS
        assert record.done - record.sent >= 0.03 * NS
    assert second.build_ns < 0.01 * NS


def test_a_session_ends_when_its_own_code_does() -> None:
    closed: list[int] = []

    def session(number: int) -> Generator[Any, Any, None]:
        try:
            if number == 4:
                raise KeyError(number)
            if number == 5:
                return
            yield Turn(number) if number != 6 else "no turn"
            if number == 1:
                raise GeneratorExit
            if number == 2:
                yield {"payload": 2}
            if number == 3:
                yield Turn("bad", think_s=-1)
            yield Turn("fails" if number == 7 else "last")
        finally:
            closed.append(number)

    def invoke(payload: Any) -> bytes:
        if payload == "fails":
            raise ConnectionError
        return b"ok"

    bench = Talks(session, invoke)
    records = bench.run(*range(8))
    ended = {record.session: (record.turn, record.outcome, record.ended) for record in records}
    assert ended == {
        0: (2, "ok", "completed"),
        1: (1, "ok", "raised"),
        2: (1, "ok", "raised"),
        3: (1, "ok", "raised"),
        4: (1, "failed", "raised"),
        5: (1, "failed", "raised"),
        6: (1, "failed", "raised"),
        7: (2, "failed", "failed"),
    }
    assert sorted(closed) == list(range(8))
    ledger = bench.requests.ledger
    assert (ledger.sessions_completed, ledger.sessions_failed, ledger.sessions_raised) == (1, 1, 6)
    assert (ledger.arrivals, ledger.later_turns, ledger.sessions_open, bench.requests.waiting) == (8, 2, 0, 0)
    errors = {record.session: record.error for record in records if record.error is not None}
    assert errors == {4: "PayloadError KeyError", **dict.fromkeys((5, 6), "PayloadError SessionError")} | {
        7: "ConnectionError"
    }


def test_a_turn_is_due_when_its_session_has_thought_and_building_it_is_no_lag() -> None:
    def session(_: int) -> Generator[Turn, Any, None]:
        gevent.sleep(0.02)
        yield Turn(1, think_s=99)
        gevent.sleep(0.03)
        yield Turn(2, think_s=Decimal("0.01"), label="second")
        yield Turn(3)

    first, second, third = Talks(session, lambda _: None).run(0)
    assert first.build_ns >= 0.02 * NS
    assert (second.due - first.done, second.think_ns) == (NS // 100, NS // 100)
    assert second.build_ns >= 0.015 * NS
    assert second.sent - second.build_ns - second.due < 0.01 * NS
    assert (second.label, third.label, third.due, third.think_ns) == ("second", "", second.done, 0)


def test_the_time_between_turns_is_drawn_by_seed_session_and_turn() -> None:
    def session(_: int) -> Generator[Turn, Any, None]:
        for _ in range(4):
            yield Turn(0)

    think = Think.parse("exponential:60ms")
    together = Talks(session, lambda _: None, think).run(*range(60))
    apart = [Talks(session, lambda _: None, think).run(number) for number in range(60)]
    thought = {(record.session, record.turn): record.think_ns for record in together}
    assert thought == {(record.session, record.turn): record.think_ns for alone in apart for record in alone}
    drawn = [time for time in thought.values() if time is not None]
    assert len(set(drawn)) == len(drawn) == 180
    assert 0.045 < sum(drawn) / len(drawn) / NS < 0.075


def test_what_is_open_is_cut_and_what_found_no_slot_is_dropped() -> None:
    def session(_: int) -> Generator[Turn, Any, None]:
        while True:
            yield Turn(0)

    bench = Talks(session, lambda _: None)
    bench.send(0, 1, 2, -1)
    ended: list[int] = []
    bench.talks.on_end = ended.append
    bench.talks.cut(0)
    bench.talks.cut(-1)
    bench.talks.drop(1)
    ledger = bench.requests.ledger
    assert (ledger.not_begun, ledger.dropped_turns, ledger.sessions_open, len(ended)) == (1, 1, 3, 3)
    assert bench.requests.waiting == 1


def test_turns_after_one_that_was_the_last_are_not_begun_as_far_as_they_are_known() -> None:
    """Sessions of five turns that say so, or do not: ended by a failure, by their own code, by the end of the wave."""

    def session(number: int) -> Generator[Turn, Any, None]:
        for turn in range(1, 6):
            yield Turn((number, turn), left=None if number == 4 else 5 - turn)
            if number == 1 and turn == 2:
                raise KeyError
            if number == 6:
                return

    def invoke(payload: Any) -> bytes:
        if payload in ((0, 2), (4, 2), (-1, 2)):
            raise ConnectionError
        return b"ok"

    ended, open_ones = Talks(session, invoke), Talks(session, invoke)
    ended.run(0, 1, -1, 4, 6)
    open_ones.send(2, 3)
    open_ones.talks.cut(2)
    open_ones.talks.drop(3)
    first, second = (bench.requests.ledger for bench in (ended, open_ones))
    assert (first.not_begun, first.dropped_turns, first.turns_unknown) == (3 + 3, 0, 1)
    assert (second.not_begun, second.dropped_turns, second.turns_unknown) == (4 + 3, 1, 0)
    ledger = first + second
    assert ledger.turns + ledger.dropped_turns + ledger.not_begun == 5 * 4 + 2 + 1


def test_turns_after_one_that_is_in_flight_when_the_books_end_are_not_begun() -> None:
    answered = gevent.event.Event()

    def session(_: int) -> Generator[Turn, Any, None]:
        for left in (2, 1, 0):
            yield Turn(left, left=left)

    def invoke(payload: int) -> None:
        if payload == 1:
            answered.wait()

    bench = Talks(session, invoke)
    serving = gevent.spawn(bench.run, 0)
    gevent.sleep(0.01)
    bench.requests.abandon()
    ledger = bench.requests.ledger
    assert (ledger.abandoned, ledger.turns, ledger.not_begun) == (1, 2, 1)
    answered.set()
    serving.get()
    assert ledger.not_begun == 1, "what comes after the books counts nothing"


def test_an_answer_that_was_heard_when_the_books_were_closed_is_no_abandoned_one() -> None:
    hearing = gevent.event.Event()

    def session(_: int) -> Generator[Turn, Any, None]:
        yield Turn(0)
        hearing.wait()

    bench = Talks(session, lambda _: None)
    serving = gevent.spawn(bench.run, 0)
    gevent.sleep(0.01)
    bench.requests.abandon()
    (record,) = bench.records()
    assert (record.outcome, record.ended, bench.requests.ledger.in_flight) == ("ok", None, 0)
    hearing.set()
    assert serving.get() == []
    assert bench.requests.ledger.sessions_open == 1


def test_an_open_session_takes_little_memory() -> None:
    number = 1_000

    def session(_: int) -> Generator[Turn, Any, None]:
        yield Turn(0)
        yield Turn(0)

    bench, slot = Talks(session, lambda _: None), Slot()
    arrivals = iter([Arrival(index, 0) for index in range(number)])
    slot.take = lambda: next(arrivals, None)
    gc.collect()
    tracemalloc.start()
    bench.talks.serve(slot)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()  # with the records of the first turns
    tracemalloc.stop()
    assert len(bench.talks._open) == len(bench.dues) == number
    assert size / number < 10_000


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("session_factory = 3", "session_factory is an int, not a function"),
        ("def session_factory():\n    return 3", "expected a function session(number)"),
        ("def session_factory():\n    return lambda number: 3", "session is not a plain generator function"),
        (
            "def session_factory():\n    async def s(n):\n        yield 1\n    return s",
            "not a plain generator function",
        ),
        ("def session_factory():\n    def s():\n        yield 1\n    return s", "must take one argument, the number"),
        ("def session_factory():\n    raise KeyError('x')", "session_factory() raised KeyError"),
    ],
)
def test_a_file_whose_sessions_are_none_is_said(code: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "factories.py"
    path.write_text(f"def invoke_factory():\n    return lambda payload: None\n\n{code}\n")
    with pytest.raises(BenchmarkError) as raised:
        load(path)
    assert said in str(raised.value)


def test_a_callable_whose_call_is_a_generator_makes_sessions(tmp_path: Path) -> None:
    path = tmp_path / "factories.py"
    path.write_text(
        "class S:\n    def __call__(self, number):\n        yield number\n\n"
        "def invoke_factory():\n    return print\n\ndef session_factory():\n    return S()\n"
    )
    loaded = load(path)
    assert loaded.session is not None
    assert list(loaded.session(7)) == [7]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"think_s": "1"}, TypeError),
        ({"think_s": True}, TypeError),
        ({"think_s": float("nan")}, ValueError),
        ({"think_s": Decimal("nan")}, ValueError),
        ({"think_s": -0.1}, ValueError),
        ({"think_s": 1e12}, ValueError),
        ({"label": 3}, TypeError),
        ({"left": 1.0}, TypeError),
        ({"left": True}, TypeError),
        ({"left": -1}, ValueError),
        ({"left": 1 << 16}, ValueError),
    ],
)
def test_a_turn_that_is_none_is_refused(values: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Turn("payload", **values)


def test_the_first_piece_of_an_answer_is_distinguished_from_reasoning() -> None:
    def invoke(payload: list[tuple[str, str]]) -> Generator[Any, None, None]:
        for kind, text in payload:
            gevent.sleep(0.002)
            if kind == "error":
                raise ConnectionError
            yield Reasoning(text, "so" if kind == "last" else "") if kind in ("thought", "last") else text
        yield Response(tokens_in=9, metrics={"hits": 1.0})

    thought, said = ("thought", "hm"), ("said", "yes")
    streams = [
        [said, said],
        [thought, thought, said, said],
        [thought, ("last", "so"), said],  # the end of the reasoning and the beginning of the answer in one piece
        [thought, thought],
        [thought, said, thought],
        [thought, ("error", "")],
        [],
    ]

    def session(number: int) -> Generator[Turn, Any, None]:
        yield Turn(streams[number])

    records = Talks(session, invoke).run(*range(len(streams)))
    after = [None, 2, 1, None, 1, None, None]
    for record, pieces in zip(records, after, strict=True):
        if pieces is None:
            assert record.first_answer is None
            continue
        assert record.first_token is not None
        assert record.gaps is not None
        assert record.first_answer is not None
        waited = record.first_answer - record.first_token
        assert 0 <= waited - 1000 * sum(record.gaps[:pieces]) < 1000 * pieces  # gaps are whole microseconds
    assert [record.context_tokens for record in records] == [9, 9, 9, 9, 9, None, 9]
    assert [record.metrics for record in records] == [{"hits": 1.0}] * 5 + [None, {"hits": 1.0}]


def test_a_piece_of_several_tokens_is_as_many_gaps_and_an_answer_begins_when_its_piece_came() -> None:
    def invoke(payload: list[Any]) -> Generator[Any, None, None]:
        for piece in payload:
            gevent.sleep(0.002)
            yield piece

    streams = [
        [Piece("abc", 3), "d", Piece("efgh", 4)],
        [Reasoning("abc", tokens=3), Reasoning("de", tokens=2), Piece("efgh", 4), "i"],
        [Reasoning("abc", tokens=3), Reasoning("de", "e", 2), Reasoning("f")],
        [Reasoning("a"), Reasoning("bcd", tokens=3), Piece("e", 0), Piece("fg", 2)],  # "d" and "e" are one token
    ]

    def session(number: int) -> Generator[Turn, Any, None]:
        yield Turn(streams[number])

    plain, thoughtful, mixed, split = Talks(session, invoke).run(0, 1, 2, 3)
    assert [record.chunks for record in (plain, thoughtful, mixed, split)] == [6, 8, 4, 6]
    assert plain.gaps is not None
    assert max(plain.gaps[1:]) - min(plain.gaps[1:]) <= 1
    assert plain.first_token is not None
    assert (plain.gaps[0] >= 2000, plain.gaps[1] >= 500) == (True, True)
    assert 1000 * sum(plain.gaps) <= plain.done - plain.first_token + 1000 * len(plain.gaps)  # shared, and not repeated
    assert plain.first_answer is None
    for record, before in (
        (thoughtful, 6),
        (mixed, 2),
        (split, 3),
    ):  # all gaps until the piece with which the answer began
        assert record.first_answer is not None
        assert record.first_token is not None
        assert record.gaps is not None
        assert 0 <= record.first_answer - record.first_token - 1000 * sum(record.gaps[:before]) < 1000 * before
