"""Reads a recording once, from its beginning to its end: into the due times of a wave, or into a description of it."""

from __future__ import annotations

import hashlib
import math
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.replay import Recording, ReplayWindow, clock_text
from inference_benchmarker.recording.folder import in_a_folder
from inference_benchmarker.recording.formats import opened_source
from inference_benchmarker.recording.order import NEVER, Arrivals, in_order
from inference_benchmarker.recording.rows import PLACES, RowWriter
from inference_benchmarker.recording.schedule import RecordedSchedule
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.recording.source import RowBlock, Source

    Int64 = npt.NDArray[np.int64]

T = TypeVar("T")

DUES = "dues.bin"
LEAST_LENGTH_NS = NS // 1000
_MOST_OF_DISK = 0.5  # for the copy of the rows: the wave needs room, too, and others do


Opened = Callable[[Path], AbstractContextManager["Source"]]
"""Opens a recording, given a folder for what it needs meanwhile."""


def read(replay: Replay, seed: int, num_requests: int | None, parent: Path, opened: Opened | None = None) -> Replay:
    """The same replay with its file read: facts of it, and its schedule. The first ``num_requests`` rows, where given.

    Due times and rows go into a folder below ``parent`` that goes with the schedule. ``opened``: another way to read
    its file than as a row for each request. BenchmarkError for a file that is no recording, or no such part of one.
    """

    def written(folder: Path) -> tuple[Recording, RecordedSchedule]:
        source = opened_source(replay.file, replay.column) if opened is None else opened(folder)
        recording = _written(replay, source, seed, num_requests, folder)
        return recording, RecordedSchedule.open(folder / DUES, recording.length_ns, recording.rows)

    (recording, schedule), rows = in_a_folder(parent, written)
    schedule.kept = rows
    return replace(replay, recording=recording, schedule=schedule)


def is_read(replay: Replay) -> bool:
    """Tells whether its file has been read and its rows are still there."""
    schedule = replay.schedule
    return isinstance(schedule, RecordedSchedule) and schedule.kept is not None and schedule.kept.are_there


def hand_rows(replay: Replay, folder: Path) -> None:
    """Let the rows go into a folder of the wave's; OSError where they cannot."""
    schedule = replay.schedule
    assert isinstance(schedule, RecordedSchedule)
    assert schedule.kept is not None
    schedule.kept.hand(folder)


def _written(
    replay: Replay, opened: AbstractContextManager[Source], seed: int, num_requests: int | None, folder: Path
) -> Recording:
    with opened as source, KeptRows(folder, source.kind) as kept:
        part = ReplayedPart(replay, source, num_requests)
        for arrivals in part.read(seed, kept.keep):
            kept.add(part.dues(arrivals.at), arrivals.rows)
        return part.facts()


class KeptRows:
    """The files that a recording is kept in. What cannot be written is a BenchmarkError."""

    def __init__(self, folder: Path, kind: str) -> None:
        self._folder = folder
        self._rows = RowWriter(folder, kind)
        self._room = int(_MOST_OF_DISK * shutil.disk_usage(folder).free)
        self._files = ExitStack()
        self._dues, self._places = (self._files.enter_context((folder / name).open("wb")) for name in (DUES, PLACES))

    def keep(self, block: RowBlock, wanted: bool) -> int:
        """Keep a block's rows if any of them is wanted; the place of its first row."""
        if not wanted:
            return self._rows.skipped
        self._room -= block.rows.nbytes
        if self._room < 0:
            raise BenchmarkError(
                f"{self._folder.parent}: the rows of the recording would take more than half of the free space there.",
                "Send a part of it (--num-requests, --window), or give another --output-dir.",
            )
        with self._writing():
            return self._rows.write(block)

    def add(self, dues: Int64, places: Int64) -> None:
        """Keep the due times of some arrivals, and the places of their rows."""
        with self._writing():
            self._dues.write(dues.astype("<i8").tobytes())
            self._places.write(places.astype("<i8").tobytes())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing():
            self._rows.close()
            self._files.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = self._folder.parent
            raise BenchmarkError(
                f"{place}: cannot be written ({error.strerror}).", "Give another --output-dir."
            ) from None


class _First:
    """The last of so many instants that are the earliest so far: none that comes later and is not before it is one."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._held = np.zeros(0, np.int64)
        self._new: list[Int64] = []
        self._last = NEVER

    def add(self, at: Int64) -> int:
        """The last one, with some more instants. They are looked through when they have doubled: rarely."""
        self._new.append(at[at < self._last])
        if sum(map(len, self._new)) >= self._number:
            self._held = np.concatenate([self._held, *self._new])
            self._held = np.partition(self._held, self._number - 1)[: self._number]
            self._new, self._last = [], int(self._held.max())
        return self._last


class ReplayedPart:
    """The part of a recording that is sent, and what is learned of it as it is read."""

    def __init__(self, replay: Replay, source: Source, num_requests: int | None = None) -> None:
        self._replay, self._source, self._most = replay, source, num_requests
        self._speed = Fraction(replay.speed)
        self._bounds: tuple[int, int] | None = None
        self._next: int | None = None  # the first one after the number that was asked for
        self._seen = [0, 0]
        self._first = None if num_requests is None else _First(num_requests + 1)
        self._second = [0, 0]  # the last one that was counted, and the arrivals in it
        self._digest = hashlib.sha256()
        self.rows = self.first = self.last = self.peak = 0

    def read(self, seed: int, keep: Callable[[RowBlock, bool], int]) -> Iterator[Arrivals]:
        """Its arrivals, in order."""
        for found in in_order(self._source, seed, lambda block, at: keep(block, self._wanted(at)), self._until):
            if not len(found.at):
                continue
            arrivals = self._cut(found)
            if len(arrivals.at):
                self._learn(arrivals.at)
                yield arrivals
            if self._next is not None or int(found.at[-1]) >= self._begin_and_end[1]:
                return

    @property
    def begin(self) -> int:
        """The recorded instant of wave start."""
        return self._begin_and_end[0] if self._replay.window else self.first

    def dues(self, at: Int64) -> Int64:
        """When arrivals are due, in whole ns after wave start: exact, though the product would not fit in 64 bits."""
        whole, rest = np.divmod(at - self.begin, self._speed.numerator)
        due: Int64 = whole * self._speed.denominator + rest * self._speed.denominator // self._speed.numerator
        return due

    def facts(self) -> Recording:
        """The facts of what was read; BenchmarkError where nothing is to be sent, or for too long."""
        source, clock = self._source, self._source.clock
        if not self.rows:
            raise self._nothing()
        length = self._length_ns()
        if length > MAX_SECONDS * NS:
            days = MAX_SECONDS // 86400
            raise BenchmarkError(
                f"{source.path}: would last {length / NS / 86400:,.1f} days, and a wave may last {days}.",
                "Take a part of it with --window, or send it faster with --speed.",
            )
        return Recording(
            format=source.format,
            column=source.column,
            unit=clock.unit,
            zone=clock.zone,
            size_bytes=source.path.stat().st_size,
            rows=self.rows,
            first_ns=self.first,
            span_ns=self.last - self.first,
            spread_ns=clock.spread_ns,
            length_ns=length,
            peak_rps=self.peak,
            note=source.note,
            times_sha256=self._digest.hexdigest(),
        )

    @property
    def _begin_and_end(self) -> tuple[int, int]:
        assert self._bounds is not None
        return self._bounds

    def _wanted(self, at: Int64) -> bool:
        """Tells whether any of a block's rows may be in the part; as long as nothing is known of it, all may be."""
        if self._bounds is None or not len(at):
            return len(at) > 0
        return int(at.max()) >= self._bounds[0] and int(at.min()) < self._bounds[1]

    def _until(self, at: Int64) -> int:
        """The instant from which on no row is in the part that comes after a block with these instants."""
        begin, end = self._bounds or (-NEVER, NEVER)
        if self._first is None or (self._replay.window and self._bounds is None):
            return end
        return min(end, self._first.add(at[at >= begin]))

    def _cut(self, found: Arrivals) -> Arrivals:
        if self._bounds is None:
            self._seen[0] = first = int(found.at[0])
            window = self._replay.window
            zone = self._source.clock.zone
            self._bounds = ReplayWindow.parse(window).bounds(first, zone) if window else (first, NEVER)
        self._seen[1] = int(found.at[-1])
        begin, end = np.searchsorted(found.at, self._bounds).tolist()
        if self._most is not None and self.rows + end - begin > self._most:
            end = begin + self._most - self.rows
            self._next = int(found.at[end])
        return Arrivals(found.at[begin:end], found.rows[begin:end])

    def _learn(self, at: Int64) -> None:
        if not self.rows:
            self.first = int(at[0])
        self.rows += len(at)
        stood = at // max(self._source.clock.spread_ns, 1)  # without what the seed added
        self._digest.update(stood.astype("<i8").tobytes())
        self.last = int(at[-1])
        seconds, counts = np.unique(self.dues(at) // NS, return_counts=True)
        if int(seconds[0]) == self._second[0]:
            counts[0] += self._second[1]
        self.peak = max(self.peak, int(counts.max()))
        self._second = [int(seconds[-1]), int(counts[-1])]

    def _length_ns(self) -> int:
        """The length of the wave: up to the window's end, or the arrival after the last one; a mean gap after that."""
        if self._next is not None:
            recorded = self._next - self.begin
        elif self._replay.window:
            recorded = self._begin_and_end[1] - self.begin
        else:
            recorded = math.ceil(Fraction(self.last - self.first) * self.rows / max(self.rows - 1, 1))
        last_due = int(self.dues(np.array([self.last]))[0])
        return max(math.ceil(recorded / self._speed), last_due + 1, LEAST_LENGTH_NS)

    def _nothing(self) -> BenchmarkError:
        zone = self._source.clock.zone
        between = " to ".join(clock_text(each, zone) for each in self._seen)
        return BenchmarkError(
            f"--window {self._replay.window}: {self._source.path} contains no row.",
            f"Its rows were read from {between}{f' ({zone})' if zone else ''}.",
        )
