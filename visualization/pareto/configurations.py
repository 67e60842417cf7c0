"""The runs of each configuration: a folder of runs is one, and so are runs that share a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.system.files import folders_in, is_file
from inference_benchmarker.system.given import resolved
from inference_benchmarker.wave import reader
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.run_folders import runs_of
from inference_benchmarker.words.text import one_line
from visualization.comparison import ab
from visualization.comparison.ending import OUTCOMES, ended_early
from visualization.figures.reading import tell_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LONG = 200  # of a name


def configurations_of(given: Sequence[Path]) -> dict[str, list[Path]]:
    """The runs of each configuration by its name; BenchmarkError where a path has none.

    A run directory belongs to the configuration of its name; a folder of runs is one configuration, a folder of such
    folders several. So are the two sides of ``benchmark ab``, with the waves that do not count there: they say why
    themselves. A side without any wave is none.
    """
    named: dict[str, list[Path]] = {}
    others: list[tuple[str, Path, list[Path]]] = []
    for path in _each_folder(given):
        for name, place, runs in _of(path):
            if name and runs == [place]:
                named.setdefault(name, []).extend(runs)
            else:
                others.append((name, place, runs))
    found = [(name, runs[0], runs) for name, runs in named.items()] + others
    if not found:
        refuse([" ".join(["There is no run to compare.", *(end.text for end in ends_of(given))])])
    labels = tell_apart([one_line(name, _LONG) for name, *_ in found], [place for _, place, _ in found])
    return {label: _each_once(runs) for label, (_, _, runs) in zip(labels, found, strict=True)}


@dataclass(frozen=True, slots=True)
class End:
    """The end of a ``benchmark ab`` that did not end well: a sentence, and its exit code."""

    text: str
    exit_code: int


def ends_of(given: Sequence[Path]) -> Iterator[End]:
    """That of each folder of an ``ab`` that was cut short, is INVALID or exceeds a limit of its comparison."""
    for path in filter(ab.is_ab, _each_folder(given)):
        experiment = ab.load(path)
        if (code := ab.exit_code_of(experiment)) == OK:
            continue
        cut, word = experiment.cut, OUTCOMES[code]
        ended = f"{word.upper()} (by its comparison)" if cut is None else ended_early(word, cut)
        bare = [side for side in ab.SIDES if not any(each.side == side for each in experiment.sent)]
        without = f"; {' and '.join(bare)} {'has' if len(bare) == 1 else 'have'} no wave" if bare else ""
        yield End(f"{one_line(resolved(path).name, _LONG)}: {ended}{without}.", code)


def left_out(given: Sequence[Path]) -> Iterator[str]:
    """A sentence on each folder of runs with other folders beside these: only its own runs are compared."""
    for path in given:
        runs = _runs_in(path)
        if ab.is_ab(path) or runs in ([], [path]):
            continue
        if others := [folder for folder in _below(path) if folder not in runs]:
            names = ", ".join(one_line(each.name, _LONG) for each in others)
            name = one_line(resolved(path).name, _LONG)
            beside = f"{name} has run directories, so its folders of runs are left out"
            yield f"{beside}: {names}. To compare them, name them"


def _each_folder(given: Sequence[Path]) -> Iterator[Path]:
    """The arguments, with the folders of runs that one without a run of its own has in its place."""
    for path in given:
        yield from ([] if ab.is_ab(path) or _runs_in(path) else _below(path)) or [path]


def _below(path: Path) -> list[Path]:
    """The folders in it that have runs."""
    try:
        return [each for each in folders_in(path, links=True) if ab.is_ab(each) or _runs_in(each)]
    except OSError:  # ``runs_of`` says why
        return []


def _of(path: Path) -> Iterator[tuple[str, Path, list[Path]]]:
    """Name, place and runs of each configuration of a folder."""
    if ab.is_ab(path):
        sent = ab.load(path).sent
        for side in ab.SIDES:
            if runs := [path / each.run for each in sent if each.side == side]:
                yield side, path / side, runs
        return
    runs = _runs_in(path)
    yield (_name_of(path) if runs == [path] else resolved(path).name), path, runs or runs_of(path)


def _runs_in(path: Path) -> list[Path]:
    """The run directory that it is, or those in it; none where there are none."""
    if _is_run(path):
        return [path]
    try:
        return [each for each in folders_in(path, links=True) if _is_run(each)]
    except OSError:  # ``runs_of`` says why
        return []


def _is_run(path: Path) -> bool:
    """Tells whether a wave was begun in it: one whose plan is lost is refused where it is loaded."""
    run = RunDir(path)
    return is_file(run.plan) or run.has_wave


def _name_of(path: Path) -> str:
    try:
        return str(reader.read_facts(RunDir(path).plan).get("name") or "")
    except BenchmarkError:  # which says more where the run is loaded
        return ""


def _each_once(runs: Sequence[Path]) -> list[Path]:
    return list({resolved(run): run for run in runs}.values())
