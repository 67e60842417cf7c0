"""Holds the files of a run directory together: Parquet files name the wave's start, and summary.json has digests."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_file, is_there, opened, own_path
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_KEY = b"wave.start_unix_ns"


def marked(schema: pa.Schema, start_unix_ns: int) -> pa.Schema:
    """The schema of a file of the wave that began then."""
    return schema.with_metadata({_KEY: str(start_unix_ns).encode()})


def check_of_wave(path: Path, start_unix_ns: int) -> None:
    """Raise BenchmarkError for a file of another wave, which may be whole for itself. Older ones have no start."""
    with opened(path) as file, pa.OSFile(own_path(file)) as source:
        mark = (pq.read_schema(source).metadata or {}).get(_KEY)
    with suppress(ValueError):  # a mark that is none says nothing
        if mark is not None and int(mark) != start_unix_ns:
            raise BenchmarkError(
                f"{path}: belongs to another wave than the summary.json beside it.",
                "Was one of the two copied? Restore the files of one wave.",
            )


def digests_of(run: Path, *paths: Path) -> dict[str, str]:
    """The SHA-256, in hex, of those of a run's files that are there, by their path in it. OSError."""
    return {str(path.relative_to(run)): _digest(path, run) for path in paths if is_file(path, run)}


def require_unchanged(path: Path, digests: Mapping[str, str], run: Path | None = None) -> None:
    """Check a file against its digest, where there is one; BenchmarkError where it is gone or was changed, OSError.

    ``run``: the run directory, of a file in a folder below it.
    """
    run = run or path.parent
    name = str(path.relative_to(run))
    if name not in digests:
        return
    if not is_file(path, run) or _digest(path, run) != digests[name]:
        done = "changed" if is_file(path, run) else "taken away"
        raise BenchmarkError(
            f"{path}: was {done} after the wave was stored.",
            "Restore the file of the wave.",
        )


def require_own(path: Path, digests: Mapping[str, str]) -> None:
    """The same of a file that not every wave has; BenchmarkError, too, where it was put there since."""
    if digests and path.name not in digests and is_there(path):
        raise BenchmarkError(f"{path}: was added after the wave was stored.", "Take it away, or restore the wave.")
    require_unchanged(path, digests)


def _digest(path: Path, run: Path) -> str:
    digest = hashlib.sha256()
    with opened(path, run) as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()
