"""A request whose record cannot be written, for want of memory, is recorded as a whole or not at all, and is missed."""

from __future__ import annotations

import dis
import sys
import time
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pytest

from inference_benchmarker import Turn, Wave
from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.engine.endpoint.factories_file import Endpoint
from inference_benchmarker.engine.worker import conversations, statuses
from inference_benchmarker.engine.worker import requests as worker_requests
from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot
from inference_benchmarker.engine.worker.requests import Requests
from inference_benchmarker.plan.pacing import Arrival
from inference_benchmarker.records import batch_writer, counting, feed_writer, names, record
from inference_benchmarker.records.aggregation import BatchAggregator
from inference_benchmarker.records.batch import BASE, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.records.counts import check_series
from inference_benchmarker.records.packed import WorkerColumns, unpacked
from inference_benchmarker.records.record import COMPLETED, OUTCOMES, Ledger
from inference_benchmarker.records.response import Response
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.words.units import NS
from tests.request_bench import Bench
from tests.waves import CONSTANTS, MS, open_plan, use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import CodeType, FrameType

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.counts import Counts

FILES = {
    module.__file__ for module in (batch_writer, conversations, counting, feed_writer, names, record, worker_requests)
}
ASKING = ("CALL", "BINARY_", "BUILD_", "FOR_ITER", "GET_ITER", "LIST_", "DICT_", "STORE_SUBSCR", "MAKE_", "UNPACK_")
"""The beginnings of the names of instructions that may ask for memory."""
EXEMPT = ("execute", "make_attempt", "_take_back", "_say", "take", "_mark_reported", "mark_reported", "_clear_sections")
"""What is no part of recording, what follows when the memory is there again, and what frees memory alone."""
VICTIM, SENT = 1, 3
HALF = 10
KINDS = ("plain", "failed", "stream", "turn", "attempt")


@cache
def asking(code: CodeType) -> frozenset[int]:
    """The places of a function's instructions that may ask for memory."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname.startswith(ASKING))


class Room:
    """Memory for so many askings of the code that records, and then, once, none; None: for all of them."""

    def __init__(self, askings: int | None) -> None:
        self._left = askings
        self.refused = False

    @contextmanager
    def only(self) -> Iterator[None]:
        before = sys.gettrace()
        if self._left is not None:
            sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name in EXEMPT:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in asking(frame.f_code) and not self.refused:
            assert self._left is not None
            self._left -= 1
            if self._left < 0:
                self.refused = True
                raise MemoryError
        return self._trace


def sent(writer: BatchWriter, kind: str, room: Room) -> Requests:
    """Requests of a kind, of which the ``VICTIM`` finds no more room while it is recorded."""
    requests = Requests(lambda *_: None, writer, on_failure=lambda *_: None)
    requests.t0 = time.monotonic_ns()
    writer.metric_numbers.take_up(["told"])
    statuses.note(503)  # of a response that failed, which is looked at after each request

    def attempt(slot: Slot) -> None:
        statuses.note(503)
        slot.sent = now = time.monotonic_ns() - requests.t0
        assert slot.arrival is not None
        number = slot.arrival.index
        if kind == "failed" or (kind == "attempt" and not slot.attempt):
            raise ValueError(str(number))
        if kind != "plain":
            slot.times, slot.thought = [now] * (2 + number), 1
            metrics = {"told": float(number)}
            slot.usage = Response(tokens_out=2 + number, finish_reason="stop", model=f"m{number}", metrics=metrics)

    for number in range(SENT):
        slot = Slot()
        requests.slots.append(slot)
        if kind == "turn":
            slot.session = OpenSession(number)
            slot.session.ended = COMPLETED
        for slot.attempt in range(1 + (kind == "attempt")):
            arrival = Arrival(number, slot.done if slot.attempt else 0)
            is_victim = number == VICTIM and slot.attempt == (kind == "attempt")
            with room.only() if is_victim else nullcontext():
                requests.execute(slot, arrival, attempt)
    statuses.take()
    requests.abandon()
    return requests


def rows_of(writer: BatchWriter) -> Records:
    """What a reader of the next batch has, which was found to be what workers report."""
    meta, *sections = split_batch(writer.take({}))
    attempts = np.array(meta.get("attempts", []), np.int64).reshape(-1, 2)
    fields: dict[str, Any] = {name: meta[name] for name in ("labels", "errors", "finish_reasons")}
    fields |= unpacked(sections)
    metrics = [*writer.metric_numbers]
    return Records.of_workers([WorkerColumns(worker=0, **fields, metric_names=metrics, attempts=attempts)])


def counts_of(writer: BatchWriter) -> Counts:
    adder = BatchAggregator()
    reported = writer.labels._names, writer.errors._names, writer.finish_reasons._names
    adder.add(split_batch(writer.take({}))[0], *reported)
    found = adder.counts()
    check_series(found.series, len(found.errors))
    return found


def told_by(kind: str, missing: int) -> list[int]:
    """The arrivals whose streams are recorded."""
    return [] if kind in ("plain", "failed") else [each for each in range(SENT) if not missing or each != VICTIM]


def out_of_memory_once(writer: BatchWriter, method: str) -> None:
    """There is none when a method of it is called for the first time."""
    real, failures = getattr(writer, method), iter([MemoryError])

    def call(*args: Any) -> Any:
        for failure in failures:
            raise failure
        return real(*args)

    setattr(writer, method, call)


@pytest.mark.parametrize("again", ["", "_forget_last", "_packed_last", "_end_with_rows"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_recorded_whole_or_not_at_all_wherever_memory_ends(kind: str, again: str) -> None:
    """``again``: there is none either for that step of taking back what was written."""
    lost = 0
    for askings in count(step=2 if again else 1):
        room, writer = Room(askings), BatchWriter()
        if again:
            out_of_memory_once(writer, again)
        books = sent(writer, kind, room).ledger
        rows = rows_of(writer)
        check = RecordsCheck()
        check.take(rows)
        assert {name: check.by_worker[name][0] for name in OUTCOMES} == {n: getattr(books, n) for n in OUTCOMES}
        assert check.sessions["completed"][0] == books.sessions_completed
        missing = books.sent - len(rows)
        assert (missing, missing in (0, 1)) == (books.in_flight, True)
        lost += missing
        reported = [row for row in rows if row.chunks is not None]
        assert [row.index for row in reported] == told_by(kind, missing)
        assert all((row.chunks, row.metrics) == (2 + row.index, {"told": row.index}) for row in reported)
        assert all(len(row.gaps or ()) == 1 + row.index and row.label == f"m{row.index}" for row in reported)
        if not room.refused:
            assert missing == 0
            break
    assert lost > (1 if again else 5)


@pytest.mark.parametrize("again", ["", "_forget_last", "_keep_slowest"])
@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_request_is_counted_or_not_at_all_wherever_memory_ends(kind: str, again: str) -> None:
    lost = 0
    for askings in count(step=2 if again else 1):
        room, writer = Room(askings), CountingBatchWriter()
        if again:
            out_of_memory_once(writer, again)
        books, found = sent(writer, kind, room).ledger, counts_of(writer).window
        assert {name: found.total(name) for name in OUTCOMES} == {n: getattr(books, n) for n in OUTCOMES}
        assert (books.sent, books.in_flight in (0, 1)) == (SENT, True)
        lost += books.in_flight
        if not room.refused:
            break
    assert lost > (1 if again else 5)


def talk(number: int) -> Iterator[Turn]:
    """A session of two turns, of which that of the ``VICTIM`` raises after the first."""
    yield Turn("first")
    if number == VICTIM:
        raise MemoryError
    yield Turn("second")


def test_a_turn_that_is_heard_without_memory_is_recorded_whole_or_not_at_all() -> None:
    lost = 0
    for askings in count():
        room, talks = Room(askings), Bench(Endpoint(invoke=lambda _: b"answer", session=talk))
        slots = [Slot() for _ in range(SENT)]
        talks.requests.slots += slots
        for number, slot in enumerate(slots):
            slot.take = iter([Arrival(number, 0), None]).__next__
            with room.only() if number == VICTIM else nullcontext(), suppress(MemoryError):
                talks.sessions.serve(slot)
        talks.requests.abandon()
        books, check, rows = talks.requests.ledger, RecordsCheck(), rows_of(talks.writer)
        check.take(rows)
        assert {name: check.by_worker[name][0] for name in OUTCOMES} == {n: getattr(books, n) for n in OUTCOMES}
        assert check.sessions["raised"][0] == books.sessions_raised
        assert books.sent - len(rows) == books.in_flight
        lost += books.in_flight
        if not room.refused:
            assert (books.in_flight, books.sessions_raised) == (0, 1)
            break
    assert lost > 5


def write(writer: BatchWriter, index: int) -> None:
    """A request of the window or, below 0, of the warm-up; each ninth has failed."""
    due = index * MS
    error = 0 if index % 9 else writer.error(ValueError(f"{index % 2}"))[0]
    if index >= 0:
        writer.feed.sendings.append((due, due))
    writer.add(index, due, due, due + 40 * MS, 0, 10, writer.labels[f"m{index % 3}"], error, int(index % 9 == 0))


@pytest.mark.parametrize(("place", "step"), [("add", 3), ("take", 7)])
def test_what_was_counted_in_part_is_not_counted_at_all(place: str, step: int) -> None:
    """So many rows were reported before; of those that came since, all count or none. In each ``step``-th place."""
    seen: Counter[int] = Counter()
    for askings in count(step=step):
        room, writer, adder = Room(askings), CountingBatchWriter(warmup=True), BatchAggregator()

        def report(writer: CountingBatchWriter = writer, adder: BatchAggregator = adder) -> int:
            meta, base, *_ = split_batch(writer.take({}))
            adder.add(meta, writer.labels._names, writer.errors._names, [""])
            return len(base) // BASE.size

        for index in range(-2, HALF):
            write(writer, index)
        slow = report()
        for index in range(HALF, 2 * HALF):
            write(writer, index)
        with room.only(), suppress(MemoryError):
            writer.feed.count() if place == "add" else writer.take({})
        slow += report()
        found = adder.counts()
        check_series(found.series, len(found.errors))
        whole = found.window.total("lag")
        assert slow in (whole, HALF)
        assert sum(each.ok + each.failed for each in found.labels.values()) == whole
        assert found.window.total("sent") in (whole, 2 * HALF)
        seen[whole] += 1
        if not room.refused:
            break
    assert set(seen) == {HALF, 2 * HALF}


def read(parent: Path, plan: WavePlan, *batches: bytes) -> Wave:
    """The wave whose primary has these batches, as a command reads it that finds its spool."""
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[50], host=CONSTANTS)
    for batch in batches:
        spool.batch(batch)
    spool.event(event="end", at=2 * NS)
    spool.close()
    return Wave.load(run_dir.path)


def no_memory(*_: object) -> NoReturn:
    raise MemoryError


def lost_by(wave: Wave) -> str:
    (finding,) = (each for each in wave.verdict.findings if each.severity == "invalid")
    assert (finding.code, wave.verdict.exit_code) == ("ledger_broken", 3)
    assert "out of memory while recording" in finding.advice
    return finding.measured


def test_a_wave_that_lost_a_record_is_invalid_and_has_the_others(tmp_path: Path) -> None:
    writer = BatchWriter()
    ledger = sent(writer, "stream", Room(100)).ledger.to_json()
    plan = replace(open_plan(str(SENT), "1"), workers=1, seed=1)
    meta = {"worker": 0, "sequence": 0, "at": NS, "final": True, "changes": 0, "use": use(cpu_s=0.1)}
    wave = read(tmp_path, plan, writer.take({**meta, "ledger": ledger}))
    assert lost_by(wave) == f"1 of {SENT} requests were sent and not recorded"
    assert (len(wave.records), wave.ledger.ok, wave.ledger.in_flight) == (SENT - 1, SENT - 1, 1)


def test_a_wave_of_which_counts_were_forgotten_is_invalid_and_has_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(open_plan("1000", "0.02"), records="none", workers=1, seed=1)
    writer, batches = CountingBatchWriter(), []
    for half in range(2):
        for index in range(HALF * half, HALF * (half + 1)):
            write(writer, index)
        if half:
            with monkeypatch.context() as patched:
                patched.setattr(counting, "_count_bins", no_memory)
                with pytest.raises(MemoryError):
                    writer.feed.count()
        size = HALF * (half + 1)
        failed = len(range(0, size, 9))
        ledger = Ledger(sent=size, ok=size - failed, failed=failed).to_json()
        meta = {"worker": 0, "sequence": half, "at": NS, "final": half == 1, "changes": 0, "use": use(cpu_s=0.1)}
        batches.append(writer.take({**meta, "ledger": ledger}))
    wave = read(tmp_path, plan, *batches)
    assert lost_by(wave) == f"{HALF} of {2 * HALF} requests were sent and not recorded"
    assert (wave.ledger.completed, wave.ledger.ok) == (HALF, HALF - len(range(0, HALF, 9)))
    assert wave.summary.latency is not None
    assert wave.summary.latency.count == wave.ledger.ok
