"""Counts to steer a search for sessions by while its wave runs: turns that ended in a second, and sessions. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.batch import HAS_STREAM, OUTCOME
from inference_benchmarker.records.record import COMPLETED, FAILED, NONE, OK
from inference_benchmarker.words.units import NS
from server_capacity.search.stretch import Count, Slice

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from inference_benchmarker.plan.slo import Turns
    from inference_benchmarker.records.columns import Floats, Int64, Mask
    from server_capacity.search.limits import Limit


@dataclass(slots=True)
class _Second:
    """Sessions that ``begun`` and ``ended`` in it, their lengths added up, and of each limit those over and all."""

    begun: int = 0
    ended: int = 0
    spent_s: float = 0.0
    pairs: list[list[int]] = field(default_factory=list)


class SessionWatch:
    """Adds up turns and sessions by the second in which they ended; a session that goes on is over no limit yet."""

    def __init__(self, limits: Sequence[Limit]) -> None:
        self._limits = limits
        self._begun: dict[int, int] = {}
        self._seconds: defaultdict[int, _Second] = defaultdict(lambda: _Second(pairs=[[0, 0] for _ in limits]))

    def take(
        self,
        rows: npt.NDArray[Any],
        streams: npt.NDArray[Any],
        gaps_us: npt.NDArray[Any],
        turns: npt.NDArray[Any],
    ) -> None:
        """Take in a worker's report; the warm-up's sessions have negative numbers, and do not count."""
        counts, seconds = rows["index"] >= 0, rows["done"] // NS
        times = _times(rows, streams, gaps_us)
        for place, limit in enumerate(self._limits):
            if not limit.is_on_sessions:
                ours = counts if limit.turns is None else counts & _within(limit.turns, turns["turn"])
                of, over = _judged(limit, rows["outcome"] & OUTCOME, times)
                self._add(place, seconds[of], ours[of], over)
        for row in np.flatnonzero(counts & (turns["turn"] == 1)).tolist():
            self._begin(int(rows["index"][row]), int(rows["due"][row]))
        for row in np.flatnonzero(counts & (turns["ended"] != 0)).tolist():
            self._end(int(rows["index"][row]), int(rows["done"][row]), completed=turns["ended"][row] == COMPLETED)

    def slice(self, second: int, start_s: float, end_s: float) -> Slice:
        """A second of the wave, as a part of a stretch on the search's clock."""
        found = self._seconds[second]
        counts = tuple(Count(of, over) for of, over in found.pairs)
        return Slice(start_s, end_s, found.begun, found.ended, counts, found.spent_s)

    def _add(self, place: int, seconds: Int64, ours: Mask, over: Mask) -> None:
        for second in np.unique(seconds[ours]).tolist():
            here = ours & (seconds == second)
            pair = self._seconds[second].pairs[place]
            pair[0] += int(np.count_nonzero(here))
            pair[1] += int(np.count_nonzero(here & over))

    def _begin(self, number: int, due: int) -> None:
        if number not in self._begun:  # else the first turn was tried again
            self._begun[number] = due
            self._seconds[due // NS].begun += 1

    def _end(self, number: int, done: int, *, completed: bool) -> None:
        length_s = (done - self._begun.pop(number, done)) / NS
        here = self._seconds[done // NS]
        here.ended += 1
        here.spent_s += length_s
        for pair, limit in zip(here.pairs, self._limits, strict=True):
            if limit.is_on_sessions:
                pair[0] += 1
                pair[1] += not completed if limit.bound_s is None else length_s >= limit.bound_s


def _times(
    rows: npt.NDArray[Any], streams: npt.NDArray[Any], gaps_us: npt.NDArray[Any]
) -> dict[str, tuple[Int64, Floats]]:
    """The times of a report's requests, in seconds, and the row of each; a request has as many ITL as gaps."""
    every, of_streams = np.arange(len(rows)), np.flatnonzero(rows["outcome"] & HAS_STREAM)
    began, several = streams["first_token"] != NONE, streams["chunks"] >= 2
    ttft = (streams["first_token"] - rows["sent"][of_streams]) / NS
    tokens = np.maximum(streams["chunks"], streams["tokens_out"])
    tpot = (streams["last_token"] - streams["first_token"]) / NS / np.maximum(tokens - 1, 1)
    return {
        "latency": (every, (rows["done"] - rows["sent"]) / NS),
        "response_time": (every, (rows["done"] - rows["due"]) / NS),
        "ttft": (of_streams[began], ttft[began]),
        "itl": (np.repeat(of_streams, streams["gaps"]), gaps_us / 1e6),
        "tpot": (of_streams[several], tpot[several]),
    }


def _within(turns: Turns, number: npt.NDArray[Any]) -> Mask:
    return np.asarray((number >= turns.first) & (number <= turns.last))


def _judged(limit: Limit, outcome: npt.NDArray[Any], times: dict[str, tuple[Int64, Floats]]) -> tuple[Int64, Mask]:
    """The rows of what a limit speaks of, and which are over it; of goodput those that failed, the least it can be."""
    if limit.bound_s is None:
        return np.arange(len(outcome)), outcome != OK
    of, values = times[limit.metric]
    ended = outcome[of] == OK if limit.metric == "tpot" else outcome[of] != FAILED
    return of[ended], values[ended] >= limit.bound_s
