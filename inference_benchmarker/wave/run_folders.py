"""Folders of run directories, and the last runs that were made."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.data.json_file import UNREADABLE, read_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import folders_in, is_file, is_there
from inference_benchmarker.wave.run_dir import MADE_AS, STAMP, STAMPED, RunDir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_OF_A_RUN = ("plan.json", "summary.json", "requests.parquet")
_ISO = "%Y-%m-%dT%H:%M:%S.%fZ"


class FoundRun(NamedTuple):
    """A run, or another folder of results, by when it was begun: whatever it is called now.

    ``made_as``: the name that it was made with, where that is known; a copy shares it. ``by``: the file that says when;
    empty where its own name does.
    """

    began: datetime
    number: int
    """Of several of one second."""
    is_original: bool
    path: Path
    made_as: str
    by: str


def runs_of(path: Path) -> list[Path]:
    """A run directory, or those that lie in a folder, by name; BenchmarkError where there are none.

    A run that lost one of its files is among them: loading it names the file, and none is left out in silence.
    """
    if _has_any(path, _OF_A_RUN):
        return [path]
    if found := _runs_in(path):
        return found
    return [RunDir.find(path).path]


def latest_runs(folder: Path, number: int, *others: str) -> list[FoundRun]:
    """The last so many runs of a folder, the last one last; BenchmarkError where there are fewer.

    ``others``: files of which one makes a folder as good as a run. A copy of a run is no run of its own.
    """
    begun = sorted(_begun(path, others) for path in _runs_in(folder, *others))
    found = list({each.made_as or str(each.path): each for each in begun}.values())
    if len(found) < number:
        there = f"has {len(found)}" if found else "has none"
        raise BenchmarkError(f"{folder}: {there} of the {number} runs that this takes.", "Name run directories.")
    return found[-number:]


def _begun(path: Path, others: tuple[str, ...]) -> FoundRun:
    """When a run was begun: by the name that it was made with, which is looked up only where it has another one.

    Else by the start of its wave, or the first of the waves in it; by the clock of its files where nothing says more.
    """
    run_dir = RunDir(path)
    own = _member(run_dir.plan, "environment").get(MADE_AS) if _stamp(path.name) is None else path.name
    if stamp := _stamp(str(own)):
        by = "" if own == path.name else run_dir.plan.name
        return FoundRun(*stamp, not by, path, str(own), by)
    with suppress(ValueError):
        start = str(_member(run_dir.summary, "window").get("start"))
        began = datetime.strptime(start, _ISO).replace(microsecond=0, tzinfo=UTC)
        return FoundRun(began, 1, False, path, "", run_dir.summary.name)
    if inside := min(filter(None, map(_stamp, _names_below(path))), default=None):
        return FoundRun(*inside, False, path, "", "the first wave in it")
    file = next((path / name for name in (*_OF_A_RUN, *others) if is_file(path / name)), path)
    began = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return FoundRun(began, 1, False, path, "", f"the clock of its {file.name}")


def _stamp(name: str) -> tuple[datetime, int] | None:
    """The second at which a run was made by the name that it was made with, and its number among those of it."""
    if not STAMPED.fullmatch(name):
        return None
    number = name.rpartition("-")[2]
    try:
        began = datetime.strptime(name.partition("_")[0], STAMP).replace(tzinfo=UTC)
    except ValueError:  # no such day
        return None
    return began, int(number) if number.isdigit() else 1


def _member(file: Path, name: str) -> dict[str, object]:
    """An object in a file of a run, which may be anybody's; empty where there is none."""
    try:
        found = read_json(file)[name] if is_file(file) else None
    except (BenchmarkError, *UNREADABLE):
        return {}
    return found if isinstance(found, dict) else {}


def _names_below(folder: Path) -> Iterator[str]:
    """The names of the folders in a folder, and of those in its sides."""
    for each in folders_in(folder):
        yield each.name
        yield from (below.name for below in folders_in(each))


def _runs_in(folder: Path, *others: str) -> list[Path]:
    """By name, which begins with the time."""
    try:
        return [each for each in folders_in(folder, links=True) if _has_any(each, (*_OF_A_RUN, *others))]
    except FileNotFoundError:  # it was deleted meanwhile
        return []


def _has_any(folder: Path, names: Iterable[str]) -> bool:
    """Tells whether one of these is there, whatever it has become."""
    return any(is_there(folder / name) for name in names)
