"""Waits until the server's metrics are back where they were before the wave, so that the next load starts evenly."""

from __future__ import annotations

import re
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from inference_benchmarker.facts.server_metric import Interval, collected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric, Source

LOOK_S = 5.0
"""Seconds of quiet that are looked at, before the wave and after it."""

LIMIT_S = 300.0
PAUSE_S = 5.0
"""The pause where no metric shows it."""

BACK = 0.1
"""A metric is back when no more than this share of its change during the wave is left."""

LEAST_CHANGE = 0.05
"""A change of a smaller share of the value says nothing."""

_LASTING = re.compile("memory|disk|loaded|cache", re.IGNORECASE)
"""What a server fills and keeps does not come back."""

Key = tuple[str, str, tuple[tuple[str, str], ...], str]


@dataclass(frozen=True, slots=True)
class Change:
    """One statistic of a metric: what it was before the wave, and during it."""

    before: float
    during: float

    def is_back(self, now: float | None) -> bool:
        """Tells whether little of the change is left; no data is no load. ``before`` may hold some of the wave's."""
        return now is None or (now - self.before) / (self.during - self.before) <= BACK

    @property
    def has_moved(self) -> bool:
        """Tells whether the wave moved it."""
        return abs(self.during - self.before) > LEAST_CHANGE * max(abs(self.before), abs(self.during))


def changes(before: Sequence[ServerMetric], during: Sequence[ServerMetric]) -> dict[Key, Change]:
    """The metrics that the wave moved and that should come back."""
    then = dict(_values(before))
    found = {key: Change(then[key], value) for key, value in _values(during) if key in then}
    return {key: change for key, change in found.items() if change.has_moved and not _LASTING.search(key[1])}


def away(moved: dict[Key, Change], now: Sequence[ServerMetric]) -> str | None:
    """The first metric that is not back, in words; None where all are."""
    values = dict(_values(now))
    for key, change in moved.items():
        value = values.get(key)
        if value is not None and not change.is_back(value):
            return f"{key[1]} {key[3]} is {value:.4g}, was {change.before:.4g}"
    return None


def wait_for_baseline(
    sources: Sequence[Source],
    wave: Interval,
    during: Sequence[ServerMetric],
    say: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return when the metrics are back, at the latest after ``LIMIT_S``; after a pause where none can tell.

    ``during``: what the sources said of the ``wave``.
    """
    moved = changes(_collect(sources, Interval(wave.begin - LOOK_S, wave.begin - LOOK_S, wave.begin, 0)), during)
    if not moved:
        sleep(PAUSE_S)
        return
    say("Waiting until the server's metrics return to their baseline ...")
    deadline = clock() + LIMIT_S
    while left := away(moved, _now(sources, clock, sleep)):
        if clock() >= deadline:
            say(f"   not back after {LIMIT_S:.0f} s, going on: {left} before the wave")
            return
        say(f"   not yet: {left} before the wave")


def _now(sources: Sequence[Source], clock: Callable[[], float], sleep: Callable[[float], None]) -> list[ServerMetric]:
    for source in sources:
        source.begin()
    begin = clock()
    sleep(LOOK_S)
    return _collect(sources, Interval(begin, begin, begin + LOOK_S, 0))


def _collect(sources: Sequence[Source], interval: Interval) -> list[ServerMetric]:
    with _ending_at_once():
        return [metric for source in sources for metric in collected(source, interval, lambda _: None)]


class _EndedError(BaseException):
    """Ctrl-C, as no source knows it."""


@contextmanager
def _ending_at_once() -> Iterator[None]:
    """Ctrl-C is an interrupt of the whole; to a source alone it is the end of its waiting, and aiperf would begin."""

    def end(*_: object) -> NoReturn:
        raise _EndedError

    heeded = [
        n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.default_int_handler
    ]
    for number in heeded:
        signal.signal(number, end)
    try:
        yield
    except _EndedError:
        raise KeyboardInterrupt from None
    finally:
        for number in heeded:
            signal.signal(number, signal.default_int_handler)


def _values(metrics: Sequence[ServerMetric]) -> Iterator[tuple[Key, float]]:
    for metric in metrics:
        for statistic, value in metric.statistics.items():
            if value is not None:
                yield (metric.stream, metric.name, tuple(metric.dimensions.items()), statistic), value
