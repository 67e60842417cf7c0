"""Temporary folders go with their process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from inference_benchmarker.engine.processes.scratch import place_of_sockets, scratch_folder
from tests.bench import ROOT

HOLDING = """
import sys, time
from inference_benchmarker.engine.processes.scratch import scratch_folder
with scratch_folder("benchmark_test_", if_killed=["touch", sys.argv[1]]) as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").write_text("x")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_it_goes_with_the_block_whatever_ends_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with suppress(ValueError), scratch_folder("benchmark_test_", if_killed=["touch", str(run)]) as folder:
        (folder / "file").write_text("x")
        raise ValueError
    assert not folder.exists()
    assert not run.exists()


@pytest.mark.parametrize(
    ("place", "can_be"),
    [("/srv", True), ("/srv/run_1/x-y", True), ("/" + 56 * "a", False), ("/srv/a b", False), ("/srv/%h:2", False)],
)
def test_sockets_are_not_where_their_paths_are_too_long_or_ssh_reads_them_otherwise(
    monkeypatch: pytest.MonkeyPatch, place: str, can_be: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", place)
    assert (place_of_sockets() is None) == can_be


@pytest.mark.process
def test_it_goes_with_a_process_that_is_killed_and_what_is_to_be_run_then_is_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", HOLDING, run], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert (folder / "deep" / "file").exists()
    assert not run.exists()
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 30
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert run.exists()
