"""Commands that are given no run take the last one, and say which; their help fits the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.dispatch import main
from inference_benchmarker.cli.wave.wave import wave_parser
from tests.waves import make_run

if TYPE_CHECKING:
    from pathlib import Path

LAST = "20261123T100001Z_benchmark"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("20261123T100000Z_benchmark", LAST), 1):
        make_run(tmp_path / ".tmp" / name, requests=100 * number)
    return tmp_path / ".tmp"


@pytest.mark.usefixtures("runs")
def test_a_report_is_of_the_last_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    printed = capsys.readouterr()
    assert "Total requests fired: 200" in printed.out
    assert printed.err == f".tmp/{LAST} is the last run.\n"


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
