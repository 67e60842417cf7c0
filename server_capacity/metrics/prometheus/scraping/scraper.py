"""Watches a metrics page: a thread that scrapes it from ``begin`` until it is told to end, once in each interval.

The instant within an interval is drawn anew each time. Scrapes at even distances would meet a server whose load is as
even always at the same point of its cycle, and a gauge's mean would be that point's value.
"""

from __future__ import annotations

import random
import threading
import time
from itertools import count
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.exposition import ExpositionError, parse
from server_capacity.metrics.prometheus.scraping.history import History, Round
from server_capacity.metrics.prometheus.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from server_capacity.metrics.prometheus.exposition import Page

TIMEOUT_S = 5.0
SKIPPED = "the round before it took too long"
ACCEPT = "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"


def fetch_page(web: Web, url: str, names: Collection[str]) -> Page:
    """The page as it is now, with the samples of these names. Raises WebError with what is wrong."""
    reply = web.get(url, ACCEPT, TIMEOUT_S)
    if reply.status != 200:
        raise WebError(web.refusal(reply, reply.text if "html" not in reply.kind else ""))
    if "text/html" in reply.kind:
        raise WebError("it is an HTML page, not a metrics page: its path is often /metrics")
    try:
        return parse(reply.text, names, "openmetrics" in reply.kind)
    except ExpositionError as error:
        raise WebError(web.hide(str(error))) from None


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
            self.history.add(Round(due, began, self._now(), error), page)
