"""A run directory that somebody made to do harm: nothing outside is written, nothing hangs, one sentence says what."""

from __future__ import annotations

import json
import shutil
import stat
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.data.json_file import FOREIGN, read_json, write_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.records.batch import joined_batch, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.columns import SCHEMA
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.record import NONE, Ledger
from inference_benchmarker.system.files import replace_file
from inference_benchmarker.system.given import read_given
from inference_benchmarker.wave.run_dir import RunDir, make_stamped_folder
from inference_benchmarker.wave.spool.spool import BATCH, EVENT, SpoolReader
from inference_benchmarker.wave.writer import save_server_metrics
from inference_benchmarker.words.units import MAX_SECONDS, NS
from server_capacity.metrics.config import load_config
from tests.hostile import (
    BYSTANDER,
    DISGUISES,
    ESCAPES,
    TEXTS,
    Fuzz,
    as_link,
    disguise,
    write_frames,
)
from tests.waves import PLAN, make_run, spooled, use

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_whatever_is_done_to_a_run_directory_it_is_shown_or_said_in_a_sentence(tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path)
    wrong = [f"{reported}\n{problem}" for reported, problem in map(fuzz.attempt, range(25)) if problem is not None]
    assert wrong == []
    assert fuzz.codes[0] > 2
    assert fuzz.codes[2] > 2


@pytest.fixture
def bystander(tmp_path: Path) -> Path:
    path = tmp_path / "bystander"
    path.write_bytes(BYSTANDER)
    return path


def said_by(capsys: pytest.CaptureFixture[str]) -> list[str]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize("how", DISGUISES, ids=lambda how: how.__name__)
class TestDisguises:
    @pytest.mark.parametrize("name", ["plan.json", "summary.json", "requests.parquet", "spool.bin"])
    def test_what_is_no_file_is_said(
        self,
        how: Callable[[Path, Path], None],
        name: str,
        tmp_path: Path,
        bystander: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        run = spooled(tmp_path).path
        if name != "spool.bin":
            Wave.load(run)
        disguise(run / name, how, bystander)
        assert main(["report", str(run)]) == 2
        (line,) = said_by(capsys)
        assert line.startswith(f"benchmark: {run}")

    def test_no_draft_and_no_target_leads_outside(
        self, how: Callable[[Path, Path], None], tmp_path: Path, bystander: Path
    ) -> None:
        run = spooled(tmp_path)
        files = (run.requests, run.summary, run.report, run.timeline)
        for number, path in enumerate(files):
            disguise(path.with_name(f"{path.name}.part"), how, bystander)
            if number:  # a summary that is there is not made
                disguise(path, how, bystander)
        assert len(Wave.load(run.path).records) == 20
        assert bystander.read_bytes() == BYSTANDER


def test_a_page_takes_the_place_of_a_link(tmp_path: Path, bystander: Path) -> None:
    make_run(tmp_path / "run", 200)
    for name in ("benchmark_plots.html", "benchmark_plots.html.part"):
        disguise(tmp_path / "run" / name, as_link, bystander)
    assert main(["--plot", str(tmp_path / "run"), "--plot-format", "html"]) == 0
    assert bystander.read_bytes() == BYSTANDER
    assert not (tmp_path / "run" / "benchmark_plots.html").is_symlink()


@pytest.mark.parametrize("name", ["logs", "locust_stats", "aiperf"])
def test_no_folder_leads_outside(name: str, tmp_path: Path) -> None:
    run, outside = spooled(tmp_path), tmp_path / "outside"
    outside.mkdir()
    for file in ("x.log", "x.csv", "summary.json"):
        (outside / file).write_text("password=hunter22222\n")
    shutil.rmtree(run.path / name, ignore_errors=True)
    (run.path / name).symlink_to(outside)
    assert main(["report", str(run.path)]) == 0
    assert main(["--plot", str(run.path), "--plot-format", "html"]) == 0
    assert {path.read_text() for path in outside.iterdir()} == {"password=hunter22222\n"}
    assert len(list(outside.iterdir())) == 3


def test_the_run_directory_itself_may_lie_behind_a_link(tmp_path: Path) -> None:
    run = spooled(tmp_path / "real")
    (tmp_path / "link").symlink_to(run.path)
    assert len(Wave.load(tmp_path / "link").records) == 20
    assert run.summary.is_file()


def test_a_plot_shows_the_other_runs_and_says_which_is_damaged(
    tmp_path: Path, bystander: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "good", 200)
    make_run(tmp_path / "bad", 200)
    disguise(tmp_path / "bad" / "summary.json", as_link, bystander)
    (tmp_path / "bad" / "plan.json").write_text(TEXTS[7])
    assert main(["--plot", str(tmp_path / "good"), str(tmp_path / "bad"), "--plot-format", "html"]) == 2
    page = (tmp_path / "good" / "benchmark_plots.html").read_text(encoding="utf-8")
    assert "UNREADABLE" in page
    assert '"label":"good"' in page
    said = capsys.readouterr().err
    assert f"bad: summary.json: {FOREIGN} (is a symbolic link, not a file)." in said
    assert f"bad: plan.json: {FOREIGN} (is nested too deeply)." in said


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_json_that_is_none_of_ours_is_one_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    if text == '{"schema_version": 1}':
        assert read_json(tmp_path / "x.json") == {"schema_version": 1}
        return
    with pytest.raises(BenchmarkError) as raised:
        read_json(tmp_path / "x.json")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < len(str(tmp_path)) + 300
    with pytest.raises(BenchmarkError):
        load_config(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"workers": 10**9}, "--workers must be from 1 to 1,000"),
        ({"bounds": {"duration_s": None, "num_requests": 10**18}}, "--num-requests must be from 1"),
        ({"drain_timeout_s": "1e308"}, "--drain-timeout must be from 0"),
        ({"drain_timeout_s": "NaN"}, "--drain-timeout must be from 0"),
        ({"load": {"kind": "open", "rate": "1e-300", "arrivals": "constant"}}, "--client-rps must be at least"),
        ({"load": {"kind": "open", "rate": "1" * 10_000, "arrivals": "constant"}}, "a number has 10,000 digits"),
        ({"load": {"kind": "closed", "concurrency": "x" * 10**6}}, "plan.load.concurrency is a str"),
        ({"seed": 10**30}, "plan.seed is the number 1e+30"),
        ({"success_threshold": "x"}, "plan.success_threshold is a str"),
        ({"slos": ["p99<1s" * 1000]}, "--slo 'p99<1sp99<1s"),
    ],
)
def test_a_plan_that_no_wave_can_have_is_said(changes: dict[str, Any], expected: str, tmp_path: Path) -> None:
    run = spooled(tmp_path)
    run.plan.write_text(json.dumps({**read_json(run.plan), **changes}))
    with pytest.raises(BenchmarkError) as raised:
        Wave.load(run.path)
    assert expected in str(raised.value)
    assert len(str(raised.value)) < len(str(run.path)) + 400


class TestSpools:
    def forged(self, parent: Path, frames: list[tuple[bytes, bytes]]) -> RunDir:
        """The spool of an honest wave, and frames after it."""
        run = spooled(parent, ended=False)
        write_frames(run.spool, [*SpoolReader(run.spool).frames(), *frames])
        return run

    def batch(self, *row: int, **meta: Any) -> tuple[bytes, bytes]:
        writer = BatchWriter()
        if row:
            writer.add(*row)
            writer._forget_rows()  # packed, and not counted by the feed
            writer.feed.rows.clear()
        ledger = Ledger(sent=11, ok=11).to_json()
        meta = {"worker": 1, "at": NS, "final": True, "ledger": ledger, "use": use(), **meta}
        data, *sections = split_batch(writer.take(meta))
        return BATCH, joined_batch({**data, **meta}, *sections)

    @pytest.mark.parametrize(
        ("row", "meta", "expected"),
        [
            ((), {"worker": 99}, "there is no worker 99 among 2"),
            ((), {"worker": -1}, "there is no worker -1 among 2"),
            ((), {"worker": "1"}, "batch.worker is a str"),
            ((), {"ledger": {**Ledger().to_json(), "sent": -5}}, "ledger.sent is -5"),
            ((), {"ledger": 3}, "batch.ledger is the number 3"),
            ((), {"use": {"delays_us": ["x"]}}, "delays_us[0] is a str"),
            ((2_000, 0, 0, NS, 0, NONE, 0, 0, 0), {}, "arrival 2,000 is not one of the 20 that were planned"),
            ((-1, 0, 0, NS, 0, NONE, 0, 0, 0), {}, "requests of a warm-up, but none was planned"),
            ((1, 0, 0, (1 << 63) - 1, 0, NONE, 0, 0, 0), {}, "window.duration_ns is 9.223e+09 s"),
            ((1, 0, 0, NS, 0, NONE, 0, 0, 0), {}, "an arrival has two first attempts"),
            ((1, 0, 0, NS, 0, NONE, 0, 0, 0), {"attempts": [[0, 1]] * 2}, "2 attempts of 1 requests"),
            ((1, 0, 0, NS, 0, NONE, 999, 0, 0), {}, "out of bounds"),
            ((1, 0, 0, NS, 0, NONE, 0, 0, 0x81), {}, "cannot be read"),
        ],
    )
    def test_a_forged_batch_is_said(
        self, row: tuple[int, ...], meta: dict[str, Any], expected: str, tmp_path: Path
    ) -> None:
        run = self.forged(tmp_path, [self.batch(*row, **meta)])
        with pytest.raises(BenchmarkError, match=r"spool\.bin: cannot be read") as raised:
            Wave.load(run.path)
        assert expected in str(raised.value)
        assert run.spool.is_file()

    @pytest.mark.parametrize("feed", [[{"s": 1, "n": stage} for stage in range(50_000)], [{"s": 0}], "x"])
    def test_a_forged_feed_costs_nothing(self, feed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def merge(*_: object) -> None:
            raise AssertionError("what is stored is computed from the rows")

        monkeypatch.setattr(Feed, "merge", merge)
        batch = self.batch(feed=feed, ledger=Ledger(sent=10, ok=10).to_json())
        assert len(Wave.load(self.forged(tmp_path, [batch]).path).records) == 20

    @pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 100_000, b'{"event": "lost", "worker": 7, "at": 0}'])
    def test_a_forged_event_is_said(self, data: bytes, tmp_path: Path) -> None:
        with pytest.raises(BenchmarkError, match=r"spool\.bin: cannot be read"):
            Wave.load(self.forged(tmp_path, [(EVENT, data)]).path)

    def test_a_poisson_wave_of_a_month_is_counted_to_its_last_report(self, tmp_path: Path) -> None:
        load, bounds = OpenLoop(Decimal(100_000), "poisson"), Bounds(Decimal(MAX_SECONDS))
        run = spooled(tmp_path, ended=False)
        write_json(run.plan, replace(PLAN, load=load, bounds=bounds).public_json())
        wave = Wave.load(run.path)
        assert wave.verdict.exit_code == 3
        assert wave.ledger.scheduled == pytest.approx(2 * 100_000, rel=0.02)
        assert wave.ledger.balanced
        late = self.batch(1, 0, 0, NS, 0, NONE, 0, 0, 0, at=MAX_SECONDS * NS)
        run = self.forged(tmp_path, [late])
        write_json(run.plan, replace(PLAN, load=load, bounds=bounds).public_json())
        with pytest.raises(BenchmarkError, match="arrivals were due, and 21 requests were reported"):
            Wave.load(run.path)

    def test_a_stored_poisson_wave_of_a_month_with_few_arrivals_is_refused_at_once(self, tmp_path: Path) -> None:
        run = spooled(tmp_path)
        Wave.load(run.path)
        load, bounds = OpenLoop(Decimal(100), "poisson"), Bounds(Decimal(MAX_SECONDS))
        write_json(run.plan, replace(PLAN, load=load, bounds=bounds).public_json())
        fields = json.loads(run.summary.read_text())
        fields["window"] |= {"planned_s": MAX_SECONDS, "stopped_at_s": None}
        write_json(run.summary, fields)
        with pytest.raises(BenchmarkError, match="arrivals were due, and 20 scheduled"):
            Wave.load(run.path)

    def test_a_frame_that_is_longer_than_any_is_not_read(self, tmp_path: Path) -> None:
        run = spooled(tmp_path)
        size = run.spool.stat().st_size
        with run.spool.open("ab") as file:
            file.write(b"IBS1B" + (0xFFFFFFF0).to_bytes(4, "little") + bytes(4))
            file.truncate(size + (1 << 33))
        assert len(Wave.load(run.path).records) == 20


class TestParquet:
    def table(self, rows: int) -> pa.Table:
        columns = {field.name: pa.nulls(rows, field.type) for field in SCHEMA}
        zeros = pa.array(np.zeros(rows, np.int64))
        columns |= {field.name: zeros.cast(field.type) for field in SCHEMA if not field.nullable}
        return pa.table(columns, schema=SCHEMA)

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [(1_000_000, r"[\d,]+ bytes do not hold 1,000,000 requests"), (10, "outcome is missing")],
    )
    def test_what_would_unpack_to_far_more_is_said(self, rows: int, expected: str, tmp_path: Path) -> None:
        run = spooled(tmp_path)
        Wave.load(run.path)
        pq.write_table(self.table(rows), run.requests, compression="zstd")
        with pytest.raises(BenchmarkError, match=rf"requests\.parquet: cannot be read .*{expected}"):
            Wave.load(run.path)


class TestOwner:
    def test_a_run_directory_is_for_its_owner_alone(self, tmp_path: Path) -> None:
        run = spooled(tmp_path / "runs")
        assert stat.S_IMODE(run.spool.stat().st_mode) == 0o600
        Wave.load(run.path)
        folders = [run.path, run.logs, make_stamped_folder(tmp_path, "capacity")]
        assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
        files = [path for path in run.path.iterdir() if path.is_file()]
        assert len(files) == 5
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}

    def test_no_draft_is_left_of_what_fails(self, tmp_path: Path) -> None:
        (tmp_path / "x").mkdir()
        with pytest.raises(OSError, match="directory"):
            replace_file(tmp_path / "x", "text")
        assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("how", [how for how in DISGUISES if how is not as_link], ids=lambda how: how.__name__)
def test_a_file_that_was_named_and_is_none_is_said(
    how: Callable[[Path, Path], None], tmp_path: Path, bystander: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "run", 50)
    disguise(tmp_path / "x.json", how, bystander)
    for arguments in (
        ["report", str(tmp_path / "run"), "--endpoint-config", str(tmp_path / "x.json")],
        ["--plot", str(tmp_path / "run"), "--plot-metadata", str(tmp_path / "x.json")],
        ["--config", str(tmp_path / "x.json")],
    ):
        assert main(arguments) == 2
        assert all(line.startswith("benchmark: ") for line in said_by(capsys))


def test_a_file_that_was_named_may_be_a_link(tmp_path: Path, bystander: Path) -> None:
    (tmp_path / "link").symlink_to(bystander)
    assert read_given(tmp_path / "link", 100) == BYSTANDER


class TestPlain:
    """No name, answer or error of somebody else's colours a terminal, begins a line or becomes mark-up."""

    @pytest.fixture
    def run(self, tmp_path: Path) -> Path:
        run = spooled(tmp_path, plan=replace(PLAN, name=ESCAPES.replace("\ud800", "")))
        frames = list(SpoolReader(run.spool).frames())
        writer = BatchWriter()
        error = type("Error", (Exception,), {"_benchmark_detail": ESCAPES})(ESCAPES)
        label = writer.labels["label" + ESCAPES]
        writer.errors["x"]
        number, _ = writer.error(error)
        writer.add(19, 0, 0, NS, 0, NONE, label, number, 1)
        ledger = Ledger(sent=1, failed=1).to_json()
        late = {"worker": 1, "at": NS, "final": True, "ledger": ledger, "use": use()}
        honest = [frame for frame in frames if not _is_of_worker(frame, 1)]
        write_frames(run.spool, [*honest, (BATCH, writer.take(late))])
        wave = Wave.load(run.path)
        metric = ServerMetric(
            "prometheus",
            "name" + ESCAPES,
            {"Average" + ESCAPES: 3.0},
            unit=ESCAPES,
            dimensions={"d" + ESCAPES: ESCAPES},
            reason=ESCAPES,
            series_of="Average" + ESCAPES,
            series=((1.7e9, 1.0), (1.7e9 + 1, 2.0)),
        )
        save_server_metrics(wave.with_server_metrics([metric, replace(metric, dimensions={})]))
        return run.path

    def check(self, text: str) -> None:
        assert "alert(1)" in text
        assert all(c.isprintable() or c in "\n\t" for c in text)
        assert not [line for line in text.splitlines()[:-2] if line.startswith("VALID")]

    def test_in_the_report(self, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["report", str(run)]) in (0, 1, 3)
        self.check(capsys.readouterr().out)
        self.check((run / "summary.txt").read_text())

    def test_in_the_comparison(self, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        markdown, junit = tmp_path / "c.md", tmp_path / "c.xml"
        assert main(["--compare", str(run), str(run), "--markdown", str(markdown), "--junit", str(junit)]) in (0, 3)
        self.check(capsys.readouterr().out)
        self.check(markdown.read_text())
        assert "<script>" not in junit.read_text()

    def test_in_the_page(self, run: Path, tmp_path: Path) -> None:
        metadata = json.dumps({run.name: {"legend": ESCAPES, "key" + ESCAPES: ESCAPES}})
        out = tmp_path / "out"
        flags = ["--plot-metadata", metadata, "--plot-output-dir", str(out), "--plot-format", "html"]
        assert main(["--plot", str(run), *flags]) == 0
        for path in out.iterdir():
            text = path.read_text(encoding="utf-8")
            assert "<script>alert" not in text
            assert all(c.isprintable() or c in "\n\t" for c in text)


def _is_of_worker(frame: tuple[bytes, bytes], number: int) -> bool:
    kind, data = frame
    return kind == BATCH and f'"worker":{number},'.encode() in data
