"""A run as figures need it: what stood in the files of its run directory, and its numbers by their keys. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.records.metrics import PREFIX, is_metric_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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

    ``facts`` and ``plan`` are summary.json and plan.json, ``server`` the rows of server_metrics.json, ``aiperf`` what
    ``aiperf_export`` reads. ``timeline`` and ``client`` (process: its columns) are by second of the wave. ``tails``:
    for each time, (nines, seconds) of its distribution: 2 nines are p99. ``intervals``: 95%, by a name such as
    ``latency.p99``. ``hover``: the lines of --plot-metadata. ``has_wave``: else aiperf ran alone.
    ``is_damaged``: some of it could not be read or contradicts the rest.
    """

    path: Path
    label: str
    hover: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    timeline: Table = field(default_factory=dict)
    client: dict[str, Table] = field(default_factory=dict)
    server: tuple[dict[str, Any], ...] = ()
    aiperf: dict[str, Any] = field(default_factory=dict)
    tails: dict[str, Points] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    has_wave: bool = True
    is_damaged: bool = False

    def number(self, *keys: str) -> float | None:
        """A number of summary.json by its keys."""
        return number(self.facts, *keys)

    @property
    def is_refused(self) -> bool:
        """Tells whether it is a wave of which nothing can be believed, as ``problems`` say."""
        return self.has_wave and not self.facts

    @property
    def verdict(self) -> str:
        """VALID, INVALID, or UNREADABLE where the summary is damaged; without a wave there is none to judge."""
        return str(self.facts.get("verdict", "UNREADABLE")) if self.has_wave else AIPERF_ALONE

    @property
    def doubtful(self) -> bool:
        """Tells whether its numbers must not be taken for the endpoint's."""
        return self.has_wave and not self.verdict.startswith("VALID")


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


def keys_of(metric: str) -> tuple[str, ...]:
    """The keys under which summary.json has a metric, a time or one of the user's own."""
    return ("metrics", metric.removeprefix(PREFIX)) if metric.startswith(PREFIX) else (metric,)


def user_metrics(runs: Iterable[Run]) -> list[str]:
    """The metrics of the user's own that any of these runs has, as limits call them."""
    told = (run.facts.get("metrics") for run in runs)
    names = {name for each in told if isinstance(each, dict) for name in each if is_metric_name(name)}
    return [PREFIX + name for name in sorted(names)[:_MOST_METRICS]]
