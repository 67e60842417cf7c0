"""aiperf's export as it is drawn: the metrics that have a name of ours, and all of them under aiperf's own names."""

from __future__ import annotations

import csv
import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_text import MOST_BYTES, parse_json
from inference_benchmarker.data.typed import MOST_FLOAT
from inference_benchmarker.system.files import is_folder, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.wave.run_dir import RunDir

BLOCK, TABLE = "block", "table"
STATISTICS = {
    "mean": "avg", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "max": "max", "min": "min",
    "p1": "p1", "p5": "p5", "p10": "p10", "p25": "p25", "p75": "p75", "std": "std",
}  # fmt: skip
"""The choices of the statistic chooser, and what they are called in aiperf's table."""

SINGLE = "Value"
"""The one column of metrics that have a single number."""

_EXPORT = "profile_export_aiperf.json"
_MOST_FOLDERS, _MOST_METRICS = 1_000, 1_000


def find_export(run_dir: RunDir) -> Path:
    """Aiperf's export, wherever below its folder aiperf put it; those of its phases lie deeper."""
    folder = run_dir.aiperf
    walked = islice(os.walk(folder), _MOST_FOLDERS) if is_folder(folder) else ()  # no link is followed
    found = sorted(Path(where) / _EXPORT for where, _, names in walked if _EXPORT in names)
    return min(found, key=lambda path: len(path.parts), default=folder / _EXPORT)


def read_export(path: Path, inside: Path) -> dict[str, Any]:
    """The metrics by aiperf's tags; older versions have them below ``records``.

    Below ``BLOCK`` stand the numbers of the printed block, which are ours where we stored them.
    """
    data = parse_json(read_bytes(path, MOST_BYTES, inside), constant=lambda _: None)
    found = data.get("records", data) if isinstance(data, dict) else None
    if not isinstance(found, dict):
        raise ValueError("is not an export of aiperf: it must be an object with an object for each metric")
    stored = path.with_name("summary.json")
    ours = parse_json(read_bytes(stored, MOST_BYTES, inside)) if os.path.lexists(stored) else {}
    return {**found, BLOCK: {**_block(found, data.get("input_config")), **ours}}


def read_table(path: Path, inside: Path) -> dict[str, Any]:
    """Below ``TABLE`` every metric by its name in aiperf's own table, with the statistics that it has there."""
    text = read_bytes(path, MOST_BYTES, inside).decode("utf-8", "replace")
    try:
        return {TABLE: dict(_rows(csv.reader(text.splitlines())))}
    except csv.Error as error:
        raise ValueError(f"is not a table of aiperf: {error}") from None


def _block(metrics: dict[str, Any], config: Any) -> dict[str, Any]:
    """The numbers of the block as far as the export has them; what it fired without an answer is not in it."""
    answered = metrics.get("completed_request_count") or metrics.get("request_count")
    return {
        "server_rps": _entry(metrics.get("request_throughput"), "avg"),
        "duration_s": _entry(metrics.get("benchmark_duration"), "avg"),
        "requests": _entry(answered, "avg"),
        "client_rps": _rate(config),
    }


def _rate(config: Any) -> Any:
    """The rate that aiperf was asked for; older versions have it elsewhere."""
    phases = _entry(config, "phases")
    last = phases[-1] if isinstance(phases, list) and phases else None
    return _entry(last, "rate") or _entry(_entry(config, "loadgen"), "request_rate")


def _entry(holder: Any, name: str) -> Any:
    """An entry of an object; None of anything else, which a file may have in its place."""
    return holder.get(name) if isinstance(holder, dict) else None


def _rows(lines: Iterable[list[str]]) -> Iterator[tuple[str, dict[str, float]]]:
    """(name with its unit, statistics) of each metric; other tables in the file are left out."""
    header: list[str] = []
    for row in islice(lines, _MOST_METRICS):
        if len(row) < 2:
            header = []
        elif not header:
            header = row
        elif header[0] == "Metric":
            found = zip(header[1:], map(_number, row[1:]), strict=False)
            yield row[0], {name: value for name, value in found if value is not None}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < MOST_FLOAT else None
