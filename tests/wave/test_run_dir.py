"""The run directory: no two waves share one, no file is half written, a damaged one is said; a wave loads back."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker import Bounds, Wave
from inference_benchmarker.data.json_file import FOREIGN, read_json, write_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import WorkerUse
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.record import NONE, Ledger
from inference_benchmarker.system.files import replace_file
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wave import loading, writer
from inference_benchmarker.wave.files.counts_file import write_counts
from inference_benchmarker.wave.files.requests_file import read_requests, write_requests
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import SpoolReader, SpoolWriter
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.conftest import ROOT
from tests.counted import counted
from tests.hostile import write_frames
from tests.waves import MS, PLAN, closed_plan, facts_of, on_time, spooled, use

if TYPE_CHECKING:
    from pathlib import Path


def test_two_waves_of_one_second_have_two_directories(tmp_path: Path) -> None:
    made = [RunDir.create(tmp_path / "new" / "runs").path.name for _ in range(3)]
    assert len(set(made)) == 3
    stamps = [name.partition("_benchmark") for name in made]
    assert all(len(stamp) == len("20260101T000000Z") for stamp, _, _ in stamps)
    assert {tail for _, _, tail in stamps} <= {"", "-2", "-3"}


def test_where_none_can_be_made_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchmarkError, match=r"file: cannot be written \(.*Give another place with --output-dir\."):
        RunDir.create(tmp_path / "file")


class TestFiles:
    def test_json_comes_back_and_refuses_nan(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        write_json(path, {"schema_version": SCHEMA_VERSION, "größe": 1})
        assert read_json(path)["größe"] == 1
        with pytest.raises(ValueError, match=r"NaN|not JSON compliant"):
            write_json(path, {"schema_version": 1, "x": float("nan")})
        assert read_json(path)["größe"] == 1

    def test_a_full_disk_leaves_the_old_file_and_no_draft(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "x"
        replace_file(path, "old")

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr("inference_benchmarker.system.files.os.fsync", full)
        with pytest.raises(OSError, match="full"):
            replace_file(path, "new")
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("x", "old")]

    def test_a_text_that_is_no_unicode_is_written_all_the_same(self, tmp_path: Path) -> None:
        replace_file(tmp_path / "x", "a\udcffb")
        assert (tmp_path / "x").read_text() == "a\\udcffb"

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "3", "null", "{}", '{"schema_version": null}', '{"schema_version": "x"}', "\udcff"]
    )
    def test_what_is_not_ours_is_said(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "x.json"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(BenchmarkError, match=rf"x\.json: {FOREIGN} \("):
            read_json(path)

    def test_a_newer_schema_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION + 1}))
        with pytest.raises(BenchmarkError, match=r"has schema version 2; this tool knows 1\. Update the tool"):
            read_json(tmp_path / "x.json")


def of_the_version_before(run_dir: RunDir) -> None:
    """Make a stored wave what the version before had written."""
    facts = facts_of(run_dir)
    workers = [{"cpu_s": 0.5, "max_rss_bytes": 1 << 20} for _ in facts["client"]["workers"]]
    facts["client"] = {"workers": workers}
    del facts["calibration"], facts["limited_by"]
    run_dir.summary.write_text(json.dumps(facts))


def spooled_before(parent: Path) -> RunDir:
    """A run directory as the primary of the version before left it, had it been killed before its end."""
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, PLAN.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS)
    for worker in range(PLAN.workers):
        writer = BatchWriter()
        mine = [record for record in on_time(PLAN) if record.worker == worker]
        for record in mine:
            writer.add(record.index, record.due, record.sent, record.done, 0, NONE, writer.labels["a"], 0, 0)
        ledger = Ledger(sent=len(mine), ok=len(mine)).to_json()
        use = {"cpu_s": 0.5, "max_rss_bytes": 1 << 20}
        spool.batch(writer.take({"worker": worker, "at": 2 * NS, "final": True, "ledger": ledger, **use}))
    spool.close()
    return run_dir


class TestVersionBefore:
    def test_its_summary_loads(self, tmp_path: Path) -> None:
        run_dir = spooled(tmp_path)
        first = Wave.load(run_dir.path)
        of_the_version_before(run_dir)
        again = Wave.load(run_dir.path)
        assert list(again.records) == list(first.records)
        assert (again.caps, again.host, again.processes, again.calibration) == ((), None, (), None)
        assert [(use.cpu_s, use.max_rss_bytes, use.loop_delay) for use in again.workers] == [(0.5, 1 << 20, None)] * 2
        assert again.verdict.findings == first.verdict.findings
        assert again.verdict.exit_code == 0
        assert "RESULTS" in again.text()
        writer.save(again, run_dir)
        assert Wave.load(run_dir.path).to_json() == again.to_json()

    def test_its_spool_is_finalised(self, tmp_path: Path) -> None:
        run_dir = spooled_before(tmp_path)
        wave = Wave.load(run_dir.path)
        assert (len(wave.records), wave.lost_workers, wave.primary_lost) == (20, (), True)
        assert (wave.caps, wave.host) == ((), None)
        assert wave.workers == (WorkerUse(), WorkerUse())
        assert not run_dir.spool.exists()
        assert Wave.load(run_dir.path).to_json() == wave.to_json()


class TestWave:
    def test_a_spool_is_finalised_and_the_wave_loads_back_the_same(self, tmp_path: Path) -> None:
        run_dir = spooled(tmp_path)
        first = Wave.load(run_dir.path)
        assert not run_dir.spool.exists()
        again = Wave.load(str(run_dir.path))
        assert list(again.records) == list(first.records)
        assert len(again.records) == 20
        assert again.window == first.window
        assert again.to_json() == first.to_json() == facts_of(run_dir)
        assert again.text() == first.text() == run_dir.report.read_text()
        assert again.verdict.exit_code == 0
        assert again.frame()["index"].tolist() == list(range(20))
        assert len(run_dir.timeline.read_text().splitlines()) == 1 + 3

    @pytest.mark.parametrize(("number", "planned_ns"), [(20, None), (21, 8 * NS)])
    def test_a_closed_loop_that_its_number_ended_has_no_planned_duration(
        self, number: int, planned_ns: int | None, tmp_path: Path
    ) -> None:
        """Its rates would be of time in which nothing was to be sent."""
        run_dir = spooled(tmp_path)
        write_json(run_dir.plan, closed_plan(seconds="8", number=number, workers=2).public_json())
        wave = Wave.load(run_dir.path)
        assert (wave.ledger.sent, wave.window.planned_ns) == (20, planned_ns)
        assert wave.summary.rates.sent == pytest.approx(20 * NS / (planned_ns or wave.window.duration_ns))
        assert Wave.load(run_dir.path).to_json() == wave.to_json()

    def test_a_killed_primary_and_worker_are_reported(self, tmp_path: Path) -> None:
        wave = Wave.load(spooled(tmp_path, silent=1, ended=False).path)
        assert (wave.primary_lost, wave.lost_workers) == (True, (1,))
        assert wave.verdict.exit_code == 3
        assert wave.ledger.balanced

    def test_a_spool_cut_in_its_last_batch_keeps_the_others(self, tmp_path: Path) -> None:
        run_dir = spooled(tmp_path, ended=False)
        os.truncate(run_dir.spool, run_dir.spool.stat().st_size - 1)
        wave = Wave.load(run_dir.path)
        assert [record.index for record in wave.records] == list(range(0, 20, 2))
        assert wave.lost_workers == (1,)
        assert (wave.ledger.scheduled, wave.ledger.sent, wave.ledger.lost) == (20, 10, 10)

    def test_a_wave_that_runs_is_left_alone(self, tmp_path: Path) -> None:
        run_dir = RunDir.create(tmp_path)
        write_json(run_dir.plan, PLAN.public_json())
        spool = SpoolWriter(run_dir.spool)
        with pytest.raises(BenchmarkError, match="its wave is still running"):
            Wave.load(run_dir.path)
        spool.close()
        with pytest.raises(BenchmarkError, match="no request was recorded"):
            Wave.load(run_dir.path)

    def test_what_cannot_be_stored_can_still_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run_dir = spooled(tmp_path)

        def read_only(*_: Any) -> None:
            raise OSError(errno.EROFS, "read-only")

        monkeypatch.setattr("inference_benchmarker.wave.writer.replace_file", read_only)
        assert len(Wave.load(run_dir.path).records) == 20
        assert run_dir.spool.exists()

    def test_an_abandoned_request_does_not_prolong_the_wave(self, tmp_path: Path) -> None:
        run_dir = spooled(tmp_path)
        write_json(run_dir.plan, replace(PLAN, bounds=Bounds(Decimal("2.1"))).public_json())
        spool = SpoolWriter(run_dir.spool)
        writer = BatchWriter()
        writer.add(20, 2_000 * MS, 2_000 * MS, 70 * NS, 0, NONE, 0, 0, 2)
        ledger = Ledger(sent=11, ok=10, abandoned=1).to_json()
        meta = {"worker": 1, "at": 70 * NS, "final": True, "ledger": ledger, "use": use()}
        spool.batch(writer.take(meta))
        spool.close()
        assert Wave.load(run_dir.path).window.duration_ns == 1_920 * MS

    def test_a_damaged_directory_is_said(self, tmp_path: Path) -> None:
        run_dir = spooled(tmp_path)
        Wave.load(run_dir.path)
        summary, requests = run_dir.summary.read_text(), run_dir.requests.read_bytes()
        for text in ("{", '{"schema_version": 1}', '{"schema_version": 1, "window": 3}'):
            run_dir.summary.write_text(text)
            with pytest.raises(BenchmarkError, match=rf"summary\.json: {FOREIGN}"):
                Wave.load(run_dir.path)
        run_dir.summary.write_text(summary)
        run_dir.requests.write_bytes(requests[: len(requests) // 2])
        with pytest.raises(BenchmarkError, match=r"requests\.parquet: cannot be read"):
            Wave.load(run_dir.path)
        pq.write_table(pa.table({"a": [1]}), run_dir.requests)
        with pytest.raises(BenchmarkError, match=r"requests\.parquet: does not have the columns"):
            Wave.load(run_dir.path)

    def test_an_empty_wave_is_stored_and_loaded(self, tmp_path: Path) -> None:
        wave = replace(Wave.load(spooled(tmp_path).path), records=Records.of([]), ledgers=(Ledger(), Ledger()))
        run_dir = RunDir.create(tmp_path)
        save_plan(run_dir, PLAN, {})
        writer.save(wave, run_dir)
        assert len(Wave.load(run_dir.path).records) == 0

    def test_a_terminal_without_the_signs_gets_its_report(self, tmp_path: Path, command: list[str]) -> None:
        done = subprocess.run(
            [*command, "report", str(spooled(tmp_path).path)],
            env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "RESULTS - InferenceBenchmarker" in done.stdout
        assert sys.executable == command[0]


def test_a_file_of_another_wave_is_said_though_it_is_whole(tmp_path: Path) -> None:
    runs = [spooled(tmp_path, unix_s=unix_s) for unix_s in (1_700_000_000, 1_700_000_100)]
    one, other = (Wave.load(run_dir.path) for run_dir in runs)
    assert one.ledger == other.ledger
    runs[0].requests.write_bytes(runs[1].requests.read_bytes())
    with pytest.raises(BenchmarkError, match=r"requests\.parquet: belongs to another wave than the summary\.json"):
        Wave.load(runs[0].path)
    write_counts(runs[1].counts, counted(on_time(PLAN)), one.window.start_unix_ns)
    with pytest.raises(BenchmarkError, match=r"counts\.parquet: belongs to another wave than the summary\.json"):
        Wave.load(runs[1].path)


def test_a_directory_of_runs_is_answered_with_the_latest(tmp_path: Path) -> None:
    for name in ("20260101T000000Z_benchmark", "20260102T000000Z_benchmark"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").touch()
    with pytest.raises(BenchmarkError) as raised:
        RunDir.find(tmp_path)
    last = tmp_path / "20260102T000000Z_benchmark"
    assert str(raised.value) == f"{tmp_path}: is a directory of 2 runs. Give one: {last}."


def test_arrow_reads_the_records_by_itself(tmp_path: Path, parquet_sources: list[object]) -> None:
    write_requests(tmp_path / "requests.parquet", [], 0)
    assert len(read_requests(tmp_path / "requests.parquet").records) == 0
    assert {type(source) for source in parquet_sources} == {pa.OSFile}


def test_a_wave_that_another_command_puts_together_meanwhile_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = spooled(tmp_path)

    def is_locked(path: Path) -> bool:
        monkeypatch.undo()
        Wave.load(run_dir.path)
        assert not path.exists()
        return False

    monkeypatch.setattr(loading, "is_locked", is_locked)
    assert Wave.load(run_dir.path).ledger.sent == 20


def test_a_counted_wave_that_was_cut_off_before_its_first_report_is_read_again(tmp_path: Path) -> None:
    run_dir = spooled(tmp_path, plan=replace(PLAN, records="none"))
    write_frames(run_dir.spool, list(SpoolReader(run_dir.spool).frames())[:1])
    wave = Wave.load(run_dir.path)
    assert not run_dir.spool.exists()
    assert wave.ledger.lost == wave.ledger.scheduled == 20
    assert Wave.load(run_dir.path).to_json() == wave.to_json()


def test_payloads_are_reported_where_arrivals_take_them_in_turn(tmp_path: Path) -> None:
    for number, (reported, expected) in enumerate(
        [({"payloads": 7, "in_turn": True}, 7), ({"payloads": 7, "in_turn": False}, None), ({}, None)]
    ):
        path = tmp_path / f"spool-{number}.bin"
        spool = SpoolWriter(path)
        spool.event(event="start", t0=5, wall_ns=1, caps=[5], **reported)
        spool.close()
        state = SpoolState([path], 1)
        state.read()
        assert state.payloads_in_turn == expected
