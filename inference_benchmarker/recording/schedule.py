"""The due times of a recording as a schedule: whole nanoseconds in a file, eight bytes each, in order."""

from __future__ import annotations

import mmap
import os
import shutil
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.plan.schedule import Schedule, Segment
from inference_benchmarker.system.files import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

    from inference_benchmarker.recording.folder import Rows

_DTYPE = np.dtype("<i8")
_CHUNK = 1 << 12  # due times that a worker reads at once


class RecordedSchedule(Schedule):
    """Arrivals at recorded instants. Counting looks them up where they lie, and so does a worker, some at a time."""

    def __init__(self, file: FileIO, length_ns: int) -> None:
        self._file = file
        self.kept: Rows | None = None  # the rows of the recording, before a wave has taken them
        size = os.fstat(file.fileno()).st_size
        self.rows = size // _DTYPE.itemsize
        memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        self._dues = np.frombuffer(memory, _DTYPE, self.rows)
        rate = Fraction(self.rows * 10**9, length_ns)
        super().__init__([Segment(0, length_ns, Fraction(0), rate, rate)])

    @classmethod
    def open(cls, path: Path, length_ns: int, rows: int) -> Self:
        """The schedule of a file; ValueError where it holds other than so many, in order, within the length."""
        file = open_file(path)
        size = os.fstat(file.fileno()).st_size
        if rows < 1 or size != rows * _DTYPE.itemsize:
            file.close()
            raise ValueError(f"{size:,} bytes do not hold {rows:,} due times")
        schedule = cls(file, length_ns)
        schedule._check(length_ns)
        return schedule

    def __deepcopy__(self, _: object) -> Self:
        return self

    def write_to(self, path: Path) -> None:
        """Write the due times to another file."""
        with path.open("xb") as copy:
            os.fchmod(copy.fileno(), 0o600)
            with open(os.dup(self._file.fileno()), "rb") as own:  # noqa: PTH123 - a descriptor, not a path
                own.seek(0)
                shutil.copyfileobj(own, copy, 1 << 20)

    def area(self, at_ns: int) -> Fraction:
        """The number of arrivals that are due before an instant."""
        return Fraction(self.count(at_ns))

    def count(self, until_ns: int) -> int:
        """The number of arrivals that are due before this instant."""
        return int(np.searchsorted(self._dues, until_ns))

    def due(self, index: int) -> int:
        """When an arrival is due; the end for one that the recording does not have."""
        return int(self._dues[index]) if index < self.rows else self.end_ns

    def dues(self, first: int, step: int, stop: int) -> Iterator[tuple[int, int]]:
        """The arrivals ``first``, ``first + step``, ... before ``stop``: index and due time."""
        stop = min(stop, self.rows)
        for begin in range(first, stop, step * _CHUNK):
            indices = range(begin, min(stop, begin + step * _CHUNK), step)
            yield from zip(indices, self._read(begin, indices[-1] + 1)[::step].tolist(), strict=True)

    @property
    def first_rps(self) -> Fraction:
        """No rate: nothing can be warmed up at it."""
        return Fraction(0)

    def _read(self, begin: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Some due times, read and not mapped: those of a long recording would all stay in memory."""
        size = _DTYPE.itemsize
        return np.frombuffer(os.pread(self._file.fileno(), (end - begin) * size, begin * size), _DTYPE)

    def _check(self, length_ns: int) -> None:
        last = 0
        for begin in range(0, self.rows, 1 << 16):
            part = self._read(begin, min(self.rows, begin + (1 << 16)))
            if int(part[0]) < last or bool((np.diff(part) < 0).any()) or int(part[-1]) >= length_ns:
                raise ValueError(f"the due times from {begin:,} on are in no order, or beyond the end")
            last = int(part[-1])
