"""Run directories of older versions: whatever changes since, they load and are reported, compared and plotted.

``recorded_runs/stored`` is all that a wave left behind, ``cut_off`` what one whose processes were killed did. Of rules
that are others today, ``hiccup`` was judged INVALID for an arrival that was late, ``sessions_raised`` VALID.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.verdict.verdict import RULES
from inference_benchmarker.wave.stored_verdict import JUDGED_BEFORE
from inference_benchmarker.words.units import NS
from tests.waves import make_run
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
    now = [words for words in now if words[:3] != ["A", "request's", "latency"]]  # a line that reports have since
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


@pytest.mark.parametrize(
    ("name", "word", "code"),
    [("hiccup", "INVALID, client-limited: schedule_lag", 3), ("sessions_raised", "VALID: 120 of 180", 0)],
)
def test_a_run_that_other_rules_judged_keeps_its_verdict(
    name: str, word: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(shutil.copytree(RECORDED / name, tmp_path / "run"))
    assert main(["report", run]) == code
    said = capsys.readouterr()
    assert said.out.startswith(word)
    assert said.err.count(f"{run}: {JUDGED_BEFORE}.") == 1
    assert main(["report", run, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["exit_code"] == code
    assert main(["compare", run, run]) in (0, 3)
    assert f"{run}: {JUDGED_BEFORE}." in capsys.readouterr().err
    assert main(["plot", run, "--plot-format", "html"]) == 0
    assert capsys.readouterr().err.count(f"{run}: {JUDGED_BEFORE}.") == 1
    assert re.split("[:,]", word)[0] in (tmp_path / "run" / "benchmark_plots.html").read_text()
    assert main(["report", run, "--format", "csv"]) == code
    assert f"{run}: {JUDGED_BEFORE}." in capsys.readouterr().err


def test_with_metrics_that_are_collected_again_the_rules_of_today_judge(tmp_path: Path) -> None:
    wave = Wave.load(shutil.copytree(RECORDED / "hiccup", tmp_path / "run"))
    assert (wave.verdict.word, wave.with_server_metrics(()).verdict.word) == ("INVALID", "VALID")
    assert wave.with_server_metrics(()).verdict.judged_by == RULES


def test_what_newer_rules_found_is_shown_as_they_have_it(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads((stored / "summary.json").read_text())
    found = {"code": "of_a_later_version", "severity": "invalid", "measured": "a\x1b[31m", "limit": "b", "advice": "c"}
    fields |= {"judged_by": RULES + 1, "verdict": "INVALID", "exit_code": 3, "findings": [found]}
    (stored / "summary.json").write_text(json.dumps(fields))
    assert main(["report", str(stored)]) == 3
    said = capsys.readouterr()
    assert said.out.startswith("INVALID: of_a_later_version a [31m (limit b)")
    assert f"{stored}: was judged by rules {RULES + 1} of a newer version, and this one has {RULES}" in said.err


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"verdict": "INVALID", "exit_code": 3}, "INVALID with exit code 3, and its findings make it VALID with 0"),
        ({"exit_code": 1}, "VALID with exit code 1, and its findings make it VALID with 0"),
        ({"findings": [{"code": "x", "severity": "invalid"}]}, "missing required field `measured`"),
        ({"judged_by": "1"}, "judged_by is a str"),
    ],
)
def test_an_earlier_verdict_that_contradicts_itself_is_refused(
    changes: dict[str, object], expected: str, stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = json.loads((stored / "summary.json").read_text())
    (stored / "summary.json").write_text(json.dumps({**fields, **changes}))
    assert main(["report", str(stored)]) == 2
    assert expected in capsys.readouterr().err


def test_no_rules_keep_a_success_rate_that_the_requests_miss(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a digest, a run that names no rules was VALID with exit code 0 above a success rate that failed."""
    make_run(tmp_path / "run", 180, failed=60)
    fields = json.loads((tmp_path / "run" / "summary.json").read_text())
    kept = {name: value for name, value in fields.items() if name not in ("digest", "files", "judged_by")}
    kept |= {"verdict": "VALID", "exit_code": 0, "findings": []}
    (tmp_path / "run" / "summary.json").write_text(json.dumps(kept))
    assert main(["report", str(tmp_path / "run")]) == 2
    assert "too few succeeded" in capsys.readouterr().err
