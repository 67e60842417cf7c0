"""Sessions of several turns: how their rows are reported, stored, read back and compared with what can be."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from inference_benchmarker.records.batch import packed_sections
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.record import Ledger, RequestRecord
from inference_benchmarker.wave.files.requests_file import read_requests, write_requests
from inference_benchmarker.wave.spool.worker_state import WorkerState
from inference_benchmarker.words.units import NS
from tests.waves import Worker, streamed

if TYPE_CHECKING:
    from pathlib import Path

FAILED: dict[str, Any] = {"outcome": "failed", "error": "ConnectionResetError"}


def row(session: int, turn: int, due: int, done: int, **more: Any) -> RequestRecord:
    """A request that is sent when it is due."""
    worker = session % 2
    return RequestRecord(session, worker, due, due, done, session=session, turn=turn, **more)


SESSIONS = [
    row(-1, 1, -100, -50),
    row(0, 1, 0, 50, **FAILED),
    row(0, 1, 60, 90, attempt=1),
    row(0, 2, 100, 130, think_ns=10),
    row(0, 3, 130, 140, think_ns=0, ended="completed"),
    row(1, 1, 20, 40, ended="raised"),
    row(2, 1, 40, 45),
    row(2, 2, 70, 80, think_ns=25, ended="failed", **FAILED),
    row(3, 1, 60, 65),
    row(3, 2, 70, 170, think_ns=5, outcome="abandoned"),
    row(4, 1, 80, 95),
]


def reported(records: list[RequestRecord], order: list[int]) -> list[Worker]:
    workers = [Worker(0), Worker(1)]
    for place in order:
        worker = workers[records[place].worker]
        worker.write(records[place])
        worker.flush()
    return workers


def test_turns_stand_in_order_whatever_order_they_were_reported_in(tmp_path: Path) -> None:
    order = list(range(len(SESSIONS)))
    random.Random(5).shuffle(order)
    found = Records.of_workers([worker.columns() for worker in reported(SESSIONS, order)])
    assert list(found) == list(Records.of(reversed(SESSIONS))) == SESSIONS
    check = RecordsCheck()
    check.take(found)
    assert check.sessions["completed"] == {0: 1}
    assert check.sessions["failed"] == {0: 1}
    assert check.sessions["raised"] == {1: 1}
    assert check.sessions["later_turns"] == {0: 3, 1: 1}
    write_requests(tmp_path / "requests.parquet", [found], 0)
    (read,) = read_requests(tmp_path / "requests.parquet").records.parts()
    assert list(read) == SESSIONS


def test_a_part_of_the_arrivals_has_their_turns() -> None:
    workers = reported(SESSIONS, list(range(len(SESSIONS))))
    found = Records.of_workers([worker.columns().between(0, 3) for worker in workers])
    assert list(found) == [record for record in SESSIONS if 0 <= record.index < 3]


def test_the_users_of_rows_that_are_turns() -> None:
    found = Records.of(SESSIONS)
    assert found.lasts.tolist() == [True, False, *[True] * 9]
    assert found.firsts.tolist() == [record.turn == 1 and not record.attempt for record in SESSIONS]
    assert found.arrived.tolist() == [-100, 0, 0, 100, 130, 20, 40, 70, 60, 70, 80]
    assert found.begun.tolist() == [-100, 0, 0, 0, 0, 20, 40, 40, 60, 60, 80]
    cut = found.between(3, 8)
    assert cut.begun.tolist() == [100, 100, 20, 40, 40]  # what is left of a session counts from its first row left


def test_a_file_of_an_older_version_has_no_sessions(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    plain = [RequestRecord(index, 0, index, index, index + 1) for index in range(3)]
    pq.write_table(Records.of(plain).table.drop_columns(["session", "turn", "think_ns", "ended"]), path)
    (read,) = read_requests(path).records.parts()
    assert list(read) == plain
    assert not read.later_turns.any()
    assert read.begun.tolist() == read.arrived.tolist() == [0, 1, 2]


def test_a_batch_without_turns_is_packed_as_before() -> None:
    worker = Worker()
    worker.write(RequestRecord(0, 0, 1, 2, 3))
    worker.flush()
    (batch,) = worker.batches
    assert batch[16:17] == b"{"
    assert [len(section) for section in packed_sections(batch)] == [53, 0, 0, 0, 0]


def changed(place: int, **values: Any) -> list[RequestRecord]:
    return [record._replace(**values) if number == place else record for number, record in enumerate(SESSIONS)]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        (changed(4, turn=4), "a turn does not follow"),
        (changed(5, turn=2, think_ns=0), "a turn does not follow"),
        (changed(3, turn=1, think_ns=None), "an arrival has two first attempts"),
        (changed(6, turn=2), "before none that follows one"),
        (changed(3, think_ns=11), "was not due when"),
        (changed(3, due=101, sent=101), "was not due when"),
        (changed(3, think_ns=None), "a user thought before a turn that follows none"),
        (changed(6, think_ns=3), "a user thought before a turn that follows none"),
        (changed(2, think_ns=3), "a user thought before a turn that follows none"),
        (changed(4, worker=1), "another worker"),
        (changed(3, attempt=1), "an attempt|a user thought"),
        (changed(4, turn=None, session=None), "no session"),
        (changed(4, session=7), "another than its arrival"),
        (changed(3, ended="completed"), "goes on after its end"),
        (changed(4, ended="gone"), "ended is 'gone'"),
        (changed(4, ended="failed"), "failed with a turn that is not failed"),
        (changed(7, ended="completed"), "completed with a turn that is not ok"),
        (changed(9, ended="raised"), "abandoned"),
    ],
)
def test_sessions_that_no_worker_reports_are_refused(records: list[RequestRecord], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        RecordsCheck().take(Records.of(records))


def test_sessions_are_followed_over_the_edge_of_a_part() -> None:
    whole = Records.of(SESSIONS)
    check = RecordsCheck()
    check.take(whole.between(0, 5))
    check.take(whole.between(5, len(whole)))
    check = RecordsCheck()
    check.take(whole.between(0, 5))
    with pytest.raises(ValueError, match="two first attempts"):
        check.take(whole.between(4, 6))


def test_requests_with_turns_and_without_are_of_no_wave() -> None:
    mixed = [Worker(0), Worker(1)]
    mixed[0].write(SESSIONS[1])
    mixed[1].write(RequestRecord(1, 1, 0, 0, 0))
    for worker in mixed:
        worker.flush()
    with pytest.raises(ValueError, match="some requests have turns"):
        Records.of_workers([worker.columns() for worker in mixed])
    turns = mixed[0].columns().turns
    with pytest.raises(ValueError, match="1 turns of 2 requests"):
        WorkerState().take_rows(mixed[0].columns().base.repeat(2), [], turns)


def test_the_ledger_counts_sessions_and_turns_and_says_nothing_of_them_where_there_are_none() -> None:
    ledger = Ledger(
        scheduled=5,
        sent=10,
        repeated=1,
        later_turns=4,
        ok=7,
        failed=2,
        abandoned=1,
        sessions_completed=2,
        sessions_failed=1,
        sessions_raised=1,
        not_begun=1,
    )
    assert (ledger.arrivals, ledger.turns, ledger.sessions_open, ledger.balanced) == (5, 9, 1, True)
    assert Ledger.from_json(ledger.to_json()) == ledger
    assert "later_turns" not in Ledger(scheduled=1, sent=1, ok=1).to_json()
    assert not Ledger(scheduled=1, sent=1, ok=1, sessions_completed=2).balanced


def test_first_answers_lie_within_their_streams_and_only_turns_have_a_context() -> None:
    one = streamed(0, 1000, (1000, 1000), tokens_in=8, session=0, turn=1, ended="completed")
    worker = Worker()
    worker.write(one)
    worker.writer.add_first_answer([NS, 2 * NS, 3 * NS], 2)
    worker.flush()
    (known,) = Records.of_workers([worker.columns()])
    assert (known.first_answer, known.context_tokens) == (3 * NS, 8)
    table = Records.of([known]).table
    assert (table["first_answer"].to_pylist(), table["context_tokens"].to_pylist()) == ([3 * NS], [8])
    single = Records.of([known._replace(session=None, turn=None, ended=None)])
    assert single.table["context_tokens"].to_pylist() == [None]
    assert Records.of([known]).since(NS).int("first_answer").tolist() == [2 * NS]
    for wrong in (NS - 1, 4 * NS):
        with pytest.raises(ValueError, match="lies before its"):
            RecordsCheck().take(Records.of([known._replace(first_answer=wrong)]))
