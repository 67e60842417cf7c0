"""The two sides of runs that are compared with each other: what changed from one to the other, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.plan.slo import MaxRegression
from inference_benchmarker.system.given import resolved
from visualization.comparison.comparison import compare
from visualization.comparison.headline import headline
from visualization.figures.cards import facts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.comparison import Comparison
    from visualization.figures.runs import Run

_MOST = 24  # runs, whose waves are all held in memory


@dataclass(frozen=True, slots=True)
class TwoSides:
    """The comparison of the two sides of some runs; ``of``: the side of each run, 0 or 1."""

    comparison: Comparison
    of: tuple[int, ...]

    @property
    def change(self) -> str:
        """The outcome in one line."""
        return headline(self.comparison)


def two_sides(
    runs: Sequence[Run], load: Callable[[Path], Wave], limits: Sequence[str] = (), *, strict: bool = False
) -> TwoSides | None:
    """The outcome of ``benchmark compare`` for them; None where they are not two sides of one load.

    ``limits``: those on changes, as flags give them; ``strict``: what is undecided fails.
    """
    by_name = sides(runs)
    if by_name is None:
        return None
    names = tuple(by_name)
    base, new = ([load(run.path) for run in side] for side in by_name.values())
    folders = {resolved(run.path).parent for run in by_name[names[0]]}
    first = {run.path for run in runs if resolved(run.path).parent in folders} if len(runs) > 2 else {runs[0].path}
    gate = [MaxRegression.parse(text) for text in limits]
    found = compare(base, new, gate, names=(names[0], names[1]), strict=strict)
    return TwoSides(found, tuple(int(run.path not in first) for run in runs))


def sides(runs: Sequence[Run]) -> dict[str, list[Run]] | None:
    """Two runs, or the VALID runs of two folders that are called by these, by name; all under the same load."""
    readable = all(run.has_wave and not run.problems for run in runs)
    loads = {(facts(run).get("load"), facts(run).get("arrivals")) for run in runs}
    if not readable or len(loads) > 1 or not 2 <= len(runs) <= _MOST:
        return None
    if len(runs) == 2:
        return {run.label: [run] for run in runs}
    folders: dict[Path, list[Run]] = {}
    for run in runs:
        folders.setdefault(resolved(run.path).parent, []).append(run)
    called = all(run.label.startswith(folder.name) for folder, members in folders.items() for run in members)
    names = {folder.name: [run for run in members if not run.doubtful] for folder, members in folders.items()}
    return names if len(names) == len(folders) == 2 and called and all(names.values()) else None
