"""Commands that are given no run take the last one, and say which; their help fits the terminal."""

from __future__ import annotations

import json
import sys
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.core.last_run import OF_ANSWERS
from inference_benchmarker.cli.dispatch import main
from inference_benchmarker.cli.wave.wave import wave_parser
from inference_benchmarker.wave.run_folders import latest_runs
from tests.waves import make_run

if TYPE_CHECKING:
    from pathlib import Path

FIRST = "20261123T100000Z_benchmark"
LAST = "20261123T100001Z_benchmark"


def begin(run: Path, start: str) -> None:
    """Take a run's own name from its plan, and let its wave begin then."""
    plan, summary = (json.loads((run / name).read_text()) for name in ("plan.json", "summary.json"))
    del plan["environment"]
    summary["window"]["start"] = start
    for name, data in (("plan.json", plan), ("summary.json", summary)):
        (run / name).write_text(json.dumps(data))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate((FIRST, LAST), 1):
        make_run(tmp_path / ".tmp" / name, requests=100 * number)
    return tmp_path / ".tmp"


@pytest.mark.usefixtures("runs")
def test_a_report_is_of_the_last_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    printed = capsys.readouterr()
    assert "Total requests fired: 200" in printed.out
    assert printed.err == f".tmp/{LAST} is the last run.\n"


@pytest.mark.parametrize("name", ["baseline", "zz", "0", "20261123T100002_mine", "20269999T999999Z_benchmark"])
@pytest.mark.parametrize("keeps_its_name_in_its_plan", [True, False])
def test_a_copy_of_an_earlier_run_is_not_the_last_one(
    runs: Path, capsys: pytest.CaptureFixture[str], name: str, *, keeps_its_name_in_its_plan: bool
) -> None:
    if not keeps_its_name_in_its_plan:  # as an earlier version stored it: then the start of its wave counts
        begin(runs / FIRST, "2026-11-23T10:00:00.500Z")
    copytree(runs / FIRST, runs / name)
    found = latest_runs(runs, 2)
    assert [(each.path.name, each.by) for each in found] == [(FIRST, ""), (LAST, "")]
    assert main(["report"]) == 0
    assert capsys.readouterr().err == f".tmp/{LAST} is the last run.\n"


def test_a_run_with_another_name_is_the_last_one_by_its_start(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (runs / LAST).rename(runs / "0 renamed")
    assert main(["compare"]) == 0
    start = "0 renamed began at 2026-11-23 10:00:01 UTC by plan.json"
    text = f"The last two runs: .tmp/{FIRST} and .tmp/0 renamed ({start}).\n"
    assert capsys.readouterr().err.startswith(text)


def test_the_tenth_run_of_a_second_is_after_the_second_one(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (2, 10):
        make_run(runs / f"{LAST}-{number}", requests=number)
    assert main(["report"]) == 0
    assert capsys.readouterr().err == f".tmp/{LAST}-10 is the last run.\n"


def test_a_run_that_began_later_than_now_is_named(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(runs / "29991231T000000Z_benchmark", requests=1)
    assert main(["report"]) == 0
    assert "_benchmark began later than now: was this clock set back?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "by"),
    [
        ({"plan.json": "{", "summary.json": "[]"}, "the clock of its plan.json"),
        ({"plan.json": '{"schema_version": 1, "environment": {"run": 5}}'}, "the clock of its plan.json"),
        ({"ab.json": "{}", "A/20261123T100001Z_benchmark/x": ""}, "the first wave in it"),
        ({"capacity.json": "{}"}, "the clock of its capacity.json"),
    ],
)
def test_what_says_nothing_of_its_start_is_found_by_what_is_in_it_or_its_clock(
    tmp_path: Path, files: dict[str, str], by: str
) -> None:
    for name, text in files.items():
        file = tmp_path / "mine" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (found,) = latest_runs(tmp_path, 1, *OF_ANSWERS)
    assert (found.path.name, found.by) == ("mine", by)


def test_a_plot_is_of_the_last_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "--plot-format", "html"]) == 0
    assert f".tmp/{LAST} is the last run." in capsys.readouterr().err
    assert (runs / LAST / "benchmark_plots.html").is_file()


@pytest.mark.parametrize("command", ["report", "plot"])
def test_without_any_run_it_is_said_what_to_give(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command]) == 2
    reported = capsys.readouterr().err
    assert "There is no run in .tmp" in reported
    assert f"`benchmark {command} DIR`" in reported


@pytest.mark.parametrize(("columns", "most"), [("80", 80), ("60", 60), ("300", 100)])
def test_help_on_flags_fits_and_divides_no_word(columns: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    text = wave_parser().format_help()
    flags = text.partition("\nendpoint:")[2].partition("other commands")[0].splitlines()
    assert max(map(len, flags)) <= most
    assert not any(line.endswith("-") for line in flags if not line.endswith(" -"))
