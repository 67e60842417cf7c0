"""aiperf's results, read from the files it exports: a line a request (JSONL), and its own statistics (JSON)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.data.digest import require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_with_digest
from inference_benchmarker.data.json_text import MOST_BYTES, parse_json
from inference_benchmarker.data.typed import require
from inference_benchmarker.exit_codes import INTERRUPTED, MISSED, OK
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from inference_benchmarker.system.files import is_file, opened, read_bytes
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.redact import redact
from inference_benchmarker.words.units import NS
from server_capacity.aiperf.result_check import check_result, require_as_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

SUMMARY = "summary.json"
RECORDS = "profile_export.jsonl"
_STATISTICS = "profile_export_aiperf.json"
_TIMES = {
    "latency": "request_latency",
    "ttft": "time_to_first_token",
    "itl": "inter_chunk_latency",
    "tpot": "inter_token_latency",
}
"""Our word for each time, and aiperf's. Its inter-token latency is one value a request: what we call TPOT."""
_MOST_LINE, _MOST_RECORDS = 1 << 24, 1 << 31
_STATS = {"mean": "avg", "min": "min", **{p: p for p in ("p50", "p90", "p95", "p99")}, "max": "max"}


@dataclass(frozen=True, slots=True)
class AiperfResult:
    """aiperf's result; times in seconds, None where it has no such number.

    ``duration_s``: from the first request sent to the last answer. ``times``: statistics by name of each time.
    ``success_threshold``: the least share of ok requests that was asked for. ``folder``: where aiperf's own files are.
    ``metrics``: every metric of aiperf's own statistics by its tag, in aiperf's units.
    ``requests``: those that were answered, well or badly. ``unanswered``: those it gave up on; where its grace period
    ran out (``gave_up``), there may be more of these.
    """

    version: str | None
    start_unix_s: float
    duration_s: float
    requests: int
    ok: int
    times: dict[str, dict[str, float]]
    tokens_in: int | None
    tokens_out: int | None
    tokens_out_per_s: float | None
    errors: dict[str, int]
    success_threshold: float
    folder: str
    interrupted: bool = False
    unanswered: int = 0
    gave_up: bool = False
    server_metrics: tuple[ServerMetric, ...] | None = None
    metrics: dict[str, dict[str, float | str]] = field(default_factory=dict)

    @property
    def fired(self) -> int:
        """Those answered, and those it gave up on."""
        return self.requests + self.unanswered

    @property
    def success_rate(self) -> float:
        """Ok / fired, which are the total requests unless it gave up on some."""
        return self.ok / self.fired if self.fired else 0.0

    @property
    def server_rps(self) -> float:
        """Total requests / duration."""
        return self.requests / self.duration_s if self.duration_s else 0.0

    @property
    def exit_code(self) -> int:
        """130 where it was interrupted, 1 where too few requests succeeded or nobody knows how few, else 0."""
        if self.interrupted:
            return INTERRUPTED
        return MISSED if self.gave_up or self.success_rate < self.success_threshold else OK

    def with_server_metrics(self, metrics: Iterable[ServerMetric]) -> Self:
        """The same with what its server's metrics say."""
        return replace(self, server_metrics=tuple(metrics))

    def to_json(self) -> dict[str, Any]:
        """The content of aiperf/summary.json."""
        facts = {name: getattr(self, name) for name in self.__slots__ if name not in ("server_metrics", "folder")}
        derived = {
            "fired": self.fired,
            "success_rate": self.success_rate,
            "server_rps": self.server_rps,
            "exit_code": self.exit_code,
        }
        return {"schema_version": SCHEMA_VERSION, **facts, **derived, "server_metrics": encoded(self.server_metrics)}

    def save(self) -> None:
        """Store it beside aiperf's own files."""
        folder = Path(self.folder)
        write_with_digest(folder / SUMMARY, self.to_json(), folder.parent)

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The result that was stored there, checked against itself; None where there is none."""
        require_as_stored(folder)
        if not is_file(folder / SUMMARY, folder.parent):
            return None
        data = read_json(folder / SUMMARY, folder.parent)
        try:
            require_digest(data)  # an earlier version wrote none
            found = decoded({**data, "folder": str(folder)}, cls)
            check_result(found.to_json(), data)
            return found
        except UNREADABLE as error:
            raise foreign(folder / SUMMARY, error) from None


class _Request(NamedTuple):
    """A line of aiperf's records: ``number`` in its order of sending, and the kind of the ``error`` that it ended in.

    Instants are unix nanoseconds, as aiperf has them: None where they are missing.
    """

    is_warmup: bool
    start_ns: float | None
    end_ns: float | None
    number: int | None
    error: str | None

    @classmethod
    def of(cls, row: dict[str, Any]) -> Self:
        """The request of its JSON; one of ``UNREADABLE`` for an object of another form."""
        about, error = row["metadata"], row.get("error")
        if not error and about.get("was_cancelled"):
            error = {"type": "cancelled"}
        return cls(
            about.get("benchmark_phase") == "warmup",
            about.get("request_start_ns"),
            about.get("request_end_ns"),
            about.get("session_num"),
            _error_key(error) if error else None,
        )


def read_export(folder: Path, success_threshold: float, *, interrupted: bool) -> tuple[AiperfResult, Interval] | None:
    """The result and the window on the wall clock; None where aiperf left too little for any figure of requests.

    BenchmarkError for files that are not aiperf's, or of another form.
    """
    try:
        return _read_export(folder, success_threshold, interrupted=interrupted)
    except (OSError, *UNREADABLE) as error:
        raise foreign(folder / RECORDS, error) from None


def _read_export(folder: Path, success_threshold: float, *, interrupted: bool) -> tuple[AiperfResult, Interval] | None:
    """Aiperf writes no statistics where no request succeeded, nor where it was ended."""
    rows = list(map(_Request.of, _records(folder / RECORDS)))
    measured = [row for row in rows if not row.is_warmup]
    statistics = _json(folder / _STATISTICS)
    errors = [row.error for row in measured if row.error is not None]
    if not measured or (statistics is None and len(errors) < len(measured) and not interrupted):
        return None
    window = _interval(rows, measured)
    statistics = statistics or {}
    result = AiperfResult(
        version=statistics.get("aiperf_version"),
        start_unix_s=window.start,
        duration_s=window.end - window.start,
        requests=len(measured),
        ok=len(measured) - len(errors),
        times={ours: found for ours, theirs in _TIMES.items() if (found := _time(statistics.get(theirs)))},
        tokens_in=_total(statistics, "total_isl"),
        tokens_out=_total(statistics, "total_osl"),
        tokens_out_per_s=statistics.get("output_token_throughput", {}).get("avg"),
        errors=dict(Counter(errors).most_common()),
        success_threshold=success_threshold,
        folder=str(folder),
        interrupted=interrupted,
        unanswered=0 if interrupted else _missing(measured),
        gave_up=not interrupted and _gave_up(statistics),
        metrics=dict(_metrics(statistics)),
    )
    require(result, AiperfResult, "aiperf")
    return result, window


def _metrics(statistics: dict[str, Any]) -> Iterator[tuple[str, dict[str, float | str]]]:
    """Each metric with its unit; what else aiperf reports of its run has none."""
    for tag, metric in statistics.items():
        if isinstance(metric, dict) and "unit" in metric:
            yield tag, {name: value for name, value in metric.items() if isinstance(value, (int, float, str))}


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """A record for each line; where aiperf was ended, the last line may be cut off."""
    if not is_file(path, path.parent.parent):
        return
    with opened(path, path.parent.parent) as file:
        while line := file.readline(_MOST_LINE):
            if file.tell() > _MOST_RECORDS:
                raise ValueError(f"is larger than {_MOST_RECORDS >> 30} GiB")
            try:
                yield parse_json(line, constant=_nothing)
            except ValueError:
                return


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = parse_json(read_bytes(path, MOST_BYTES, path.parent.parent), constant=_nothing)
    except (OSError, ValueError):
        return None
    return found


def _nothing(_: str) -> None:
    """Aiperf writes NaN where it has no number."""


def _interval(rows: Sequence[_Request], measured: Sequence[_Request]) -> Interval:
    begin, start = (min(_seconds(row.start_ns) for row in some) for some in (rows, measured))
    return Interval(begin, start, max(_seconds(row.end_ns) for row in measured), len(rows))


def _seconds(instant_ns: float | None) -> float:
    if instant_ns is None:
        raise ValueError("a request has no instants")
    return instant_ns / NS


def _missing(measured: Sequence[_Request]) -> int:
    """Requests that it cancelled when its grace period was over: it numbers what it sends, and exports no such one."""
    numbers = {row.number for row in measured if row.number is not None}
    return max(numbers, default=-1) + 1 - len(numbers)


def _gave_up(statistics: dict[str, Any]) -> bool:
    """Tells whether its last phase took all its time and grace period: then the last requests may be missing too."""
    phase = statistics.get("input_config", {}).get("phases", [{}])[-1]
    if not phase.get("duration") or not phase.get("grace_period"):
        return False
    begin, end = (datetime.fromisoformat(statistics[name]) for name in ("start_time", "end_time"))
    return (end - begin).total_seconds() >= float(phase["duration"] + phase["grace_period"])


def _error_key(error: dict[str, Any]) -> str:
    """Kind and HTTP status, never the free text."""
    return redact(" ".join(str(part) for part in (error.get("type"), error.get("code")) if part))


def _time(metric: dict[str, Any] | None) -> dict[str, float]:
    """Statistics of a time, which aiperf gives in milliseconds."""
    if metric is None or metric.get("unit") != "ms":
        return {}
    return {ours: metric[theirs] / 1000 for ours, theirs in _STATS.items() if metric.get(theirs) is not None}


def _total(statistics: dict[str, Any], name: str) -> int | None:
    value = statistics.get(name, {}).get("avg")
    return None if value is None else int(value)
