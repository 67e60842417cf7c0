"""Flags of the original tool on the command line of this one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.cli.core.deprecated_flags import in_todays_words
from tests.waves import make_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("given", "todays", "left_out"),
    [
        (["--parent-dir", "runs", "--quiet"], ["--output-dir", "runs", "--quiet"], ""),
        (["--parent-dir=runs"], ["--output-dir=runs"], ""),
        (["--no-postprocess", "--debug"], ["--debug"], "--no-postprocess"),
        (["--theme", "dark", "--quiet"], ["--quiet"], "--theme"),
        (["--theme=dark", "--quiet"], ["--quiet"], "--theme"),
        (["--theme"], [], "--theme"),
        (["--name", "a=b"], ["--name", "a=b"], ""),
    ],
)
def test_they_are_understood_or_left_out_with_a_word(
    given: list[str], todays: list[str], left_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_todays_words(given) == todays
    said = capsys.readouterr().err
    assert said.startswith(f"{left_out} is ignored: ") if left_out else said == ""


def test_a_plot_of_old_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "a", 300)
    fields = json.dumps({"locust": ["Total Requests"]})
    flags = ("--theme", "dark", "--plot-fields", fields, "--plot-format", "html")
    assert main(["--plot", str(tmp_path / "a"), *flags]) == 0
    assert capsys.readouterr().err.startswith("--theme is ignored: the page follows the reader")


def test_a_wave_of_old_is_read_by_todays_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-postprocess", "--parent-dir", "", "--client-rps", "1", "--num-requests", "1"]) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("--no-postprocess is ignored: ")
    assert rest[0] == "benchmark: --output-dir must be a path, not ''."
