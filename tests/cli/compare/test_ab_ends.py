"""``benchmark ab`` whose waves, or whose disk, come to an end: what was measured by then is reported all the same."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import Wave, cli
from inference_benchmarker.cli.capacity.searching import check_one
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.engine.endpoint.source import describe_error
from inference_benchmarker.errors import BenchmarkError, LostProcessError
from inference_benchmarker.words.redact import HEADERS
from tests.waves import PLAN, drawn, stored, wave

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

FILE = """
def invoke_factory(endpoint_name=None):
    return print

def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
COMMAND = ("ab", "old.py", "new.py", "--client-rps", "5")


@pytest.fixture(autouse=True)
def waves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Each side has answered a request, and between them they have four waves; where those are stored."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HEADERS, "")
    for name in ("old.py", "new.py"):
        Path(name).write_text(FILE)
    places: list[Path] = []

    def run_wave(plan: WavePlan, *_: object, **__: object) -> Wave:
        if len(places) == 4:
            raise BenchmarkError("new.py: worker 0 ended while it loaded it.")
        places.append(plan.output_dir)
        return Wave.load(stored(wave(drawn(len(places), seconds=2)), plan.output_dir).path)

    monkeypatch.setattr("inference_benchmarker.cli.compare.ab.check_one", lambda _: None)
    monkeypatch.setattr("inference_benchmarker.engine.launch.run_wave", run_wave)
    return places


def stored_code() -> int:
    (file,) = Path().glob(".tmp/*_ab/ab.json")
    code: int = json.loads(file.read_text())["exit_code"]
    return code


def test_a_wave_that_cannot_be_sent_leaves_those_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*COMMAND]) == stored_code() == 3
    out, err = capsys.readouterr()
    assert "A: old.py, 2 runs: VALID" in out
    assert ": new.py: worker 0 ended while it loaded it: the comparison uses what was measured by then." in err


def test_nor_does_one_whose_primary_is_killed(
    waves: list[Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inference_benchmarker.engine import launch

    run_wave = launch.run_wave

    def killed(plan: WavePlan, *more: Any, **named: Any) -> Wave:
        if len(waves) == 2:
            raise LostProcessError("the primary process ended before the wave began", "Killed\nKilled")
        return run_wave(plan, *more, **named)

    monkeypatch.setattr(launch, "run_wave", killed)
    assert cli.main([*COMMAND]) == stored_code() == 3
    out, err = capsys.readouterr()
    assert "2 of 10 waves counted" in out
    assert "the primary process ended before the wave began: the comparison uses" in err


def test_nor_does_one_that_could_only_be_stored_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [Wave.load(stored(wave(drawn(seed, seconds=2)), tmp_path / f"elsewhere {seed}").path) for seed in range(2)]
    from inference_benchmarker.engine import launch

    run_wave = launch.run_wave
    monkeypatch.setattr(launch, "run_wave", lambda *given, **more: kept.pop() if full() else run_wave(*given, **more))

    def full() -> bool:
        return len(list(Path().glob(".tmp/*_ab/*/*"))) == 4

    assert cli.main([*COMMAND]) == stored_code() == 3
    out, err = capsys.readouterr()
    assert "A: old.py, 2 runs: VALID" in out
    assert "a wave could not be stored in it. Give another place with --output-dir" in err


@pytest.mark.parametrize(("written", "expected"), [(0, "so nothing can be compared"), (1, "the comparison uses")])
def test_a_disk_that_fills_half_way_ends_it_and_keeps_what_was_measured(
    waves: list[Path], written: int, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_json(*_: Any) -> str:
        if len(waves) > written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return ""

    monkeypatch.setattr("visualization.comparison.ab.write_with_digest", write_json)
    assert cli.main([*COMMAND, "--junit", "c.xml", "--markdown", "c.md"]) == 3
    out, err = capsys.readouterr()
    assert len(waves) == written + 1
    assert expected in err
    assert ("INVALID" in Path("c.md").read_text(), "<error " in Path("c.xml").read_text()) == (True, True)
    assert "cannot be written (No space left on device)" in err
    assert ("A: old.py" in out, "B: new.py" in out) == (bool(written), bool(written))
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["boom\n", "boom.\n", "a line\nboom", "boom"])
def test_an_error_that_ends_with_a_line_is_reported_in_one(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(ok=False, how=None, error_text=text)
    monkeypatch.setattr("inference_benchmarker.engine.check.send_one", lambda *_: failed)
    with pytest.raises(BenchmarkError) as found:
        check_one(replace(PLAN, factories_file=Path("old.py")))
    assert str(found.value) == f"old.py: the first request to it failed: {' '.join(text.split()).rstrip('.')}."
    shown = str(describe_error(Path("old.py"), "importing it", ValueError(text)))
    assert shown.splitlines()[-1].endswith("boom.")


def test_an_outcome_that_cannot_be_stored_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write_json(path: Path, data: dict[str, Any]) -> None:
        if data["exit_code"] is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_with_digest(path, data)

    monkeypatch.setattr("visualization.comparison.ab.write_with_digest", write_json)
    flags = ("--repeats", "2", "--max-regression", "p50=900%", "--junit", "c.xml", "--markdown", "c.md")
    assert cli.main([*COMMAND, *flags]) == 3
    out, err = capsys.readouterr()
    assert "A: old.py, 2 runs: VALID" in out
    assert out.startswith("INVALID (not stored: ")
    assert "**INVALID (not stored: " in Path("c.md").read_text()
    assert "PASSED" not in out + Path("c.md").read_text()
    assert '<error message="INVALID (not stored: ' in Path("c.xml").read_text()
    assert "No space left on device" in err
    (folder,) = Path().glob(".tmp/*_ab")
    assert cli.main(["report", str(folder)]) == 3, "as the command did"
    out, err = capsys.readouterr()
    assert out.startswith("INVALID (not stored: ")
    assert "PASSED" not in out
