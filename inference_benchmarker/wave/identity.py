"""The wave that a Parquet file of a run directory is of: it has the wave's start in it, as summary.json has."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import opened, own_path

if TYPE_CHECKING:
    from pathlib import Path

_KEY = b"wave.start_unix_ns"


def marked(schema: pa.Schema, start_unix_ns: int) -> pa.Schema:
    """The schema of a file of the wave that began then."""
    return schema.with_metadata({_KEY: str(start_unix_ns).encode()})


def check_of_wave(path: Path, start_unix_ns: int) -> None:
    """Raise BenchmarkError for a file of another wave, which may be whole for itself. Older ones do not tell."""
    with opened(path) as file, pa.OSFile(own_path(file)) as source:
        told = (pq.read_schema(source).metadata or {}).get(_KEY)
    with suppress(ValueError):  # a mark that is none says nothing
        if told is not None and int(told) != start_unix_ns:
            raise BenchmarkError(
                f"{path}: is a file of another wave than summary.json beside it.",
                "Was one of the two copied? Put back the files of one wave.",
            )
