"""Requests put together part by part from a spool: the same in whatever order they came, and never too many."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.client_use import WorkerUse
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.parts import PART
from inference_benchmarker.records.record import NONE, Ledger, RequestRecord
from inference_benchmarker.wave.spool import spooled
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.wave.spool.worker_state import WorkerState
from tests.waves import Worker, use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inference_benchmarker.records.parts import RecordParts

FAILED: dict[str, Any] = {"outcome": "failed", "error": "HttpError 500"}


@st.composite
def reported(draw: st.DrawFn) -> list[list[RequestRecord]]:
    """Batches of a few workers: some arrivals took long, some were tried again, some were dropped, some streamed."""
    batches: list[list[RequestRecord]] = []
    waiting: list[RequestRecord] = []
    for index in range(draw(st.integers(-20, 0)), draw(st.integers(1, 40))):
        if draw(st.integers(0, 9)) == 0:
            continue  # dropped
        last = draw(st.integers(0, 2)) if draw(st.integers(0, 3)) == 0 else 0
        for attempt in range(last + 1):
            begin = index * 100 + attempt * 10
            record = RequestRecord(index, index % 3, begin, begin + 1, begin + 9, attempt=attempt)
            record = record._replace(label=f"l{index % 4}")
            if attempt < last:
                record = record._replace(**FAILED)
            elif draw(st.booleans()):
                gaps = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
                ends = (begin * 1000, begin * 1000 + 1000 * sum(gaps))
                record = record._replace(first_token=ends[0], last_token=ends[1], chunks=len(gaps) + 1, gaps=gaps)
                record = record._replace(tokens_out=5, finish_reason=draw(st.sampled_from(["stop", "length", None])))
            if draw(st.integers(0, 2)) == 0:
                record = record._replace(
                    metrics={f"of_worker_{index % 3}": float(index), "own": draw(st.floats(-9, 9))}
                )
            waiting.append(record)
        if draw(st.booleans()):
            now = [record for record in waiting if draw(st.integers(0, 4))]  # the others are stragglers
            waiting = [record for record in waiting if record not in now]
            batches.append(now)
    return [*batches, waiting]


def spooled_state(path: Path, batches: list[list[RequestRecord]], part: int) -> SpoolState:
    """A spool of these batches, read through."""
    path.unlink(missing_ok=True)
    spool, workers = SpoolWriter(path), [Worker(number) for number in range(3)]
    for batch in batches:
        for worker in workers:
            for record in batch:
                if record.worker == worker.number:
                    worker.write(record)
            meta = {"worker": worker.number, "at": 1, "final": False, "ledger": Ledger().to_json(), "use": use()}
            spool.batch(worker.writer.take(meta))
    spool.close()
    state = SpoolState([path], 3, live=False, part=part)
    state.read()
    return state


@settings(max_examples=20)
@given(batches=reported(), part=st.sampled_from([1, 3, 8, 20, 64, 1_000]))
def test_the_parts_are_the_table(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[RequestRecord]], part: int
) -> None:
    state = spooled_state(tmp_path_factory.getbasetemp() / "spool", batches, part)
    found, expected = state.records(), sorted(chain(*batches), key=lambda record: (record.index, record.attempt))
    state.close()
    assert list(found) == expected
    assert state.warmup_rows == sum(record.index < 0 for record in expected)
    answered = [record.done for record in expected if record.index >= 0]
    assert max(worker.last_done or 0 for worker in state.workers) == max(answered, default=0)
    assert isinstance(found, Records) == (len(expected) <= part)
    names = set()
    for each in found.parts():
        indices = each.int("index")
        assert len(np.unique(indices)) <= part
        assert (indices < 0).all() or (indices >= 0).all() or isinstance(found, Records)
        assert each.int("attempt")[0] == 0
        names.add(tuple(each.coded("label")[1]))
    assert len(names) <= 1, "names are numbered alike"
    assert [part.int("sent").tolist() for part in found.parts("sent")] == [
        p.int("sent").tolist() for p in found.parts()
    ]


def of_arrivals(path: Path, *indices: Sequence[int], part: int) -> Records | RecordParts:
    """Batches of plain requests."""
    return spooled_state(path, [[RequestRecord(i, 0, i, i, i + 1) for i in each] for each in indices], part).records()


def test_few_requests_of_many_arrivals_are_one_part(tmp_path: Path) -> None:
    """Most arrivals were dropped."""
    found = of_arrivals(tmp_path / "spool", *(range(n, n + 9_000, 3_000) for n in range(0, 90_000, 9_000)), part=20)
    assert [len(part) for part in found.parts()] == [10, 10, 10]


def test_streams_of_many_pieces_make_parts_of_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooled, "MOST_BYTES", 10_000)
    monkeypatch.setattr(spooled, "MOST_AT_ONCE", 40_000)
    gaps = (1,) * 99
    batches = [
        [RequestRecord(n, 0, 0, 0, 1, first_token=0, last_token=99_000, chunks=100, gaps=gaps) for n in range(k, k + 8)]
        for k in range(0, 160, 8)
    ]
    found = spooled_state(tmp_path / "spool", batches, part=160).records()
    assert list(found) == [*chain(*batches)]
    assert max(len(part) for part in found.parts()) == 20


class TestForged:
    def test_more_requests_than_its_arrivals_can_have(self, tmp_path: Path) -> None:
        path = tmp_path / "spool"
        with pytest.raises(ValueError, match="109 requests were reported of 1 arrivals"):
            of_arrivals(path, range(20), [5] * 108, part=8)

    def test_reports_of_arrivals_all_over_the_wave(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="arrivals that are far from each other"):
            of_arrivals(tmp_path / "spool", *(range(n, 100_000, 200) for n in range(2)), part=8)

    def test_a_part_that_does_not_fit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spooled, "most_in_memory", lambda: 1_000)
        with pytest.raises(ValueError, match="does not fit in this machine's memory"):
            of_arrivals(tmp_path / "spool", range(100), part=64)

    def test_a_spool_that_changed_since(self, tmp_path: Path) -> None:
        path = tmp_path / "spool"
        found = of_arrivals(path, range(100), part=10)
        path.write_bytes(b"")
        with pytest.raises(ValueError, match="is damaged"):
            list(found)


def test_what_is_kept_of_a_batch_is_little(tmp_path: Path) -> None:
    index = spooled.BatchIndex()
    for number in range(100):
        index.add(np.arange(number * 5_000, number * 5_000 + 5_000), spooled.Batch(0, number, 0, 0, 265_000))
    assert len(index._batches) * 8 + len(index._touched) * 8 < 100 * 100
    assert [part.rows for part in index.parts()] == [PART // 2] * 7 + [500_000 - 7 * PART // 2]


def test_a_writer_makes_the_rows_that_are_read_back(tmp_path: Path) -> None:
    """The names of workers are their own: the same number means another name."""
    path = tmp_path / "spool"
    spool = SpoolWriter(path)
    for worker, label in enumerate("ab"):
        writer = BatchWriter()
        writer.add(worker, 0, 0, 1, 0, NONE, writer.labels[label], 0, 0)
        meta = {"worker": worker, "at": 1, "final": True, "ledger": Ledger().to_json(), "use": use()}
        spool.batch(writer.take(meta))
    spool.close()
    state = SpoolState([path], 2, part=1)
    state.read()
    assert [record.label for record in state.records()] == ["a", "b"]


def test_a_worker_s_longest_silence_is_reported_in_seconds() -> None:
    state = WorkerState(silence_ns=1_500_000_000, use=encoded(WorkerUse(cpu_s=2.0)))
    assert (state.worker_use.silence_s, state.worker_use.cpu_s) == (1.5, 2.0)
