"""Run directories of older versions: whatever changes since, they load and are reported, compared and plotted.

``recorded_runs/stored`` is all that a wave left behind, ``cut_off`` what one whose processes were killed did.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.words.units import NS
from visualization.figures.reading import read_runs

RECORDED = Path(__file__).parent / "recorded_runs"
NUMBERS = ("window", "ledger", "rates", "latency", "response_time", "ttft", "itl", "tpot", "lag", "tokens", "labels")
FACTS = ("name", "environment", "errors", "warmup", "server_metrics", "client", "verdict", "exit_code")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / "stored", tmp_path / "stored"))


@pytest.fixture
def cut_off(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / "cut_off", tmp_path / "cut_off"))


def test_its_numbers_and_facts_are_what_was_stored(stored: Path) -> None:
    reported, wave = json.loads((stored / "summary.json").read_text()), Wave.load(stored)
    found = wave.to_json()
    for name in ("server_metrics", "labels"):
        rows = zip(found[name], reported[name], strict=True)
        found[name] = [{key: now[key] for key in before} for now, before in rows]  # later versions tell more
    ledger, before = found["ledger"], reported["ledger"]
    found["ledger"] = {key: ledger[key] for key in before}
    found["ledger"]["workers"] = [
        {key: now[key] for key in then} for now, then in zip(ledger["workers"], before["workers"], strict=True)
    ]
    for worker in found["client"]["workers"]:  # what was not looked for then
        connections = worker["connections"]
        assert (connections.pop("aside"), connections.pop("seen")) == (0, None)
        assert worker.pop("answers") == {"hidden": {}, "textless": 0}
    assert {name: found[name] for name in (*NUMBERS, *FACTS)} == {name: reported[name] for name in (*NUMBERS, *FACTS)}
    assert (len(wave.records), len(wave.warmup), wave.plan.workers) == (60, 20, 2)
    assert len(wave.frame()) == 60


def test_what_a_later_version_found_in_it_is_no_concern_of_this_one(stored: Path) -> None:
    fields = json.loads((stored / "summary.json").read_text())
    found = {"code": "of_a_later_version", "severity": "grave", "measured": "", "limit": "", "advice": ""}
    fields |= {"findings": [*fields["findings"], found], "labels": [{**row, "more": 1} for row in fields["labels"]]}
    (stored / "summary.json").write_text(json.dumps({**fields, "environment": {"version": "999"}}))
    assert len(Wave.load(stored).records) == 60


def test_it_is_reported_as_it_was(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(stored)]) == 0
    texts = (re.sub(r"(?<=\d)s\b", " s", text) for text in _texts(stored, capsys))  # seconds had no space before them
    first, now = ([line.split(" (limit ")[0].split() for line in text.splitlines()[:-1]] for text in texts)
    assert now == first  # the advice behind a limit is today's


def test_without_a_terminal_a_report_is_as_wide_as_columns_says(
    stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["report", str(stored)]) == 0
    assert 70 < max(map(len, capsys.readouterr().out.splitlines())) <= 80


def _texts(stored: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    return (stored / "summary.txt").read_text(), capsys.readouterr().out


def test_it_is_compared(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--compare", str(stored), str(stored)]) == 0
    assert "COMPARISON" in capsys.readouterr().out


def test_it_is_plotted_from_all_its_files(stored: Path) -> None:
    (run,) = read_runs([stored], {}, Wave.load, lambda _: None)
    assert (run.problems, run.label, run.verdict) == ((), "recorded", "VALID")
    assert sum(count or 0 for count in run.timeline["sent"]) == 60
    assert set(run.client) == {"host", "primary", "benchmark", "worker_0", "worker_1"}
    assert [row.name for row in run.server] == ["Invocations", "ModelLatency", "NoSuchMetric"]
    assert set(run.tails) == {"latency", "response_time", "ttft", "itl"}
    assert main(["--plot", str(stored), "--plot-format", "html", "--quiet"]) == 0


def test_one_that_was_cut_off_is_finalised(cut_off: Path) -> None:
    wave = Wave.load(cut_off)
    assert (len(wave.records), wave.primary_lost, wave.lost_workers) == (20, True, (1,))
    assert wave.window.duration_ns == 1.92 * NS
    assert not (cut_off / "spool.bin").exists()
    assert Wave.load(cut_off).to_json() == wave.to_json()
