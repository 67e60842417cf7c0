"""First turns of sessions and later ones as they come in, for what is shown while a wave runs. Pure.

It is counted where the wave is followed, from the reports of the workers, so that a turn costs them nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.batch import HAS_STREAM, OUTCOME
from inference_benchmarker.records.feed import KEPT_S, Cell
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.prompts import TOO_LONG
from inference_benchmarker.records.record import ABANDONED, FAILED, NONE, OK
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Contexts:
    """The input of some requests: of ``requests`` that reported it their ``tokens``, and what of it was cached.

    ``of_cached`` are the input tokens of those that reported both.
    """

    requests: int = 0
    tokens: int = 0
    of_cached: int = 0
    cached: int = 0

    def __add__(self, other: Contexts) -> Contexts:
        return Contexts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def mean(self) -> float | None:
        """The mean input tokens; None without any."""
        return self.tokens / self.requests if self.requests else None

    @property
    def cached_share(self) -> float | None:
        """The share of the input tokens that the server had cached; None where it reported none."""
        return self.cached / self.of_cached if self.of_cached else None


PARTS = FIRST, LATER = "1", "2+"
"""The parts of a wave's turns."""


class TurnFeed:
    """Counts the first turns and the later ones: ``total`` of each part, and its last seconds.

    Warm-up is not counted, as it is not in ``Feed``. Its memory does not grow with the length of the wave.
    """

    def __init__(self) -> None:
        self.total = {name: Cell() for name in PARTS}
        self._seconds: dict[str, dict[int, Cell]] = {name: {} for name in PARTS}
        self._contexts: dict[str, dict[int, Contexts]] = {name: {} for name in PARTS}

    @property
    def any(self) -> bool:
        """Tells whether a later turn came, without which all turns are requests like others."""
        return bool(self._seconds[LATER])

    def take(
        self,
        base: npt.NDArray[Any],
        streams: npt.NDArray[Any],
        turns: npt.NDArray[Any],
        cached: npt.NDArray[Any] | None = None,
    ) -> None:
        """Count a report's requests; ``turns`` has one for each of them, or none where arrivals are no sessions.

        ``cached``: the metric that says how many input tokens were, of those requests that reported it. ValueError for
        a report that contradicts itself.
        """
        if not len(turns):
            return
        is_stream = (base["outcome"] & HAS_STREAM) != 0
        first_token, tokens = np.full(len(base), NONE), np.full(len(base), NONE)
        first_token[is_stream], tokens[is_stream] = streams["first_token"], streams["tokens_in"]
        found = _by_row(cached, len(base))
        counted = base["index"] >= 0
        seconds = base["done"] // NS
        for name, of_part in ((FIRST, turns["turn"] == 1), (LATER, turns["turn"] > 1)):
            chosen = counted & of_part
            for second in map(int, np.unique(seconds[chosen])):
                own = chosen & (seconds == second)
                contexts = _contexts(tokens[own], found[own])
                self._add(name, second, _cell(base[own], first_token[own]), contexts)

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

    def contexts(self, name: str, first: int, stop: int) -> Contexts:
        """The input of a part in the same seconds."""
        found = self._contexts[name].items()
        return sum((each for second, each in found if first <= second < stop), Contexts())

    def _add(self, name: str, second: int, cell: Cell, contexts: Contexts) -> None:
        kept, kept_contexts = self._seconds[name], self._contexts[name]
        self.total[name].merge(cell)
        kept.setdefault(second, Cell()).merge(cell)
        kept_contexts[second] = kept_contexts.get(second, Contexts()) + contexts
        if len(kept) > KEPT_S:
            oldest = min(kept)
            del kept[oldest], kept_contexts[oldest]


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


def _by_row(values: npt.NDArray[Any] | None, rows: int) -> npt.NDArray[np.float64]:
    """A metric of the requests by their place in the report; nan of those that did not report it."""
    found = np.full(rows, np.nan)
    if values is not None and len(values):
        if values["row"].max() >= rows:
            raise ValueError("a value of a request that is not in its report")
        found[values["row"]] = values["value"]
    return found


def _contexts(tokens: npt.NDArray[np.int64], cached: npt.NDArray[np.float64]) -> Contexts:
    known = (tokens >= 0) & (tokens < TOO_LONG)
    both = known & (cached >= 0) & (cached <= tokens)  # a part of the prompt; nan is none
    counts = (np.count_nonzero(known), tokens[known].sum(), tokens[both].sum(), cached[both].sum())
    return Contexts(*map(int, counts))
