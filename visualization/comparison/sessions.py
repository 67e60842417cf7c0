"""Sessions and their turns in a comparison: estimates from one-second blocks, as those of requests are. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS, SESSION_SUCCESS
from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.words.units import NS
from visualization.comparison.blocks import Values, add_to, blocks_of, lengths
from visualization.comparison.estimates import Percentile, Ratio
from visualization.comparison.intervals import RULE_OF_THREE, Estimates, blocks_show_error, error_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.summary.sessions import Sessions
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.estimates import Estimate
    from visualization.comparison.intervals import Metric

SESSION, SUCCESS = "session", SESSION_SUCCESS
_TURNS = {turns.text: turns for turns in (FIRST_TURN, LATER_TURNS)}
_STATS = ("p50", "p99")


def session_metrics(waves: Iterable[Wave]) -> list[Metric]:
    """The metrics of waves of sessions: of whole ones, of their first turns and of the later ones; of others none."""
    summaries = [wave.summary for wave in waves if wave.summary.sessions is not None]
    if not summaries:
        return []
    streams = all(summary.ttft is not None for summary in summaries)
    times = ("ttft", "latency") if streams else ("latency",)
    of_turns = [(f"{turns}.{time}", stat) for turns in _TURNS for time in times for stat in _STATS]
    return [(SUCCESS, SUCCESS), *((SESSION, stat) for stat in _STATS), *of_turns]


def is_of_sessions(metric: str) -> bool:
    """Tells whether a metric is one of these."""
    return metric in (SESSION, SUCCESS) or metric.partition(".")[0] in _TURNS


class SessionEstimates:
    """Metrics of one run's sessions with their errors: ("session", "p99"), ("turn1.ttft", "p50")."""

    def __init__(self, wave: Wave, wanted: Sequence[Metric]) -> None:
        self._sessions = wave.summary.sessions
        self._show_error = blocks_show_error(wave)
        self._turns = {} if self._sessions is None else dict(_by_turns(wave, wanted))
        if self._sessions is not None:
            self._seconds = _SessionSeconds(
                wave, self._sessions, [stat for metric, stat in wanted if metric == SESSION]
            )
            gather(wave.records, self._seconds)

    def of(self, metric: str, stat: str) -> Estimate | None:
        """The estimate of one that was wanted; None where it was not measured."""
        sessions = self._sessions
        if sessions is None:
            return None
        if metric == SUCCESS:
            return self._success(sessions)
        if metric == SESSION:
            return self._duration(sessions, float(stat[1:]))
        turns, _, time = metric.partition(".")
        return self._turns[turns].of(time, stat) if turns in self._turns else None

    def _success(self, sessions: Sessions) -> Estimate | None:
        """A session counts in the second in which it began."""
        if sessions.success is None:
            return None
        begun = self._seconds.begun > 0
        error = error_of(self._seconds.completed[begun], self._seconds.begun[begun])
        blocks = int(np.count_nonzero(begun)) if self._show_error else 0
        return Ratio(sessions.success, error, blocks, most=1.0, unseen=RULE_OF_THREE / sessions.started)

    def _duration(self, sessions: Sessions, percent: float) -> Estimate | None:
        if sessions.duration is None:
            return None
        values = self._seconds.durations()
        below = values.at_most(sessions.duration.percentile(percent))
        blocks = len(values.counts) if self._show_error else 0
        return Percentile(sessions.duration, percent, error_of(below, values.counts), blocks)


def _by_turns(wave: Wave, wanted: Sequence[Metric]) -> Iterable[tuple[str, Estimates]]:
    for text, turns in _TURNS.items():
        own = [(metric.partition(".")[2], stat) for metric, stat in wanted if metric.startswith(f"{text}.")]
        if own and turns in wave.summary.of_turns:
            yield text, Estimates(wave, own, turns)


class _SessionSeconds:
    """Gathers what each second had of the sessions that began in it; all requests of one are in one part."""

    columns = (*ROW_KEY, "due", "done", "ended")

    def __init__(self, wave: Wave, sessions: Sessions, stats: Iterable[str]) -> None:
        number = len(lengths((wave.window.planned_ns or wave.window.duration_ns) / NS))
        duration = sessions.duration
        limits = set() if duration is None else {duration.percentile(float(stat[1:])) for stat in stats}
        self.begun, self.completed = np.zeros(number), np.zeros(number)
        self._values = Values(number, limits)
        self._open: list[tuple[Int64, Int64]] = []
        self._last_ns = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        index, done = part.int("index"), part.int("done")
        last = np.append(index[1:] != index[:-1], True)
        begun, over = part.begun[last], part.named("ended", "completed")[last]
        is_open, seconds = ~part.has("ended")[last], blocks_of(part.begun[last], len(self.begun))
        add_to(self.begun, seconds)
        add_to(self.completed, seconds[over])
        self._values.add_values(seconds[over], (done[last] - begun)[over] / NS)
        self._open.append((seconds[is_open], begun[is_open]))
        self._last_ns = max(self._last_ns, int(done.max()))

    def durations(self) -> Values:
        """The durations of completed ones, and of those left open their ages. Nothing can follow."""
        for seconds, begun in self._open:
            ages: Floats = (self._last_ns - begun) / NS
            self._values.add_values(seconds, ages)
        self._open = []
        return self._values
