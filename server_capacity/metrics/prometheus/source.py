"""The Prometheus source: pages are watched from ``begin`` on, servers are asked when the wave is over."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from inference_benchmarker.errors import BenchmarkError, refuse
from server_capacity.metrics.prometheus.block import PageBlock, ServerBlock
from server_capacity.metrics.prometheus.derived import derived
from server_capacity.metrics.prometheus.promql.replicas import Replicas
from server_capacity.metrics.prometheus.promql.server import PrometheusServer
from server_capacity.metrics.prometheus.scraping.history import History
from server_capacity.metrics.prometheus.scraping.latest import readings
from server_capacity.metrics.prometheus.scraping.processes import STARTED
from server_capacity.metrics.prometheus.scraping.reading import all_missing, read, sample_names, window_of
from server_capacity.metrics.prometheus.scraping.scraper import PageFetcher, Scraper
from server_capacity.metrics.prometheus.scraping.series import Window
from server_capacity.metrics.prometheus.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.instances import InstanceSource
    from inference_benchmarker.facts.server_metric import Interval, LiveMetric, ServerLog, ServerMetric
    from server_capacity.metrics.prometheus.block import Block
    from server_capacity.metrics.prometheus.web import Signs

INTERRUPTED = "interrupted before it was read"
NO_PAST = (
    "a metrics page keeps no history: it can only be read while a wave runs, so ask a Prometheus server that scrapes it"
)


def make_source(blocks: Sequence[Block], environment: Mapping[str, str] | None = None) -> Prometheus:
    """The checked blocks, ready to be asked; secrets come from ``environment``.

    BenchmarkError names every variable that a block names and that is not set.
    """
    parts: list[Page | Server] = []
    replicas: list[Replicas] = []
    problems = []
    for block in blocks:
        try:
            web = Web(block.credentials, environment or {}, _signer(block))
            parts.append(Page(block, web) if isinstance(block, PageBlock) else Server(PrometheusServer(block, web)))
            if isinstance(block, ServerBlock) and block.replicas:
                replicas.append(Replicas(block.url, block.replicas, web))
        except BenchmarkError as error:
            problems.append(str(error))
    refuse(problems)
    return Prometheus(parts, replicas)


def _signer(block: Block) -> Signs | None:
    """The signer of a block that asks for AWS's signature; botocore is imported for no other."""
    if isinstance(block, PageBlock) or block.signature is None:
        return None
    from server_capacity.metrics.prometheus.sigv4 import Signer

    return Signer(block.signature)


class Prometheus:
    """Implements ``Source``."""

    def __init__(self, parts: list[Page | Server], replicas: Sequence[Replicas] = ()) -> None:
        self._parts = parts
        self._replicas = replicas

    def warnings(self, seconds: float | None, *, ahead: bool = True) -> list[str]:
        """The warnings that one reading of each page gives."""
        del seconds, ahead
        return [said for part in self._parts for said in part.warnings()]

    def instances(self) -> Sequence[InstanceSource]:
        """The queries that count replicas."""
        return self._replicas

    def begin(self) -> None:
        """Start to watch the pages."""
        for part in self._parts:
            part.begin()

    def latest(self) -> list[LiveMetric]:
        """The newest readings of the pages; servers are asked when the wave is over."""
        return [reading for part in self._parts for reading in part.latest()]

    def collect(self, interval: Interval, say: Callable[[str], None]) -> list[ServerMetric]:
        """Every metric over the window. Ctrl-C ends the waiting with what there is."""
        rows: list[ServerMetric] = []
        interrupted = False
        for part in self._parts:
            got: list[ServerMetric] = []
            try:
                for row in () if interrupted else part.collect(interval, say):
                    got.append(row)  # noqa: PERF402  an interrupt keeps what came
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:
                names = {(row.name, row.namespace) for row in got}
                got += [row for row in part.unread(interval) if (row.name, row.namespace) not in names]
            rows += got
        return rows

    def logs(self, interval: Interval, say: Callable[[str], None]) -> list[ServerLog]:
        """None: Prometheus has no logs."""
        del interval, say
        return []


class Server:
    """A block that names a Prometheus server."""

    def __init__(self, server: PrometheusServer) -> None:
        self._server = server

    def warnings(self) -> Iterator[str]:
        """None: what it holds can be asked for at any time."""
        yield from ()

    def begin(self) -> None:
        """Nothing has to watch meanwhile: the server does."""

    def latest(self) -> list[LiveMetric]:
        """Nothing: it is asked when the wave is over."""
        return []

    def collect(self, interval: Interval, say: Callable[[str], None]) -> Iterator[ServerMetric]:
        """Ask, once the lag is over."""
        wait_s = max(0.0, interval.end + self._server.lag - time.time())
        waiting = f" (waiting {wait_s:.0f} s until they are published)" if wait_s else ""
        say(f"⏳ Fetching server metrics: prometheus, {self._server.place}{waiting}...")
        time.sleep(min(wait_s, self._server.lag))
        yield from self._server.read(interval, time.time())

    def unread(self, interval: Interval) -> Iterator[ServerMetric]:
        """Rows for what would have been asked."""
        del interval
        return self._server.unread(INTERRUPTED)


class Page:
    """A block that names a metrics page."""

    def __init__(self, block: PageBlock, web: Web) -> None:
        self._wanted = block.wanted
        self._url = block.url
        self._interval_s = block.interval
        self._fetch = PageFetcher(web, self._url, {*sample_names(self._wanted), STARTED})
        self._scraper = Scraper(self._fetch, self._interval_s)
        self._readings: list[LiveMetric] = []
        self._read_at = 0

    def warnings(self) -> Iterator[str]:
        """That the page cannot be read, or that it has nothing of what is asked for."""
        parts = urlsplit(self._url)
        place = f"{parts.netloc}{parts.path}"
        try:
            page = self._fetch()
        except WebError as error:
            yield f"{place}: {error}"
            return
        if missing := all_missing(self._wanted, page):
            yield f"{place}: {missing}"

    def begin(self) -> None:
        """Start the thread; a second wave starts anew."""
        self._scraper = Scraper(self._fetch, self._interval_s)
        self._scraper.begin()

    def latest(self) -> list[LiveMetric]:
        """The values of the last rounds, worked out once for each round."""
        rounds = len(self._scraper.history.rounds)
        if rounds != self._read_at:
            self._readings, self._read_at = list(readings(self._wanted, self._scraper.history)), rounds
        return self._readings

    def collect(self, interval: Interval, say: Callable[[str], None]) -> Iterator[ServerMetric]:
        """End the thread and read what it saw."""
        if not self._scraper.began:
            return iter(self._no_past())
        say(f"⏳ Fetching server metrics: prometheus, {urlsplit(self._url).netloc}...")
        self._scraper.end(interval.end)
        return self.unread(interval)

    def _no_past(self) -> list[ServerMetric]:
        nobody = Window(History(), (), (), complete=False, reason=None, length=0.0)
        rows = [row for wanted in self._wanted for row in read(wanted, nobody, urlsplit(self._url).netloc)]
        return [replace(row, reason=NO_PAST) for row in rows]

    def unread(self, interval: Interval) -> Iterator[ServerMetric]:
        """Rows for what was seen so far."""
        window = window_of(self._scraper.history, interval, self._interval_s)
        instance = urlsplit(self._url).netloc
        rows = [row for wanted in self._wanted for row in read(wanted, window, instance)]
        yield from (*rows, *derived(rows))
