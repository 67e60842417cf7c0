"""A run as figures need it: what stood in the files of its run directory, and its numbers by their keys. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.records.user_metrics import PREFIX, is_metric_name
from inference_benchmarker.report.request_numbers import Times
from inference_benchmarker.summary.time_table import has_enough

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.report.request_numbers import WaveWindow
    from inference_benchmarker.report.summary_types import SummaryResult
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.wave.files.client_table import Table
    from visualization.figures.figures import Points

Interval = tuple[float, float]

LEGEND = "legend"
AIPERF_ALONE = "aiperf only"
ALONE = ("rate", "success", "tokens")
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p99.9")
_MOST_METRICS = 100


@dataclass(frozen=True, slots=True)
class Run:
    """One run directory. What was not measured or cannot be read is empty; ``problems`` say what was damaged.

    ``summary`` is as in the report; ``server``: the rows of server_metrics.json, ``aiperf`` what
    ``aiperf_export`` reads. ``timeline`` and ``client`` (process: its columns) are by second of the wave. ``tails``:
    for each time, (nines, seconds) of its distribution: 2 nines are p99. ``intervals``: 95%, by a name such as
    ``latency.p99``. ``hover``: the lines of --plot-metadata. ``has_wave``: else aiperf ran alone.
    ``is_damaged``: some of it could not be read or contradicts the rest. ``outcome``: the word with which its report
    begins; empty where that is the verdict. ``reservations``: clauses on what cannot be checked, and on other rules.
    """

    path: Path
    label: str
    hover: tuple[str, ...] = ()
    summary: SummaryResult | None = None
    plan: WavePlan | None = None
    timeline: Table = field(default_factory=dict)
    client: dict[str, Table] = field(default_factory=dict)
    server: tuple[ServerMetric, ...] = ()
    aiperf: dict[str, Any] = field(default_factory=dict)
    tails: dict[str, Points] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    has_wave: bool = True
    is_damaged: bool = False
    outcome: str = ""
    reservations: tuple[str, ...] = ()

    def times(self, metric: str) -> Times | None:
        """A time, or a metric of the user's own, by its name in limits; None for other metrics."""
        if self.summary is None:
            return None
        if metric.startswith(PREFIX):
            return self.summary.metrics.get(metric.removeprefix(PREFIX))
        found = getattr(self.summary, metric, None)
        return found if isinstance(found, Times) else None

    def statistic(self, metric: str, statistic: str) -> float | None:
        """A statistic of a time by its name in limits, such as p99.9."""
        found: float | None = getattr(self.times(metric), statistic.replace(".", "_"), None)
        return found

    def number(self, of: Callable[[SummaryResult], float | None]) -> float | None:
        """A number of the summary, where there is one."""
        return None if self.summary is None else of(self.summary)

    @property
    def completed(self) -> float | None:
        """The completed rate."""
        return self.number(lambda summary: None if summary.rates is None else summary.rates.completed)

    @property
    def success_rate(self) -> float | None:
        """The share of the requests that succeeded."""
        return self.number(lambda summary: summary.success_rate)

    @property
    def window(self) -> WaveWindow | None:
        """When it was."""
        return None if self.summary is None else self.summary.window

    @property
    def findings(self) -> Sequence[Finding]:
        """The findings on it."""
        return () if self.summary is None else self.summary.findings

    @property
    def misses_limit(self) -> bool:
        """Tells whether it missed a threshold or a limit."""
        return any(each.severity == "missed" for each in self.findings)

    @property
    def is_refused(self) -> bool:
        """Tells whether it is a wave of which nothing can be believed, as ``problems`` say."""
        return self.has_wave and self.summary is None

    @property
    def verdict(self) -> str:
        """VALID, INVALID, or UNREADABLE where the summary is damaged; without a wave there is none to judge."""
        if not self.has_wave:
            return AIPERF_ALONE
        return "UNREADABLE" if self.summary is None else self.summary.verdict

    @property
    def word(self) -> str:
        """The word with which its report begins."""
        return self.outcome or self.verdict

    @property
    def doubtful(self) -> bool:
        """Tells whether its numbers must not be taken for the endpoint's."""
        return self.has_wave and not self.verdict.startswith("VALID")


def shown(times: Times, key: str) -> float | None:
    """A statistic by its key in summary.json; None for a percentile that is simply the largest of too few values."""
    percent = float(key[1:].replace("_", ".")) if key[1:2].isdigit() else 0.0
    value: float = getattr(times, key)
    return value if has_enough(times.count, percent) else None


def number(data: Any, *keys: str) -> float | None:
    """A finite number below ``keys``; None where there is none."""
    value = below(data, *keys)
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < MOST_FLOAT
    return float(value) if usable else None


def below(data: Any, *keys: str) -> Any:
    """Whatever stands below ``keys``; None where nothing does."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def user_metrics(runs: Iterable[Run]) -> list[str]:
    """The metrics of the user's own that any of these runs has, as limits call them."""
    names = {name for run in runs if run.summary for name in run.summary.metrics if is_metric_name(name)}
    return [PREFIX + name for name in sorted(names)[:_MOST_METRICS]]
