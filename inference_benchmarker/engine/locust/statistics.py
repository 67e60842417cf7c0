"""A worker's requests in Locust's statistics: by an event each where somebody listens, else added in batches."""

from __future__ import annotations

import logging
from collections import Counter
from operator import itemgetter
from time import time
from typing import TYPE_CHECKING

from locust import stats as locust_stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from locust.env import Environment
    from locust.stats import StatsEntry

logger = logging.getLogger(__name__)

METHOD = "invoke"
MOST_WAITING = 256  # requests that are added in one go: a pause of some 0.3 ms
_Ok = tuple[str, float, int, float]
"""The name of a request that was ok, its response time (ms), its response length (bytes), and when it was over."""


class Statistics:
    """Reports each sent request to Locust. Make it right after the environment's worker runner.

    Locust's own listener fills its statistics. An event for each request takes longer than all else of a request, so
    requests wait to be added in bulk while that listener is the only one; those that failed, which are few, do not.
    """

    def __init__(self, environment: Environment) -> None:
        self._event = environment.events.request
        self._listeners = self._event._handlers  # noqa: SLF001 - Locust does not say who listens
        self._own = self._listeners[-1:]
        self._stats = environment.stats
        self._waiting: list[_Ok] = []

    def report(self, name: str, response_ms: float, length: int, exception: Exception | None) -> None:
        """Report one request: its response time in ms, the length of its response in bytes, and why it failed."""
        if exception is not None or self._listeners != self._own:
            self._event.fire(
                request_type=METHOD,
                name=name,
                response_time=response_ms,
                response_length=length,
                exception=exception,
                context={},
            )
            return
        waiting = self._waiting
        waiting.append((name, response_ms, length, time()))
        if len(waiting) >= MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Add the requests that wait. Whatever prevents it is logged, as Locust does: they are recorded anyway."""
        waiting, self._waiting = self._waiting, []
        try:
            self._add_all(waiting)
        except Exception:  # Locust lets a file have its own bucket_response_time
            logger.exception("%s requests cannot be added to Locust's statistics", len(waiting))

    def _add_all(self, waiting: Sequence[_Ok]) -> None:
        if not waiting:
            return
        _add(self._stats.total, waiting)
        names = set(map(itemgetter(0), waiting))
        for name in names:
            of_name = waiting if len(names) == 1 else [one for one in waiting if one[0] == name]
            _add(self._stats.get(name, METHOD), of_name)


def _add(entry: StatsEntry, requests: Sequence[_Ok]) -> None:
    """Add requests to an entry as ``StatsEntry.log`` adds one."""
    _, times, lengths, ends = zip(*requests, strict=True)
    entry.num_requests += len(requests)
    entry.total_response_time += sum(times)
    entry.total_content_length += sum(lengths)
    least = entry.min_response_time
    entry.min_response_time = min(times) if least is None else min(least, *times)
    entry.max_response_time = max(entry.max_response_time, *times)
    entry.last_request_timestamp = max(entry.last_request_timestamp or 0, ends[-1])
    _count(entry.num_reqs_per_sec, map(int, ends))
    _count(entry.response_times, map(locust_stats.bucket_response_time, times))


def _count(counts: dict[int, int], values: Iterable[int]) -> None:
    for value, number in Counter(values).items():
        counts[value] += number
