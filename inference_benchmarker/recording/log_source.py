"""Access logs as recordings: a request begins its duration before its stamp, where both are logged."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording import access_log
from inference_benchmarker.recording.clock import log_clock, no_time
from inference_benchmarker.recording.source import (
    TEXT,
    Lines,
    RowBlock,
    Source,
    blocks_of,
    cells_of,
    no_column,
    of_lines,
)
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_APACHE = "the timestamp of a request is taken as its start, as in Apache's logs"


def log_source(path: Path, lines: Iterator[tuple[int, str]], column: str) -> Source:
    """A log of nginx or Apache; with a ``column``, which can be its stamp alone, nothing is taken off that."""

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for number, line in lines:
            if text := line.strip():
                fields = access_log.log_fields(text)
                if fields is None:
                    shown = quoted(text, 60)
                    raise BenchmarkError(f"{path}, line {number:,}: is not a line of an access log: {shown}.")
                yield number, fields

    read = Lines("access log", access_log.LOG_NAMES, rows())
    if column not in ("", "time_local"):
        raise no_column(path, ("time_local",), column)
    blocks = blocks_of(read, access_log.LOG_NAMES.index("time_local"))
    first = next(blocks)
    try:
        clock = log_clock(first.times)
    except ValueError:
        raise no_time(f"{path}, line {first.lines[0]:,}", first.times[0], "10/Oct/2026:13:55:36 +0000") from None
    durations = first.rows.column("duration").to_pylist()
    if column or not access_log.stamps_ends(durations):
        note = _APACHE if any(durations) and not column else ""
        return Source(path, read.format, "time_local", TEXT, clock, chain([first], blocks), note)

    def with_durations() -> Iterator[RowBlock]:
        for block in chain([first], blocks):
            durations = block.rows.column("duration").to_pylist()
            yield block._replace(durations_ns=[round(float(each or 0) * NS) for each in durations])

    note = "the start of a request is its timestamp minus $request_time"
    return Source(path, read.format, "time_local", TEXT, clock, with_durations(), note)


def balancer_source(
    path: Path, lines: Iterator[tuple[int, str]], column: str, format_name: str, names: tuple[str, ...]
) -> Source:
    """A log of a load balancer: its fields have no names there, and there are more of them from year to year."""
    number = next(lines)
    reader = cells_of((text for _, text in chain([number], lines)), " ")
    width = len(names)

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for row in reader:
            if row:
                yield number[0] - 1 + reader.line_num, [*row[:width], *[None] * (width - len(row))]

    if column and column not in names:
        raise no_column(path, names, column)
    stamp = "time" if "time" in names else "timestamp"
    source = of_lines(path, Lines(format_name, names, rows()), column or stamp, "")
    if column or stamp == "timestamp":  # that of a Classic Load Balancer is when it received the request
        return Source(path, format_name, source.column, TEXT, source.clock, source.blocks)

    def with_durations() -> Iterator[RowBlock]:
        for block in source.blocks:
            fields = zip(*(each.to_pylist() for each in block.rows.columns), strict=True)
            took = [_alb_duration(source, *each) for each in zip(block.lines, block.times, fields, strict=True)]
            yield block._replace(durations_ns=took)

    note = "the start of a request is its request_creation_time, or its timestamp minus the processing times"
    return Source(path, format_name, stamp, TEXT, source.clock, with_durations(), note)


def _alb_duration(source: Source, line: int, time: Any, fields: tuple[Any, ...]) -> int:
    try:
        return access_log.alb_duration_ns(str(time), fields)
    except ValueError:
        raise BenchmarkError(f"{source.where(line)}: is not a line of an {source.format}.") from None
