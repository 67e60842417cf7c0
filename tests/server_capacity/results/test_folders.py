"""What `report` says of a folder whose answer is not there, or is no file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.report import report
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.wave.run_dir import RunDir
from server_capacity.results import capacity_folder
from server_capacity.results.types.result_status import NOT_REMOVED
from tests.capacities import searched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = {
    "capacity": "capacity.json",
    "ranking": "ranking.json",
    "proof": "proof.json",
    "plan": "fleet_plan.json",
    "ab": "ab.json",
}


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (os.mkfifo, "is a named pipe, not a file"),
        (os.mkdir, "is a directory, not a file"),
        (lambda path: path.symlink_to("elsewhere.json"), "symbolic link"),
    ],
)
@pytest.mark.parametrize("kind", FILES)
def test_an_answer_that_is_no_file_is_named(
    tmp_path: Path, kind: str, make: Callable[[Path], None], expected: str
) -> None:
    folder = tmp_path / f"20261123T100000Z_{kind}"
    folder.mkdir()
    make(folder / FILES[kind])
    with pytest.raises(BenchmarkError, match=rf"{FILES[kind]}.*{expected}"):
        report.run([str(folder)])


@pytest.mark.parametrize("kind", FILES)
def test_a_whole_answer_is_no_wave(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / f"20261123T100000Z_{kind}"
    folder.mkdir()
    (folder / FILES[kind]).write_text("{}")
    with pytest.raises(BenchmarkError, match=r"not of a wave. Print it: benchmark report"):
        RunDir.find(folder)


@pytest.mark.parametrize("waves", [0, 2])
@pytest.mark.parametrize("kind", FILES)
def test_a_folder_whose_command_was_killed_is_named(tmp_path: Path, kind: str, waves: int) -> None:
    folder = tmp_path / f"20261123T100000Z_{kind}-2"
    folder.mkdir()
    for number in range(waves):
        run_dir = RunDir(folder / ("B" if kind == "ab" else ".") / f"20261123T10000{number}Z_benchmark")
        run_dir.path.mkdir(parents=True)
        run_dir.plan.write_text("{}")
    text = rf"that ended before it stored its result \(it has no {FILES[kind]}\)"
    with pytest.raises(BenchmarkError, match=text) as error:
        report.run([str(folder)])
    assert ("start it again" in str(error.value)) == (not waves)
    if not waves:
        (folder / "x_capacity").mkdir()
        with pytest.raises(BenchmarkError, match=r"Give one of these in it: .*/x_capacity\.$"):
            report.run([str(folder)])
    assert ("20261123T100001Z_benchmark" in str(error.value)) == (waves > 0)


def test_the_first_line_of_a_search_follows_from_the_rest_of_it(tmp_path: Path) -> None:
    """In the file, on the page and in what is built on it: it was made before what was created was found to be left."""
    saved = capacity_folder.save(tmp_path, searched(clean_up="failed", exit_code=3, headline="Meets everything"))
    data = json.loads((tmp_path / "capacity.json").read_text())
    assert saved.headline == data["headline"]
    assert data["headline"].endswith(NOT_REMOVED)
    del data["digest"]  # as an earlier version stored it
    (tmp_path / "capacity.json").write_text(json.dumps(data | {"headline": "Meets everything"}))
    assert capacity_folder.read(tmp_path).headline == capacity_folder.load(tmp_path).found.headline == saved.headline
