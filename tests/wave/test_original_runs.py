"""A run directory of the original tool: every command says what it is, and shows what its aiperf measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.cli import main
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.wave.run_dir import ORIGIN, RunDir
from tests.original import original_run
from tests.waves import make_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return original_run(tmp_path / "20251123_121320_benchmark")


def test_its_aiperf_is_reported(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(old)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("RESULTS — aiperf")
    assert captured.err.startswith(f"{old} {ORIGIN}")
    assert main(["report", str(old), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["aiperf"]["requests"] == 1


def test_its_aiperf_is_plotted_beside_other_runs(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "new", 300)
    out = tmp_path / "out"
    flags = ("--plot-format", "html", "--plot-output-dir", str(out))
    assert main(["--plot", str(old), str(tmp_path / "new"), *flags]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"20251123_121320: This {ORIGIN} The results of its aiperf run are shown."
    page = (out / "benchmark_plots.html").read_text(encoding="utf-8")
    assert '"source":"aiperf"' in page
    assert "UNREADABLE" not in page


def test_its_aiperf_is_plotted_by_the_fields_of_old(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.dumps({"aiperf": ["Time to First Token (ms)", "Latency (ms)", "Server RPS (req/s)"]})
    assert main(["--plot", str(old), "--plot-fields", fields, "--plot-format", "html", "--theme", "dark"]) == 0
    page = (old / "benchmark_plots.html").read_text(encoding="utf-8")
    assert all(f'"title":"{title}"' in page for title in ("Time to First Token", "Latency", "Server RPS"))
    assert '"value":3.5' in page


def test_without_aiperf_there_is_nothing_to_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = original_run(tmp_path / "old", aiperf=False)
    for arguments in (["report", str(old)], ["--plot", str(old)]):
        assert main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"benchmark: {old} {ORIGIN} Its numbers are in locust_stats/locust_stats.csv")


@pytest.mark.parametrize("read", [Wave.load, RunDir.find])
def test_as_a_wave_it_is_reported_what_it_is(read: Callable[[Path], object], old: Path) -> None:
    with pytest.raises(BenchmarkError, match="is a run of the original InferenceBenchmarker"):
        read(old)


def test_it_cannot_be_compared(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "new", 300)
    assert main(["--compare", str(old), str(tmp_path / "new")]) == 2
    assert ORIGIN in capsys.readouterr().err


def test_a_run_of_today_is_none_of_the_originals_whatever_lies_in_it(tmp_path: Path) -> None:
    make_run(tmp_path / "new", 300)
    (tmp_path / "new" / "wave_window.txt").touch()
    assert not RunDir(tmp_path / "new").is_of_the_original
    (tmp_path / "other" / "locust_stats").mkdir(parents=True)
    assert not RunDir(tmp_path / "other").is_of_the_original
