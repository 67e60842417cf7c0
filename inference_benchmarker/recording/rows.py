"""The rows of a recording, kept beside its due times while a wave runs: each is found by its arrival."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from inference_benchmarker.recording.source import BLOCK, JSON, TYPED

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.recording.source import RowBlock

ROWS, PLACES = "rows.arrow", "places.bin"
_KIND = b"kind"
_PLACE = 8  # bytes
_AT_HAND = 16  # blocks: neighbours in time may be some blocks apart in the file
_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")


class RowWriter:
    """Writes the blocks of a recording as they come, and where the row of each arrival is."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._path, self._kind = folder / ROWS, kind
        self._writer: Any = None
        self._blocks = 0

    def write(self, block: RowBlock) -> int:
        """Write a block; the place of its first row."""
        if self._writer is None:
            schema = block.rows.schema.with_metadata({_KIND: self._kind})
            self._writer = pa.ipc.new_file(pa.OSFile(str(self._path), "wb"), schema)
        self._writer.write_batch(block.rows.replace_schema_metadata({_KIND: self._kind}))
        self._blocks += 1
        return self._next - BLOCK

    @property
    def skipped(self) -> int:
        """A place for a block that is not kept."""
        return self._next

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()

    @property
    def _next(self) -> int:
        return self._blocks * BLOCK


class RowFile:
    """Finds the row of an arrival. It reads a block at a time and keeps few, so its memory does not grow."""

    def __init__(self, folder: Path) -> None:
        self._places = os.open(folder / PLACES, os.O_RDONLY | os.O_CLOEXEC)
        self._rows = os.fstat(self._places).st_size // _PLACE
        self._file = pa.ipc.open_file(pa.OSFile(str(folder / ROWS), "rb"))
        self._kind = (self._file.schema.metadata or {}).get(_KIND, b"").decode()
        self._block = lru_cache(_AT_HAND)(self._file.get_batch)

    def row(self, index: int) -> dict[str, Any]:
        """The row of an arrival, by the names of its columns. In a file of texts, numbers become numbers.

        After the last row comes the first again: of conversations there may be fewer than arrivals.
        """
        place = int.from_bytes(os.pread(self._places, _PLACE, index % self._rows * _PLACE), "little")
        block, at = self._block(place // BLOCK), place % BLOCK
        if self._kind == JSON:
            found: dict[str, Any] = json.loads(block.column(0)[at].as_py())
            return found
        values = {name: block.column(number)[at].as_py() for number, name in enumerate(block.schema.names)}
        return values if self._kind == TYPED else {name: value_of(text) for name, text in values.items()}

    def close(self) -> None:
        """Find no row any more."""
        os.close(self._places)


def value_of(text: str | None) -> Any:
    """A number as one, as JSON writes it: what begins with a zero stays a text, and nothing is None."""
    if not text:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
