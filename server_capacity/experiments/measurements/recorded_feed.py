"""The live feed of a wave that is over, made again from its records, to look at the client by other limits. Pure."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.hosts import host_of_worker
from inference_benchmarker.facts.on_time import lag_ns
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.feed_writer import OpenCell
from inference_benchmarker.records.histogram import tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Int64, Mask, Records

_COLUMNS = (*ROW_KEY, "worker", "due", "sent", "done", "build_ns", "outcome", "first_token")


def recorded_feed(wave: WaveFacts) -> Feed:
    """The times that a lag is compared with, and the lag, by the stage in which requests of an open loop were due.

    There are no counts in it, and nothing of single seconds.
    """
    cells: defaultdict[tuple[int, int], OpenCell] = defaultdict(OpenCell)
    ends = _ends(wave)
    for part in wave.records.parts(*_COLUMNS):
        places = np.stack([np.searchsorted(ends, part.int("due"), "right"), part.int("worker")])
        for stage, worker in np.unique(places, axis=1).T.tolist():
            mine = (places == [[stage], [worker]]).all(axis=0)
            for name, counted, times in _times(part):
                tally(cells[stage, worker].times[name], times[mine & counted].tolist())
    feed = Feed()
    for (stage, worker), cell in cells.items():
        feed.merge([{"s": 0, "n": stage, **cell.to_json()}], [], host_of_worker(wave.hosts, worker))
    return feed


def _ends(wave: WaveFacts) -> list[int]:
    """The ends of all stages but the last, in nanoseconds after wave start."""
    stages = wave.plan.load.stages if isinstance(wave.plan.load, OpenLoop) else ()
    return list(accumulate(stage.duration_ns for stage in stages))[:-1]


def _times(part: Records) -> Iterator[tuple[str, Mask, Int64]]:
    """Each time by its name in a feed, of which requests it counts, and its nanoseconds."""
    sent, done, answered = part.int("sent"), part.int("done"), ~part.outcome("failed")
    yield "lag", np.ones(len(part), bool), lag_ns(part)
    yield "latency", answered, done - sent
    yield "response_time", answered, done - part.arrived
    yield "ttft", answered & part.has("first_token"), part.int("first_token") - sent
