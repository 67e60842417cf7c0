"""Follows the number of a server's instances while a wave runs: a thread each, and a line of a file for each count."""

from __future__ import annotations

import random
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.instances import CannotCountError, Count, Followed, begun, count_row, uncounted
from inference_benchmarker.facts.server_metric import LiveMetric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.facts.instances import InstanceSource, ScalingEvent
    from inference_benchmarker.facts.server_metric import Interval

LEAST_S, MOST_S, LONGEST_S = 0.5, 5.0, 60.0
COUNTS_A_WAVE = 200
"""A wave is long enough for so many counts, within the limits above; ``LONGEST_S`` is for a service that throttles."""

PATIENCE_S = 3.0
"""A last answer is waited for so long when the wave is over."""

EVENTS_S = 30.0
"""And so long for the events of the service that scales it: one that sends byte after byte never runs out of time."""


def interval_s(wave_s: float | None) -> float:
    """Seconds from one count to the next in a wave of that length (None: nobody knows)."""
    return MOST_S if wave_s is None else min(MOST_S, max(LEAST_S, wave_s / COUNTS_A_WAVE))


def pause_s(interval: float, failures: int, drawn: float) -> float:
    """The pause before the next count, after so many failures in a row; ``drawn`` from 0 to 1: nobody keeps step."""
    return min(LONGEST_S, interval * 2.0 ** min(failures, 10)) * (0.5 + drawn)


class Follower:
    """Counts from ``following``'s start to its end. What came is kept, whatever fails."""

    def __init__(self, sources: Sequence[InstanceSource], wave_s: float | None) -> None:
        self._watches = [_Watch(source, interval_s(wave_s)) for source in sources]

    @contextmanager
    def following(self, add: Callable[[dict[str, Any]], object]) -> Iterator[None]:
        """Follow inside the block. ``add`` takes each line of ``instances.jsonl`` as it comes, from several threads."""
        for watch in self._watches:
            watch.begin(add)
        try:
            yield
        finally:
            for watch in self._watches:
                watch.ended.set()
            deadline = time.monotonic() + PATIENCE_S
            for watch in self._watches:
                watch.join(deadline)

    def latest(self) -> list[LiveMetric]:
        """The last count of each, for the live view, and how many are asked for where these are others."""
        return [reading for watch in self._watches for count in watch.counts[-1:] for reading in _readings(count)]

    def followed(self, interval: Interval) -> list[Followed]:
        """Everything that came, and what the services report of that time; nothing of who has nothing."""
        found = [watch.followed(interval) for watch in self._watches]
        return [each for each in found if each.counts or each.events or each.remarks]


def _readings(count: Count) -> Iterator[LiveMetric]:
    yield LiveMetric("instances", count.current, None)
    if count.desired not in (None, count.current):
        yield LiveMetric("asked for", count.desired or 0.0, None)


class _Watch:
    """One source, asked by a thread of its own: a slow one holds up no other."""

    def __init__(self, source: InstanceSource, interval: float) -> None:
        self._source = source
        self._interval = interval
        self._random = random.Random()
        self._thread: threading.Thread | None = None
        self._failed = 0
        self._failures = 0
        self._reason: str | None = None
        self.of = source.of
        self.ended = threading.Event()
        self.counts: list[Count] = []

    def begin(self, add: Callable[[dict[str, Any]], object]) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, args=[add], name="instances", daemon=True)
        self._thread.start()

    def join(self, deadline: float) -> None:
        """Wait for the last answer, until ``deadline`` (monotonic)."""
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def followed(self, interval: Interval) -> Followed:
        """The counts, and what the service reports of that time. A fault of ours keeps its traceback."""
        late = f"The scaling activities of {self.of} did not all arrive within {EVENTS_S:g} s."
        answers: list[tuple[list[ScalingEvent], list[str]]] = [([], [late])]
        asking = threading.Thread(
            target=lambda: answers.append(self._scaling_events(interval)), name="scaling-events", daemon=True
        )
        asking.start()
        asking.join(EVENTS_S)
        events, unknown = answers[-1]
        scaled = len({(count.current, count.desired) for count in self.counts}) > 1
        remarks = (*self._remarks(), *(unknown if scaled or events else ()))  # where nothing scaled nothing is missing
        return Followed(self.of, self._source.source, tuple(self.counts), tuple(events), remarks)

    def _scaling_events(self, interval: Interval) -> tuple[list[ScalingEvent], list[str]]:
        try:
            return self._source.scaling_events(interval.begin, interval.end)
        except Exception as error:
            traceback.print_exc()
            return [], [f"The scaling activities of {self.of} could not be requested ({type(error).__name__})."]

    def _run(self, add: Callable[[dict[str, Any]], object]) -> None:
        over = False
        while self._count(add) and not over:
            over = self.ended.wait(self._pause())  # then the next count is the last

    def _pause(self) -> float:
        return pause_s(self._interval, self._failures, self._random.random())

    def _count(self, add: Callable[[dict[str, Any]], object]) -> bool:
        """Ask once; False where it is of no use to ask again."""
        try:
            count = self._source.count()
        except CannotCountError as error:
            self._failed += 1
            self._failures += 1
            self._reason = str(error)
            return not error.final
        self._failures = 0
        if not self.counts:
            add(begun(self.of, self._source.source))
        self.counts.append(count)
        add(count_row(self.of, count))
        return True

    def _remarks(self) -> Iterator[str]:
        if not self._reason:
            return
        if not self.counts:
            yield f"{uncounted(self.of)}: {self._reason}."
        else:
            times = f"{self._failed} of {self._failed + len(self.counts)} times"
            yield f"The instances of {self.of} were not reported {times}, the last time because {self._reason}."
