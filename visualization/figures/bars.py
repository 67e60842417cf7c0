"""Runs -> a set of bars for each metric, from whatever source it comes. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import SIGNS
from visualization.figures.aiperf_export import BLOCK, SINGLE, TABLE
from visualization.figures.aiperf_export import STATISTICS as AIPERF_STATISTICS
from visualization.figures.figures import STATISTICS, Bar, Bars
from visualization.figures.runs import Interval, Run, below, keys_of, number, user_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_AIPERF_STATISTICS = {name: AIPERF_STATISTICS[name] for name in ("mean", "median", "p90", "p95", "p99", "max")}
_UNITS = {
    "percent": "%", "microseconds": "ms", "milliseconds": "ms", "seconds": "s", "bytes": "B", "count": "", "none": "",
    "count/second": "/s", "bytes/second": "B/s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Field:
    """One metric of summary.json: where it stands, what it is multiplied by to have its unit, its interval's name."""

    name: str
    unit: str
    keys: tuple[str, ...]
    factor: float = 1
    interval: str = ""
    statistics: Mapping[str, str] | None = None

    @property
    def title(self) -> str:
        return self.name.partition(" (")[0].removesuffix("/s")


def _time(name: str, key: str) -> _Field:
    return _Field(f"{name} (ms)", "ms", (key,), 1e3, key, STATISTICS)


_LOAD = (
    _Field("Duration (s)", "s", ("window", "duration_s")),
    _Field("Client RPS", "/s", ("rates", "target")),
    _Field("Sent rate", "/s", ("rates", "sent")),
    _Field("Completed rate", "/s", ("rates", "completed"), 1, "rate.rate"),
    _Field("Server RPS", "/s", ("rates", "server_rps")),
    _Field("Requests fired", "", ("ledger", "sent")),
    _Field("Requests completed", "", ("ledger", "completed")),
    _Field("Success (%)", "%", ("success_rate",), 100, "success.success"),
    _Field("Success by user (%)", "%", ("repeats", "success_by_user"), 100),
    _Field("Requests per arrival", "", ("repeats", "attempts_per_arrival")),
    _Field("Output tokens/s", "/s", ("tokens", "tokens_out_per_s"), 1, "tokens.tokens"),
)
_TIMES = (
    _time("Latency", "latency"),
    _time("Response time", "response_time"),
    _time("TTFT", "ttft"),
    _time("ITL", "itl"),
    _time("Schedule lag", "lag"),
)
_CLIENT = (
    _Field("Host CPU (%)", "%", ("client", "host", "cpu_share_mean"), 100),
    _Field("Worker CPU (%)", "%", ("client", "busiest"), 100),
)
_AIPERF = (
    _Field("Duration (s)", "s", (BLOCK, "duration_s")),
    _Field("Client RPS", "/s", (BLOCK, "client_rps")),
    _Field("Server RPS", "/s", (BLOCK, "server_rps")),
    _Field("Requests fired", "", (BLOCK, "fired")),
    _Field("Requests completed", "", (BLOCK, "requests")),
    _Field("Latency (ms)", "ms", ("request_latency",), 1, "", _AIPERF_STATISTICS),
    _Field("TTFT (ms)", "ms", ("time_to_first_token",), 1, "", _AIPERF_STATISTICS),
    _Field("ITL (ms)", "ms", ("inter_chunk_latency",), 1, "", _AIPERF_STATISTICS),
    # aiperf's word for what is one value a request
    _Field("TPOT (ms)", "ms", ("inter_token_latency",), 1, "", _AIPERF_STATISTICS),
    _Field("Output tokens/s", "/s", ("output_token_throughput", "avg")),
)


TIME_FIELDS = {field.name for field in _TIMES}
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
    facts = [{**run.facts, "ledger": _with_completed(run)} for run in runs]
    for field in (*_LOAD, *_TIMES):
        yield _bars("locust", field, facts, [run.intervals for run in runs])


def _user_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """Those of the user's own metrics."""
    for name in user_metrics(runs):
        field = _Field(name, "", keys_of(name), 1, name, STATISTICS)
        yield _bars("locust", field, [run.facts for run in runs], [run.intervals for run in runs])


def _with_completed(run: Run) -> dict[str, Any]:
    ok, failed = run.number("ledger", "ok"), run.number("ledger", "failed")
    ledger = run.facts.get("ledger")
    known = ok is not None and failed is not None
    return {**(ledger if isinstance(ledger, dict) else {}), "completed": ok + failed if known else None}  # type: ignore[operator]


def _client_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    facts = [{"client": {"host": below(run.facts, "client", "host"), "busiest": _busiest(run)}} for run in runs]
    for field in _CLIENT:
        yield _bars("client", field, facts)


def _aiperf_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    for field in _AIPERF:
        yield _bars("aiperf", field, [run.aiperf for run in runs])
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


def _bars(
    source: str, field: _Field, facts: Sequence[Any], intervals: Sequence[Mapping[str, Interval]] | None = None
) -> Bars:
    """The bars of a field; a statistic that no run has is no choice."""
    known = intervals or [{} for _ in facts]
    found = {
        choice: tuple(
            _bar(field, (*field.keys, key) if key else field.keys, facts[run], known[run]) for run in range(len(facts))
        )
        for choice, key in (field.statistics or {"": ""}).items()
    }
    return Bars(field.name, field.title, field.unit, source, found)


def _bar(field: _Field, keys: tuple[str, ...], facts: Any, intervals: Mapping[str, Interval]) -> Bar:
    value = number(facts, *keys)
    if value is None:
        return Bar()
    statistic = keys[-1].replace("_", ".")
    ends = intervals.get(f"{field.interval}.{statistic}" if field.statistics else field.interval)
    bound = number(facts, *field.keys, "lower_bound_from") if field.statistics else None
    low, high = (None, None) if ends is None else (ends[0] * field.factor, ends[1] * field.factor)
    lower = bound is not None and (statistic == "mean" or value >= bound)
    return Bar(value * field.factor, low, high, "≥" if lower else "")


def server_bars(runs: Sequence[Run]) -> Iterator[Bars]:
    """A set of bars for each metric and statistic."""
    by_run = [by_title(run) for run in runs]
    for title, statistic in dict.fromkeys(
        (title, statistic) for rows in by_run for title, row in rows.items() for statistic in row["statistics"]
    ):
        rows = [row.get(title, {}) for row in by_run]
        bars = tuple(_server_bar(row, statistic) for row in rows)
        yield Bars(title, f"{title}, {statistic}", unit_of(rows), "server", {"": bars})


def _server_bar(row: Mapping[str, Any], statistic: str) -> Bar:
    value = number(row, "statistics", statistic)
    said = below(row, "bounds", statistic)
    sign = SIGNS.get(said, "") if isinstance(said, str) else ""
    return Bar(None if value is None else value * factor_of(row), sign=sign, note=str(row.get("reason") or ""))


def by_title(run: Run) -> dict[str, dict[str, Any]]:
    """The server's metrics by name; one that stands in several blocks by its dimensions too, as in the report."""
    names = Counter(row["name"] for row in run.server)
    titles = {}
    for row in run.server:
        where = ", ".join(f"{key}={value}" for key, value in (row.get("dimensions") or {}).items())
        titles[f"{row['name']} ({where})" if names[row["name"]] > 1 and where else row["name"]] = row
    return titles


def factor_of(row: Mapping[str, Any]) -> float:
    """The factor that gives a server's value the unit it is shown in."""
    return 1e-3 if str(row.get("unit")).lower() == "microseconds" else 1


def unit_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The unit that a server's metric is shown in, as short as a reader has it; microseconds as the ms of all times."""
    unit = next((str(row["unit"]) for row in rows if row.get("unit")), "")
    return _UNITS.get(unit.lower(), unit)


def _busiest(run: Run) -> float | None:
    """The largest CPU share of a worker."""
    workers = below(run.facts, "client", "workers")
    shares = [number(worker, "cpu_share") for worker in (workers if isinstance(workers, list) else [])]
    return max((share for share in shares if share is not None), default=None)
