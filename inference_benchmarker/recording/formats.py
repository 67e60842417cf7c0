"""The formats of recordings: what a file is, where its times stand, and the rows of one that is text."""

from __future__ import annotations

import csv
import gzip
import io
import json
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.recording import access_log
from inference_benchmarker.recording.clock import plain_name, split_unit
from inference_benchmarker.recording.log_source import balancer_source, log_source
from inference_benchmarker.recording.parquet import parquet_source
from inference_benchmarker.recording.source import JSON, MOST_LINE, Lines, Source, cells_of, of_lines, time_column
from inference_benchmarker.system.files import own_path
from inference_benchmarker.system.given import descriptor_of
from inference_benchmarker.system.progress import tell
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from _typeshed import WriteableBuffer

_HEAD_BYTES = 1 << 16
_MOST_BLANK = 1_000_000  # lines in a row: as many as rows that are not wanted
_MOST_COLUMNS = 10_000
_AT_A_TIME = 1 << 17  # bytes
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_AZURE = {"timestamp", "contexttokens", "generatedtokens"}
_MOONCAKE = {"timestamp", "input_length", "output_length"}


@contextmanager
def opened_source(path: Path, column: str = "") -> Iterator[Source]:
    """Open a recording and find out what it is; BenchmarkError for what is none."""
    with _opened(path) as file:
        if file.peek(_HEAD_BYTES)[:4] == b"PAR1":
            with pa.OSFile(own_path(file)) as source:
                yield parquet_source(path, source, column)
            return
        with _decoded(path, file) as text:
            yield _text(path, text, column)


@contextmanager
def opened_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open a text, packed by gzip or not; BenchmarkError for what is none, or cannot be read to its end."""
    with _opened(path) as file:
        if file.peek(_HEAD_BYTES)[:4] == b"PAR1":
            raise BenchmarkError(f"{path}: is parquet, and conversations are read from text.", "Write JSON lines.")
        with _decoded(path, file) as text:
            yield text


class _Followed(io.FileIO):
    """A file that tells whoever listens how far it is read; a large one takes minutes."""

    def __init__(self, path: Path) -> None:
        super().__init__(descriptor_of(path))
        self._what = f"Reading {path.name}"
        self._size = self.seek(0, io.SEEK_END)
        self._at = self.seek(0)

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        """Read a part, and tell."""
        read = super().readinto(buffer)
        self._at += read or 0
        if self._at < self._size:
            tell(self._what, self._at, self._size)
        return read

    def close(self) -> None:
        """Close it: nothing is read any more."""
        if not self.closed:
            tell(self._what, 1, 1)
        super().close()


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    try:
        file: io.BufferedReader = io.BufferedReader(_Followed(path), _AT_A_TIME)
        with file:
            yield file
    except (OSError, EOFError, csv.Error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise BenchmarkError(f"{path}: cannot be read ({reason}).", "Give a file of recorded requests.") from None


def _decoded(path: Path, file: io.BufferedReader) -> io.TextIOWrapper:
    plain = gzip.GzipFile(fileobj=file) if file.peek(_HEAD_BYTES)[:2] == b"\x1f\x8b" else file
    if plain.peek(_HEAD_BYTES)[:2] in _UTF_16:
        raise BenchmarkError(
            f"{path}: is UTF-16, and recordings are read as UTF-8.", "`iconv -f UTF-16 -t UTF-8` rewrites it."
        )
    return io.TextIOWrapper(plain, "utf-8-sig", "replace", newline="")


def _text(path: Path, file: io.TextIOWrapper, column: str) -> Source:
    lines = _numbered(file)
    first = next((each for each in lines if each[1].strip()), None)
    if first is None:
        raise BenchmarkError(f"{path}: is empty.", "Give a file with a row for each request.")
    line = first[1].strip()
    rest = chain([first], lines)
    wanted, unit = split_unit(column)
    if line.startswith("["):
        raise BenchmarkError(f"{path}: begins with a JSON array.", "Write one object per line: JSON lines.")
    if line.startswith("{"):
        return _json(path, rest, wanted, unit)
    if access_log.is_log(line):
        return log_source(path, rest, wanted)
    if access_log.is_alb(line):
        return balancer_source(path, rest, wanted, "AWS ALB access log", access_log.ALB_NAMES)
    if access_log.is_clb(line):
        return balancer_source(path, rest, wanted, "AWS CLB access log", access_log.CLB_NAMES)
    return _csv(path, rest, wanted, unit)


def _csv(path: Path, lines: Iterator[tuple[int, str]], column: str, unit: str) -> Source:
    number, first = next(lines)
    delimiter = max(",;\t|", key=first.count)
    reader = cells_of((text for _, text in chain([(number, first)], lines)), delimiter)
    names = tuple(name.strip() for name in next(reader))
    if len(names) > _MOST_COLUMNS:
        raise BenchmarkError(f"{path}: has {len(names):,} columns.", f"Give at most {_MOST_COLUMNS:,} of them.")
    column = time_column(path, names, column)
    rows = _cells(path, reader, number - 1, len(names))
    known = {plain_name(name) for name in names}
    format_name = "Azure's LLM trace" if known >= _AZURE else "CSV"
    return of_lines(path, Lines(format_name, names, rows), column, unit)


def _cells(path: Path, reader: Any, skipped: int, width: int) -> Iterator[tuple[int, list[Any]]]:
    for row in reader:
        if not row:
            continue
        if len(row) != width:
            place = f"{path}, line {skipped + reader.line_num:,}"
            raise BenchmarkError(f"{place}: has {len(row)} values, and the header names {width}.")
        yield skipped + reader.line_num, row


def _json(path: Path, lines: Iterator[tuple[int, str]], column: str, unit: str) -> Source:
    first = next(lines)
    names = tuple(_object(path, *first))
    column = time_column(path, names, column)
    mooncake = set(names) >= _MOONCAKE
    if mooncake and column == "timestamp":
        unit = unit or "ms"

    def rows() -> Iterator[tuple[int, list[Any]]]:
        for number, line in chain([first], lines):
            if text := line.strip():
                yield number, [_object(path, number, text).get(column), text]

    read = Lines("Mooncake's trace" if mooncake else "JSON lines", (column, ""), rows(), JSON)
    return of_lines(path, read, column, unit)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    except RecursionError:
        raise BenchmarkError(f"{path}, line {number:,}: is nested too deeply.", "Give flat JSON objects.") from None
    if not isinstance(found, dict):
        raise BenchmarkError(f"{path}, line {number:,}: expected a JSON object, found {quoted(line.strip(), 60)}.")
    return found


def _numbered(file: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    blank = 0
    for number, line in enumerate(iter(lambda: file.readline(MOST_LINE), ""), 1):
        if len(line) == MOST_LINE:
            raise OSError(f"line {number:,} has more than {MOST_LINE:,} characters")
        blank = blank + 1 if line.isspace() else 0
        if blank > _MOST_BLANK:
            raise OSError(f"line {number:,} is the last of more than {_MOST_BLANK:,} blank ones")
        yield number, line
