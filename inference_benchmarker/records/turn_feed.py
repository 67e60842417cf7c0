"""First turns of sessions and later ones as they come in, for what is shown while a wave runs. Pure.

It is counted where the wave is followed, from the reports of the workers, so that a turn costs them nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.batch import HAS_STREAM, OUTCOME
from inference_benchmarker.records.feed import KEPT_S, Cell
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import numpy.typing as npt

PARTS = FIRST, LATER = "1", "2+"
"""The parts of a wave's turns."""


class TurnFeed:
    """Counts the first turns and the later ones: ``total`` of each part, and its last seconds.

    Warm-up is not counted, as it is not in ``Feed``. Its memory does not grow with the length of the wave.
    """

    def __init__(self) -> None:
        self.total = {name: Cell() for name in PARTS}
        self._seconds: dict[str, dict[int, Cell]] = {name: {} for name in PARTS}

    @property
    def any(self) -> bool:
        """Tells whether a later turn came, without which all turns are requests like others."""
        return bool(self._seconds[LATER])

    def take(self, base: npt.NDArray[Any], streams: npt.NDArray[Any], turns: npt.NDArray[Any]) -> None:
        """Count a report's requests; ``turns`` has one for each of them, or none where arrivals are no sessions."""
        if not len(turns):
            return
        is_stream = (base["outcome"] & HAS_STREAM) != 0
        first_token = np.full(len(base), NONE)
        first_token[is_stream] = streams["first_token"]
        counted = base["index"] >= 0
        seconds = base["done"] // NS
        for name, of_part in ((FIRST, turns["turn"] == 1), (LATER, turns["turn"] > 1)):
            chosen = counted & of_part
            for second in map(int, np.unique(seconds[chosen])):
                own = chosen & (seconds == second)
                self._add(name, second, _cell(base[own], first_token[own]))

    def second(self, name: str, second: int) -> Cell:
        """A second of a part, not to be changed; an empty one for a second that is not kept."""
        return self._seconds[name].get(second) or Cell()

    def over(self, name: str, first: int, stop: int) -> Cell:
        """The seconds from ``first`` to before ``stop``, of those that are kept."""
        total = Cell()
        for second, cell in self._seconds[name].items():
            if first <= second < stop:
                total.merge(cell)
        return total

    def _add(self, name: str, second: int, cell: Cell) -> None:
        kept = self._seconds[name]
        self.total[name].merge(cell)
        kept.setdefault(second, Cell()).merge(cell)
        if len(kept) > KEPT_S:
            del kept[min(kept)]


def _cell(base: npt.NDArray[Any], first_token: npt.NDArray[np.int64]) -> Cell:
    """The counts and times of some requests; the times are those of ok and abandoned ones, as in ``Feed``."""
    outcome = base["outcome"] & OUTCOME
    failed = int(np.count_nonzero(outcome == FAILED))
    cell = Cell(ok=int(np.count_nonzero(outcome == OK)), abandoned=int(np.count_nonzero(outcome == ABANDONED)))
    cell.failed.update({"failed": failed} if failed else {})
    timed = outcome != FAILED
    has_token = timed & (first_token != NONE)
    for name, values in (
        ("latency", (base["done"] - base["sent"])[timed]),
        ("ttft", (first_token - base["sent"])[has_token]),
    ):
        if len(values):
            cell.times[name] = Histogram.of(map(int, values))
    return cell
