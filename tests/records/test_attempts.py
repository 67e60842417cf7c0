"""Arrivals with several attempts: how their rows are reported, stored, read back and compared with what can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.record import FAILED as FAILED_OUTCOME
from inference_benchmarker.records.record import NONE, OK, Ledger, RequestRecord
from inference_benchmarker.wave.files.requests_file import read_requests
from inference_benchmarker.wave.spool.worker_state import WorkerState
from tests.waves import MS, Worker

if TYPE_CHECKING:
    from pathlib import Path

FAILED: dict[str, Any] = {"outcome": "failed", "error": "ConnectionResetError"}
RECORDS = [
    RequestRecord(-1, 1, -100, -90, -50),
    RequestRecord(0, 0, 0, 10, 50, **FAILED),
    RequestRecord(0, 0, 60, 61, 90, **FAILED, attempt=1),
    RequestRecord(0, 0, 90, 95, 99, attempt=2),
    RequestRecord(1, 1, 20, 30, 40),
    RequestRecord(2, 0, 40, 40, 45, **FAILED),
    RequestRecord(2, 0, 45, 45, 80, outcome="abandoned", attempt=1),
]


def test_attempts_stand_in_order_whatever_order_they_were_reported_in() -> None:
    workers = [Worker(0), Worker(1)]
    for place in (1, 5, 4, 2, 6, 0, 3):
        workers[RECORDS[place].worker].write(RECORDS[place])
        workers[RECORDS[place].worker].flush()
    found = Records.of_workers([worker.columns() for worker in workers])
    assert list(found) == list(Records.of(reversed(RECORDS))) == RECORDS
    RecordsCheck().take(found)


def test_the_users_of_rows_that_are_attempts() -> None:
    found = Records.of(RECORDS)
    assert found.repeats.tolist() == [False, False, True, True, False, False, True]
    assert found.lasts.tolist() == [True, False, False, True, True, False, True]
    assert found.arrived.tolist() == [-100, 0, 0, 0, 20, 40, 40]
    cut = found.between(2, 6)  # within an arrival: what is left of it counts from its first row that is left
    assert cut.arrived.tolist() == [60, 60, 20, 40]
    assert cut.lasts.tolist() == [False, True, True, True]


def test_records_in_order_of_arrival_keep_each_arrivals_attempts_together() -> None:
    mixed = [record._replace(index=9 - record.index) for record in RECORDS[1:]]
    found = Records.of(mixed)
    assert found.arrived.tolist() == [40, 40, 20, 0, 0, 0]
    ordered = found.in_order_of_arrival()
    assert ordered.arrived.tolist() == [0, 0, 0, 20, 40, 40]
    assert ordered.int("attempt").tolist() == [0, 1, 2, 0, 0, 1]


def test_without_repeats_each_row_is_a_user() -> None:
    found = Records.of(record for record in RECORDS if not record.attempt)
    assert found.lasts.all()
    assert found.arrived.tolist() == found.int("due").tolist()
    assert Records.of([]).lasts.tolist() == Records.of([]).arrived.tolist() == []


def test_a_file_of_an_older_version_has_first_attempts_alone(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    pq.write_table(Records.of(RECORDS).where(~Records.of(RECORDS).repeats).table.drop_columns(["attempt"]), path)
    (read,) = read_requests(path).records.parts()
    assert [record.index for record in read] == [-1, 0, 1, 2]
    assert not read.repeats.any()


def changed(place: int, **values: Any) -> list[RequestRecord]:
    return [record._replace(**values) if number == place else record for number, record in enumerate(RECORDS)]


@pytest.mark.parametrize(
    "records",
    [
        changed(2, attempt=2),
        changed(3, attempt=1),
        changed(2, attempt=0),
        changed(2, worker=1),
        changed(2, due=49),
        changed(0, attempt=1),
        [record for record in RECORDS if record != RECORDS[1]],
        changed(4, index=2, attempt=7),
    ],
)
def test_attempts_that_no_worker_reports_are_refused(records: list[RequestRecord], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="attempt"):
        RecordsCheck().take(Records.of(records))


@pytest.mark.parametrize("attempts", [[[2, 1]], [[-1, 1]], [[0]], [[0, 1, 2]], [[0, 0]], [[0, 1 << 20]], [["0", 1]]])
def test_a_batch_whose_attempts_are_of_no_request_is_refused(attempts: list[list[int]]) -> None:
    worker = Worker()
    worker.write(RECORDS[0])
    worker.write(RECORDS[1])
    worker.flush()
    state = WorkerState()
    with pytest.raises(ValueError, match="attempt"):
        state.take_rows(worker.columns().base, attempts, worker.columns().turns)


def test_the_ledger_counts_repeats_apart_and_an_older_one_has_none() -> None:
    ledger = Ledger(scheduled=4, sent=6, dropped=1, repeated=3, ok=2, failed=3, abandoned=1)
    assert (ledger.arrivals, ledger.balanced, ledger.in_flight) == (3, True, 0)
    assert not Ledger(scheduled=4, sent=6, dropped=1, repeated=2).balanced
    reported = ledger.to_json()
    assert Ledger.from_json(reported) == ledger
    del reported["repeated"]
    assert Ledger.from_json(reported).repeated == 0
    assert (ledger + ledger).repeated == 6
    with pytest.raises(KeyError):
        Ledger.from_json({"scheduled": 1})


def test_repeats_within_a_batch_are_counted_from_the_first_row_of_all_batches() -> None:
    worker = Worker()
    for record in RECORDS[1:4]:
        worker.write(record)
        worker.flush()
    assert np.array_equal(worker.columns().attempts, [[1, 1], [2, 2]])


def test_the_live_feed_has_the_users_response_time_and_the_requests_other_times() -> None:
    writer = BatchWriter()
    writer.add(0, 0, 0, 500 * MS, 0, NONE, 0, 1, FAILED_OUTCOME)
    writer.add(0, 600 * MS, 610 * MS, 700 * MS, 0, NONE, 0, 0, OK)
    writer.add_attempt(1, 0)
    writer.add(-1, 600 * MS, 610 * MS, 700 * MS, 0, NONE, 0, 0, OK)
    writer.add_attempt(1, 0)
    feed = Feed()
    feed.merge(writer.feed.unreported()["feed"], ["", "E"])
    cell = feed.total()
    assert (cell.ok, cell.errors) == (1, 1)
    fields = {name: cell.times[name].percentile(100) for name in ("response_time", "latency")}
    assert fields == {"response_time": pytest.approx(0.7, rel=0.01), "latency": pytest.approx(0.09, rel=0.01)}
    assert cell.times["lag"].percentile(100) == pytest.approx(0.01, rel=0.01)
