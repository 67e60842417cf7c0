"""Folders of run directories, and the last runs that were made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import folders_in, is_file
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from pathlib import Path


def runs_of(path: Path) -> list[Path]:
    """A run directory, or those that lie in a folder, the first one first; BenchmarkError where there are none."""
    if is_file(RunDir(path).plan):
        return [path]
    if found := _runs_in(path):
        return found
    return [RunDir.find(path).path]


def latest_runs(folder: Path, number: int, *others: str) -> list[Path]:
    """The last so many runs of a folder, the last one last; BenchmarkError where there are fewer.

    ``others``: files of which one makes a folder as good as a run.
    """
    found = _runs_in(folder, *others)
    if len(found) < number:
        there = f"has {len(found)}" if found else "has none"
        raise BenchmarkError(f"{folder}: {there} of the {number} runs that this takes.", "Name run directories.")
    return found[-number:]


def _runs_in(folder: Path, *others: str) -> list[Path]:
    """By name, which begins with the time."""
    names = (RunDir(folder).plan.name, *others)
    try:
        return [each for each in folders_in(folder, links=True) if any(is_file(each / name) for name in names)]
    except FileNotFoundError:  # it was deleted meanwhile
        return []
