"""Follows the waves of a command, and holds the metrics of them as they stand, for whoever asks in another thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.export.figures import PENDING, Count, Figures, Now
from inference_benchmarker.export.metric_rows import metrics_of
from inference_benchmarker.plan.steering import rate_at
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from inference_benchmarker.export.metric import Metric
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave

WINDOW_S = 5
MOST_SHARE = 0.02  # of the time, for adding up: a search may have hundreds of stages
MOST_LABEL = 200


class Exporter:
    """The metrics of the waves so far; they are made where somebody asks, in that one's thread."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], Figures] = {}
        self._metrics: tuple[Metric, ...] | None = None
        self._changing = threading.Lock()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All as they stand; the same tuple until something changes."""
        with self._changing:
            if self._metrics is None:
                self._metrics = metrics_of(self._runs.values())
            return self._metrics

    def follow(self, plan: WavePlan, run: str | None = None, endpoint: str | None = None) -> WaveExport:
        """A watcher of the next wave. ``run``: of which it is a part; None: a run of its own."""
        return WaveExport(self, plan, run or plan.name, endpoint or endpoint_of(plan))

    def known(self, run: str, endpoint: str) -> Figures:
        """All that is known of a run's waves against an endpoint."""
        labels = {"run": run, "endpoint": endpoint}
        return self._runs.get((run, endpoint)) or Figures(labels, Count(), Now())

    def take(self, figures: Figures) -> None:
        """These stand from now on."""
        with self._changing:
            self._runs[figures.labels["run"], figures.labels["endpoint"]] = figures
            self._metrics = None


class WaveExport:
    """A watcher of one wave, and of how it ended.

    The run's name is known by its first update: that of its directory where it has no other.
    """

    def __init__(self, exporter: Exporter, plan: WavePlan, run: str | None, endpoint: str) -> None:
        self._exporter = exporter
        self._plan = plan
        self._run = run
        self._endpoint = endpoint
        self._before: Figures | None = None
        self._spool_state: SpoolState | None = None
        self._next = 0.0

    def beside(
        self, others: Callable[[RunDir], AbstractContextManager[object]]
    ) -> Callable[[RunDir], AbstractContextManager[object]]:
        """The others beside a wave, and with them the name of the wave's directory."""

        @contextmanager
        def named(run_dir: RunDir) -> Iterator[None]:
            self._run = self._run or run_dir.path.name
            with others(run_dir):
                yield

        return named

    def say(self, message: str) -> None:
        """Sentences are for people."""

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        self._spool_state = spool_state
        begun = time.monotonic()
        if begun >= self._next:
            self._take(self._count(), self._now(spool_state, now_ns), Counter())
            ended = time.monotonic()
            self._next = ended + (ended - begun) / MOST_SHARE

    def close(self) -> None:
        """The wave is over, or will not be; what was counted stays."""
        if self._spool_state is not None:
            self._take(self._count(), Now(in_flight=self._spool_state.ledger.in_flight), Counter())

    def finish(self, wave: Wave) -> None:
        """The wave as it is stored: its ledger and verdict, again once its server's metrics are there."""
        if self._run is None and wave.run_dir is not None:
            self._run = wave.run_dir.path.name
        count = replace(self._count(), ledger=wave.ledger)
        verdict = wave.verdict
        counted = Counter[str]() if verdict.word == PENDING else Counter([verdict.word])
        now = Now(in_flight=wave.ledger.in_flight, verdict=verdict, hosts=wave.summary.hosts)
        self._take(count, now, counted)

    def _count(self) -> Count:
        state = self._spool_state
        if state is None:
            return Count()
        cell = state.feed.total()
        cell.failed = Counter(state.feed.failed)  # in the order in which they came first
        turns = state.turns.total if state.turns.any else {}
        return Count(cell, state.ledger, state.named(), turns)

    def _now(self, spool_state: SpoolState, now_ns: int) -> Now:
        stop = spool_state.whole_seconds
        recent = spool_state.feed.over(stop - WINDOW_S, stop)
        seconds = min(WINDOW_S, stop)
        return Now(
            target_rate=None if spool_state.has_sessions else rate_at(self._plan.load, spool_state.changes, now_ns),
            sent_rate=recent.sent / seconds if seconds else None,
            completed_rate=recent.ok / seconds if seconds else None,
            in_flight=spool_state.ledger.in_flight,
            running=True,
        )

    def _take(self, count: Count, now: Now, verdicts: Counter[str]) -> None:
        """Add the wave to the waves before it."""
        if self._before is None:
            self._before = self._exporter.known(_label(self._run or "unnamed"), _label(self._endpoint))
        before = self._before
        figures = replace(before, count=before.count.with_wave(count), now=now, verdicts=before.verdicts + verdicts)
        self._exporter.take(figures)


def endpoint_of(plan: WavePlan) -> str:
    """The endpoint's name; where it has none, its address, or the name of the file that describes it."""
    file = plan.factories_file or plan.locust_file
    return plan.endpoint or (file.name if file is not None else "unnamed")


def _label(text: str) -> str:
    return one_line(redact(text))[:MOST_LABEL]
