"""``requests.parquet`` in parts: what is written is read back, whoever wrote it and however it was cut."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from inference_benchmarker import Wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.parts import RecordParts
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.system import files
from inference_benchmarker.system.files import replacing
from inference_benchmarker.wave import loading, reader
from inference_benchmarker.wave.files import requests_file
from inference_benchmarker.wave.files.requests_file import in_file, read_requests, write_requests
from inference_benchmarker.wave.spool.spool import SpoolReader
from tests.hostile import write_frames
from tests.parts import in_parts
from tests.spools import drawn_again
from tests.waves import spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import BinaryIO

FAILED: dict[str, Any] = {"outcome": "failed", "error": "ClientTimeout"}


def some(number: int = 40) -> Records:
    """A warm-up of ten arrivals, and the window's; every fourth was tried twice again."""
    rows = []
    for index in range(-10, number):
        first = RequestRecord(index, 0, index * 10, index * 10 + 1, index * 10 + 3, label=f"l{index % 3}")
        first = first._replace(
            metrics={"rows": index / 4, **({"hit": 1.0} if index % 7 else {})} if index % 5 else None
        )
        again = [first._replace(due=first.due + 3 * n, done=first.done + 3 * n, attempt=n) for n in (1, 2)]
        rows += [first._replace(**FAILED), again[0]._replace(**FAILED), again[1]] if index % 4 == 0 else [first]
    return Records.of(rows)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "requests.parquet"


@pytest.mark.parametrize("rows", [1, 7, 1_000])
def test_the_parts_that_are_written_are_those_that_are_read(path: Path, rows: int) -> None:
    records = some()
    write_requests(path, in_parts(records, rows).parts(), 0)
    assert list(in_file(path)) == list(records)
    assert [len(part) for part in in_file(path).parts("due")] == [len(part) for part in in_parts(records, rows).parts()]
    read = read_requests(path, part=20)
    assert list(read.records) == list(records)
    assert read.checked.warmup == int((records.int("index") < 0).sum())
    assert max(len(part) for part in read.records.parts("index")) <= max(rows, 20), "a group is read whole"
    whole = read_requests(path)
    assert isinstance(whole.records, Records)
    assert list(whole.records) == list(records)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 11])
def test_an_older_files_groups_may_part_the_attempts_of_an_arrival(path: Path, rows: int) -> None:
    records = some()
    pq.write_table(records.table, path, row_group_size=rows)
    read = read_requests(path, part=6).records
    assert list(read) == list(records)
    assert all(part.int("attempt")[0] == 0 for part in read.parts("attempt"))


def test_a_large_file_of_an_older_version_has_what_it_lacks(path: Path) -> None:
    records = some().where(~some().repeats)
    older = records.table.drop_columns(["attempt", "finish_reason", "gaps"])
    pq.write_table(older, path, row_group_size=9)
    read = read_requests(path, part=20).records
    assert isinstance(read, RecordParts)
    assert list(read) == list(records)
    assert not any(part.int("attempt").any() or part.has("gaps").any() for part in read.parts("attempt", "gaps"))


def test_a_part_has_the_columns_that_were_named(path: Path) -> None:
    write_requests(path, in_parts(some(), 9).parts(), 0)
    (first, *_) = in_file(path).parts("done", "index")
    assert set(first.table.column_names) == {"index", "done"}


def test_the_file_may_be_replaced_or_deleted_meanwhile(path: Path) -> None:
    write_requests(path, in_parts(some(), 9).parts(), 0)
    read = in_file(path)
    write_requests(path, [], 0)
    path.unlink()
    assert list(read) == list(some())


def test_a_draft_that_is_still_written_stays(path: Path) -> None:
    """Two commands may put the same wave together; what one of them left that was killed goes."""
    killed = path.with_name(f".{path.name}.0.part")
    killed.touch()
    with replacing(path) as file:
        write_requests(path, [some()], 0)
        file.write(b"of the other")
    assert path.read_bytes() == b"of the other"
    assert not killed.exists()


def test_what_is_out_of_order_is_refused(path: Path) -> None:
    records = some()
    halves = [records.between(30, len(records)), records.between(0, 30)]
    write_requests(path, halves, 0)
    for part in (10, 1_000):
        with pytest.raises(BenchmarkError, match="not in the order of their arrivals"):
            read_requests(path, part=part)
    write_requests(path, [records.between(0, 20), records.between(19, 40)], 0)
    with pytest.raises(BenchmarkError, match="an arrival has two first attempts"):
        read_requests(path, part=10)


def test_a_part_that_does_not_fit_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(some().table, path, row_group_size=10)
    monkeypatch.setattr(requests_file, "most_in_memory", lambda: 4_000)
    assert len(read_requests(path, part=10).records) == len(some()), "only a part has to"
    pq.write_table(some().table, path)
    with pytest.raises(BenchmarkError, match=r"cannot be read .*do not fit in this machine's memory"):
        read_requests(path, part=10)


def in_small_parts(monkeypatch: pytest.MonkeyPatch, rows: int = 7) -> None:
    """Let a wave of more than a few requests be put together part by part."""
    for module in (loading, reader):
        monkeypatch.setattr(module, "PART", rows)


def killed_at(place: int) -> Callable[..., AbstractContextManager[BinaryIO]]:
    """``replacing``, at whose n-th step the process ends as if it were killed."""
    from contextlib import contextmanager

    steps = iter(range(1_000))

    @contextmanager
    def until(path: Path, *more: Any, **named: Any) -> Iterator[BinaryIO]:
        if next(steps) == place:
            os._exit(9)
        with replacing(path, *more, **named) as file:
            yield file
            file.flush()
            if next(steps) == place:
                os._exit(9)

    return until


@pytest.mark.parametrize("make", [spooled, drawn_again], ids=["plain", "tried again"])
def test_a_kill_at_any_instant_leaves_what_can_be_finished(
    make: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(tmp_path / "whole")
    expected = Wave.load(whole.path)
    in_small_parts(monkeypatch)
    run_dir = make(tmp_path)
    for place in range(20):
        child = os.fork()
        if not child:
            code = 1  # what goes wrong here must not go on as a second test run
            try:
                for module in (requests_file, files):
                    monkeypatch.setattr(module, "replacing", killed_at(place))
                Wave.load(run_dir.path)
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) in (0, 9)
        assert run_dir.spool.exists() or status == 0
        if status == 0 and not run_dir.spool.exists():
            break
    assert place > 3
    wave = Wave.load(run_dir.path)
    assert isinstance(wave.records, RecordParts)
    assert list(wave.records) == list(expected.records)
    assert wave.text() == expected.text().replace(str(whole.path), str(run_dir.path)), "but for the second in its name"
    assert [*run_dir.path.glob(".requests.parquet.*")] == [], "what may be large is not left there"


def test_a_wave_that_cannot_be_written_is_distinguished_from_its_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Wave.load(drawn_again(tmp_path / "whole").path)
    in_small_parts(monkeypatch)
    run_dir = drawn_again(tmp_path)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(requests_file, "replacing", full)
    wave = Wave.load(run_dir.path)
    run_dir.spool.unlink()
    assert isinstance(wave.records, RecordParts)
    assert whole.run_dir is not None
    assert wave.run_dir is not None
    assert wave.text() == whole.text().replace(str(whole.run_dir.path), str(wave.run_dir.path))
    where = [("outcome", "==", "failed")]
    pd.testing.assert_frame_equal(wave.frame(["due", "error"], where), whole.frame(["due", "error"], where))
    pd.testing.assert_frame_equal(pd.concat(wave.batches(rows=9)), whole.frame())
    assert wave.dataset().to_table().to_pylist() == whole.dataset().to_table().to_pylist()


def test_a_forged_spool_of_many_parts_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_parts(monkeypatch)
    run_dir = spooled(tmp_path)
    frames = list(SpoolReader(run_dir.spool).frames())
    write_frames(run_dir.spool, [*frames, *frames])
    with pytest.raises(BenchmarkError, match="an arrival has two first attempts"):
        Wave.load(run_dir.path)
    assert [path.name for path in run_dir.path.iterdir() if "requests" in path.name] == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"metric.rows": [float("inf")]}, "metric.rows is not a number within ±1e"),
        ({"metric.rows": [float("nan")]}, "metric.rows is not a number within ±1e"),
        ({"metric.rows": [-1e308]}, "metric.rows is not a number within ±1e"),
        ({"metric.rows": ["3"]}, "does not have the columns that this tool writes"),
        ({f"metric.m{number}": [1.0] for number in range(4097)}, "4,097 metrics"),
    ],
)
def test_forged_metrics_are_refused(path: Path, columns: dict[str, list[Any]], said: str) -> None:
    table = Records.of([RequestRecord(0, 0, 0, 0, 1)]).table
    for name, values in columns.items():
        table = table.append_column(name, [values])
    pq.write_table(table, path)
    with pytest.raises(BenchmarkError, match=said):
        read_requests(path)


def test_a_column_whose_name_no_metric_has_is_left_alone(path: Path) -> None:
    table = Records.of([RequestRecord(0, 0, 0, 0, 1, metrics={"a": 1.0})]).table
    pq.write_table(table.append_column("metric.a b", [[2.0]]), path)
    assert read_requests(path).records.metrics == ("a",)
