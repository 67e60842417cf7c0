"""Watches a metrics page: a thread that scrapes it from ``begin`` until it is told to end, once in each interval.

The instant within an interval is drawn anew each time. Scrapes at even distances would meet a server whose load is as
even always at the same point of its cycle, and a gauge's mean would be that point's value.
"""

from __future__ import annotations

import random
import re
import threading
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.exposition import ExpositionError, parse
from server_capacity.metrics.prometheus.scraping.history import History, Round
from server_capacity.metrics.prometheus.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from server_capacity.metrics.prometheus.exposition import Page

TIMEOUT_S = 5.0
FEW_SERIES, MOST_WITNESSES = 8, 8
_COUNTER = re.compile(r"^# TYPE (\S+) counter\s*$", re.MULTILINE)
SKIPPED = "the round before it took too long"
ACCEPT = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"


class PageFetcher:
    """Gets a page as it is now: the samples of some names, and of a few counters of its own.

    Where another server answers, one counter at least is likely to fall.
    """

    def __init__(self, web: Web, url: str, names: Collection[str]) -> None:
        self._web = web
        self._url = url
        self._names = frozenset(names)
        self._witnesses: frozenset[str] | None = None

    def __call__(self) -> Page:
        """The page; raises WebError with what is wrong."""
        reply = self._web.get(self._url, ACCEPT, TIMEOUT_S)
        if reply.status != 200:
            raise WebError(self._web.refusal(reply, reply.text if "html" not in reply.kind else ""))
        if "text/html" in reply.kind:
            raise WebError("it is an HTML page, not a metrics page: its path is often /metrics")
        if self._witnesses is None:
            self._witnesses = witnesses(reply.text)
        try:
            page = parse(reply.text, self._names | self._witnesses, "openmetrics" in reply.kind)
        except ExpositionError as error:
            raise WebError(self._web.hide(str(error))) from None
        return replace(page, server=reply.server, peer=reply.peer)


def witnesses(text: str) -> frozenset[str]:
    """The names of the first counters of a page that have few series each."""
    names = {name for family in _COUNTER.findall(text) for name in (family, f"{family}_total")}
    few = [name for name in sorted(names, key=text.find) if 0 < _series_of(name, text) <= FEW_SERIES]
    return frozenset(few[:MOST_WITNESSES])


def _series_of(name: str, text: str) -> int:
    return text.count(f"\n{name} ") + text.count(f"\n{name}{{")


def instants(begin: float, interval_s: float, generator: random.Random) -> Iterator[tuple[float, float]]:
    """For each interval from ``begin`` on, the instant of its one scrape, drawn independently, and its end."""
    for number in count(1):
        end = begin + number * interval_s
        yield end - interval_s * generator.random(), end


class Scraper:
    """Owns the thread and its history. Instants come from the monotonic clock, anchored at the wall clock once."""

    def __init__(self, fetch: Callable[[], Page], interval_s: float) -> None:
        self._fetch = fetch
        self._interval_s = interval_s
        self._random = random.Random()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._anchor = time.time() - time.monotonic()
        self._lock = threading.Lock()
        self.history = History()

    def begin(self) -> None:
        """Start to watch; a first round is due now, so that what follows has something to be a gain over."""
        self._thread = threading.Thread(target=self._watch, name="metrics scraper", daemon=True)
        self._thread.start()

    @property
    def began(self) -> bool:
        """Tells whether it watches, or did."""
        return self._thread is not None

    def end(self, covering: float) -> None:
        """Watch no more. A last round follows where none was begun at ``covering`` (unix seconds) or later."""
        self._ended.set()
        if self._thread:
            self._thread.join(TIMEOUT_S + 1)
        if not any(each.began >= covering and each.error is None for each in reversed(self.history.rounds)):
            self._round(self._now())

    def _now(self) -> float:
        return self._anchor + time.monotonic()

    def _watch(self) -> None:
        begin = self._now()
        self._round(begin)
        for due, end in instants(begin, self._interval_s, self._random):
            if end <= self._now():
                self.history.add(Round(due, due, due, SKIPPED), None)
            elif self._ended.wait(max(0.0, due - self._now())):
                return
            else:
                self._round(due)

    def _round(self, due: float) -> None:
        began, page, error = self._now(), None, None
        try:
            page = self._fetch()
        except WebError as reason:
            error = str(reason)
        with self._lock:
            server, peer = ("", "") if page is None else (page.server, page.peer)
            self.history.add(Round(due, began, self._now(), error, server, peer), page)
