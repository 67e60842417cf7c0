"""Runs -> a set of bars for each metric, from whatever source it comes. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import SIGNS
from visualization.figures.aiperf_export import BLOCK, SINGLE, TABLE
from visualization.figures.aiperf_export import STATISTICS as AIPERF_STATISTICS
from visualization.figures.figures import STATISTICS, Bar, Bars, with_values
from visualization.figures.runs import number, shown, user_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.report.summary_types import SummaryResult
    from visualization.figures.runs import Interval, Run

_AIPERF_STATISTICS = {name: AIPERF_STATISTICS[name] for name in ("mean", "median", "p90", "p95", "p99", "max")}
_UNITS = {
    "percent": "%", "microseconds": "ms", "milliseconds": "ms", "seconds": "s", "bytes": "B", "count": "", "none": "",
    "count/second": "/s", "bytes/second": "B/s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of a summary: its unit, what it is multiplied by to have it, and its interval's name."""

    name: str
    unit: str
    of: Callable[[SummaryResult], float | None]
    factor: float = 1
    interval: str = ""


@dataclass(frozen=True, slots=True)
class _Field:
    """One metric of aiperf's export: where it stands."""

    name: str
    unit: str
    keys: tuple[str, ...]
    statistics: Mapping[str, str] | None = None


def _in(part: object, name: str) -> float | None:
    """A number of a part that not every summary has."""
    found: float | None = getattr(part, name, None)
    return found


def _busiest(summary: SummaryResult) -> float | None:
    """The largest CPU share of a worker."""
    return max((each.cpu_share for each in summary.client.workers if each.cpu_share is not None), default=None)


_LOAD = (
    _Number("Duration (s)", "s", lambda summary: summary.window.duration_s),
    _Number("Client RPS", "/s", lambda summary: _in(summary.rates, "target")),
    _Number("Sent rate", "/s", lambda summary: _in(summary.rates, "sent")),
    _Number("Completed rate", "/s", lambda summary: _in(summary.rates, "completed"), 1, "rate.rate"),
    _Number("Server RPS", "/s", lambda summary: _in(summary.rates, "server_rps")),
    _Number("Requests fired", "", lambda summary: summary.ledger.sent),
    _Number("Requests completed", "", lambda summary: summary.ledger.ok + summary.ledger.failed),
    _Number("Success (%)", "%", lambda summary: summary.success_rate, 100, "success.success"),
    _Number("Success by user (%)", "%", lambda summary: _in(summary.repeats, "success_by_user"), 100),
    _Number("Requests per arrival", "", lambda summary: _in(summary.repeats, "attempts_per_arrival")),
    _Number("Output tokens/s", "/s", lambda summary: _in(summary.tokens, "tokens_out_per_s"), 1, "tokens.tokens"),
)
_TIMES = {
    "latency": "Latency (ms)",
    "response_time": "Response time (ms)",
    "ttft": "TTFT (ms)",
    "itl": "ITL (ms)",
    "lag": "Schedule lag (ms)",
}
_CLIENT = (
    _Number("Host CPU (%)", "%", lambda summary: _in(summary.client.host, "cpu_share_mean"), 100),
    _Number("Worker CPU (%)", "%", _busiest, 100),
)

_AIPERF = (
    _Field("Duration (s)", "s", (BLOCK, "duration_s")),
    _Field("Client RPS", "/s", (BLOCK, "client_rps")),
    _Field("Server RPS", "/s", (BLOCK, "server_rps")),
    _Field("Requests fired", "", (BLOCK, "fired")),
    _Field("Requests completed", "", (BLOCK, "requests")),
    _Field("Latency (ms)", "ms", ("request_latency",), _AIPERF_STATISTICS),
    _Field("TTFT (ms)", "ms", ("time_to_first_token",), _AIPERF_STATISTICS),
    _Field("ITL (ms)", "ms", ("inter_chunk_latency",), _AIPERF_STATISTICS),
    # aiperf's word for what is one value a request
    _Field("TPOT (ms)", "ms", ("inter_token_latency",), _AIPERF_STATISTICS),
    _Field("Output tokens/s", "/s", ("output_token_throughput", "avg")),
)


TIME_FIELDS = set(_TIMES.values())
AIPERF_FIELDS = {field.name for field in _AIPERF}
"""The fields of aiperf that have a name of ours; the others are called as aiperf calls them."""

FORMER_NAMES = {
    "Duration (sec)": "Duration (s)",
    "Client RPS (req/s)": "Client RPS",
    "Server RPS (req/s)": "Server RPS",
    "Total Requests": "Requests completed",
    "Total Requests Fired": "Requests fired",
}
"""The original tool's names of fields that have another one today."""


def all_bars(runs: Sequence[Run]) -> list[Bars]:
    """The bars of every known field, measured or not."""
    return [*_locust_bars(runs), *_user_bars(runs), *_client_bars(runs), *server_bars(runs), *_aiperf_bars(runs)]


def choose(bars: Sequence[Bars], wanted: Mapping[str, Sequence[str]] | None) -> list[Bars]:
    """The bars of the wanted fields, measured or not; without a wish, those that any run has."""
    if wanted is None:
        return [each for each in bars if each.measured]
    known: dict[str, list[str]] = {"locust": [], "server": [], "aiperf": [], "client": []}
    for each in bars:
        known[each.source] += [] if each.field in known[each.source] else [each.field]
    problems = [problem for source, fields in wanted.items() for problem in _unknown(source, fields, known)]
    if problems:
        raise BenchmarkError("\n".join(f"--plot-fields: {problem}" for problem in problems))
    return [each for source, fields in wanted.items() for name in fields for each in bars
            if (each.source, each.field) == (source, _of_today(name, known[source]))]  # fmt: skip


def _of_today(name: str, known: Sequence[str]) -> str:
    """A field under the name it has here."""
    return name if name in known else FORMER_NAMES.get(name, name)


def _unknown(source: str, fields: Sequence[str], known: Mapping[str, list[str]]) -> Iterator[str]:
    if source not in known:
        yield f"there is no source {source!r}. Sources are {', '.join(known)}."
        return
    for name in fields:
        if _of_today(name, known[source]) not in known[source]:
            valid = ", ".join(known[source]) or "none: no run has any"
            yield f"{source} has no field {name!r}. Its fields are {valid}."


def _locust_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    for each in _LOAD:
        yield _number_bars("locust", each, runs)
    for metric, name in _TIMES.items():
        yield _time_bars(name, "ms", metric, 1e3, runs)


def _user_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """Those of the user's own metrics."""
    for name in user_metrics(runs):
        yield _time_bars(name, "", name, 1, runs)


def _client_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    for each in _CLIENT:
        yield _number_bars("client", each, runs)


def _aiperf_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    for field in _AIPERF:
        keys = {choice: (*field.keys, key) for choice, key in (field.statistics or {}).items()} or {"": field.keys}
        found = {choice: tuple(Bar(number(run.aiperf, *path)) for run in runs) for choice, path in keys.items()}
        yield Bars(field.name, _title(field.name), field.unit, "aiperf", found)
    tables = [run.aiperf.get(TABLE, {}) for run in runs]
    for name in dict.fromkeys(name for table in tables for name in table if name not in AIPERF_FIELDS):
        yield _under_its_own_name(name, [table.get(name, {}) for table in tables])


def _under_its_own_name(name: str, rows: Sequence[Mapping[str, float]]) -> Bars:
    """A metric of aiperf's table: a set of bars for each statistic that a run has of it."""
    title, _, unit = name.removesuffix(")").rpartition(" (")
    choices = {"": SINGLE} if any(SINGLE in row for row in rows) else AIPERF_STATISTICS
    bars = {
        choice: tuple(Bar(row.get(column)) for row in rows)
        for choice, column in choices.items()
        if any(column in row for row in rows)
    }
    return Bars(name, title or name, unit if title else "", "aiperf", bars)


def _title(name: str) -> str:
    return name.partition(" (")[0].removesuffix("/s")


def _number_bars(source: str, figure: _Number, runs: Sequence[Run]) -> Bars:
    ends = (run.intervals.get(figure.interval) for run in runs)
    bars = tuple(_bar(run.number(figure.of), figure.factor, each) for run, each in zip(runs, ends, strict=True))
    return Bars(figure.name, _title(figure.name), figure.unit, source, {"": bars})


def _time_bars(name: str, unit: str, metric: str, factor: float, runs: Sequence[Run]) -> Bars:
    bars = {choice: tuple(_time_bar(run, metric, key, factor) for run in runs) for choice, key in STATISTICS.items()}
    return Bars(name, _title(name), unit, "locust", with_values(bars))


def _time_bar(run: Run, metric: str, key: str, factor: float) -> Bar:
    times, statistic = run.times(metric), key.replace("_", ".")
    value = None if times is None else shown(times, key)
    bound = None if times is None else times.lower_bound_from
    is_bound = bound is not None and value is not None and (statistic == "mean" or value >= bound)
    return _bar(value, factor, run.intervals.get(f"{metric}.{statistic}"), "≥" if is_bound else "")


def _bar(value: float | None, factor: float, ends: Interval | None, sign: str = "") -> Bar:
    if value is None:
        return Bar()
    low, high = (None, None) if ends is None else (ends[0] * factor, ends[1] * factor)
    return Bar(value * factor, low, high, sign)


def server_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """A set of bars for each metric and statistic."""
    by_run = [by_title(run) for run in runs]
    for title, statistic in dict.fromkeys(
        (title, statistic) for rows in by_run for title, row in rows.items() for statistic in row.statistics
    ):
        rows = [row.get(title) for row in by_run]
        bars = tuple(_server_bar(row, statistic) for row in rows)
        yield Bars(title, f"{title}, {statistic}", unit_of(rows), "server", {"": bars})


def _server_bar(row: ServerMetric | None, statistic: str) -> Bar:
    if row is None:
        return Bar()
    value, bound = row.statistics.get(statistic), row.side(statistic)
    sign = "" if bound is None else SIGNS[bound]
    return Bar(None if value is None else value * factor_of(row), sign=sign, note=row.reason or "")


def by_title(run: Run) -> dict[str, ServerMetric]:
    """The server's metrics by name; one that stands in several blocks by its dimensions too, as in the report."""
    names = Counter(row.name for row in run.server)
    titles = {}
    for row in run.server:
        where = ", ".join(f"{key}={value}" for key, value in row.dimensions.items())
        titles[f"{row.name} ({where})" if names[row.name] > 1 and where else row.name] = row
    return titles


def factor_of(row: ServerMetric) -> float:
    """The factor that gives a server's value the unit it is shown in."""
    return 1e-3 if (row.unit or "").lower() == "microseconds" else 1


def unit_of(rows: Sequence[ServerMetric | None]) -> str:
    """The unit that a server's metric is shown in, as short as a reader has it; microseconds as the ms of all times."""
    unit = next((row.unit for row in rows if row is not None and row.unit), "")
    return _UNITS.get(unit.lower(), unit)
