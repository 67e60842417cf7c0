"""The rows of a recording in the order of their arrival: spread over a coarse unit, sorted within a minute."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.replay import clock_text
from inference_benchmarker.recording.clock import no_time
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from inference_benchmarker.recording.source import RowBlock, Source

    Int64 = npt.NDArray[np.int64]

LATE_NS = 60 * NS
"""How much earlier than the latest row before it a row's time may be."""
LONGEST_REQUEST_NS = 600 * NS
"""How long before its stamp a request may have begun, beside that."""
MOST_WAITING = 10_000_000
"""Rows that come so close together that they have to be sorted at once: of 160,000 requests a second in a minute."""

MOST_NEEDLESS = 1_000_000
"""Rows in a row that are not wanted: after so many, no earlier one is waited for."""
MOST_NEEDLESS_TOGETHER = 3_000_000
"""The same, but for some among them that are wanted: of a crowd whose times are whole seconds there is no first one."""

_STREAM = 0x5E71A1
FARTHEST_NS = 1 << 62  # 146 years from 1970
NEVER = 1 << 62


class Arrivals(NamedTuple):
    """Some arrivals in order: recorded instants in ns, and where ``keep`` has put the row of each."""

    at: Int64
    rows: Int64


def in_order(
    source: Source, seed: int, keep: Callable[[RowBlock, Int64], int], end: Callable[[Int64], int]
) -> Iterator[Arrivals]:
    """The arrivals of a recording, in order, many at once; never more rows in memory than come within some minutes.

    ``keep`` is given every block and its instants that are wanted, and returns the place of its first row. ``end`` is
    given the instants of each block, and returns the one from which on none of a later block is wanted: reading stops
    when no earlier one can come any more. BenchmarkError with the line of a row whose time cannot be read, or that
    comes too late to be sorted.
    """
    waiting = _Waiting()
    latest, number, until, needless, together = None, 0, NEVER, 0, 0
    for block in source.blocks:
        stamps = _instants(source, block)
        latest = _check_order(source, block, stamps, latest)
        begun = LATE_NS if block.durations_ns is None else LATE_NS + LONGEST_REQUEST_NS
        at = _spread(stamps, source.clock.spread_ns, seed, number)
        if block.durations_ns is not None:
            at -= np.array(block.durations_ns, np.int64)
        _check_begin(source, block, at, waiting.given_until)
        wanted = np.flatnonzero(at < until)
        place = keep(block, at[wanted])
        number += len(at)
        needless, together = 0 if len(wanted) else needless + len(at), together + len(at) - len(wanted)
        waiting.add(Arrivals(at[wanted], place + wanted))
        until = end(at)
        if until <= latest - begun or needless >= MOST_NEEDLESS:
            break
        for rows, most in ((waiting.rows, MOST_WAITING), (together, MOST_NEEDLESS_TOGETHER)):
            if rows > most:
                raise _too_close(source, block, most)
        if waiting.worth_sorting:
            yield waiting.before(latest - begun)
    yield waiting.before(None)


class _Waiting:
    """Arrivals that one that is still to come may precede. They are sorted when they have doubled: rarely."""

    def __init__(self) -> None:
        self.given_until = np.iinfo(np.int64).min
        self._sorted = Arrivals(np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._new: list[Arrivals] = []
        self.rows = 0

    def add(self, arrivals: Arrivals) -> None:
        self._new.append(arrivals)
        self.rows += len(arrivals.at)

    @property
    def worth_sorting(self) -> bool:
        return sum(len(each.at) for each in self._new) >= len(self._sorted.at)

    def before(self, until_ns: int | None) -> Arrivals:
        """Give those that are due before this instant, or all."""
        both = (self._sorted, *self._new)
        at, rows = np.concatenate([each.at for each in both]), np.concatenate([each.rows for each in both])
        order = np.argsort(at, kind="stable")
        at, rows = at[order], rows[order]
        count = len(at) if until_ns is None else int(np.searchsorted(at, until_ns))
        self._sorted, self._new = Arrivals(at[count:].copy(), rows[count:].copy()), []
        self.rows -= count
        if until_ns is not None:
            self.given_until = max(self.given_until, until_ns)
        return Arrivals(at[:count], rows[:count])


def _instants(source: Source, block: RowBlock) -> Int64:
    read = source.clock.read
    try:
        return np.array([_instant(read(value)) for value in block.times], np.int64)
    except (ValueError, TypeError, OverflowError):
        raise _first_misfit(source, block) from None


def _instant(at_ns: int) -> int:
    """An instant whose distance to any other one fits into 64 bits; OverflowError for others."""
    if abs(at_ns) >= FARTHEST_NS:
        raise OverflowError
    return at_ns


def _first_misfit(source: Source, block: RowBlock) -> BenchmarkError:
    for line, value in zip(block.lines, block.times, strict=True):
        try:
            _instant(source.clock.read(value))
        except (ValueError, TypeError, OverflowError):
            return no_time(f"{source.where(line)}, {source.column}", value, source.clock.unit)
    raise AssertionError("each of them alone can be read")


def _check_order(source: Source, block: RowBlock, stamps: Int64, latest: int | None) -> int:
    """The latest stamp so far; BenchmarkError where one comes long after a later one."""
    before = np.maximum.accumulate(stamps if latest is None else np.concatenate([[latest], stamps]))
    late = before[-len(stamps) :] - stamps
    if int(late.max()) > LATE_NS:
        which = int(np.argmax(late > LATE_NS))
        raise BenchmarkError(
            f"{source.where(block.lines[which])}: {clock_text(int(stamps[which]), source.clock.zone)} comes "
            f"{late[which] / NS:,.0f} s after a later time: the clock jumped back, or the rows are not in order.",
            "Rows may be out of order by a minute: sort the file, or cut it there.",
        )
    return int(before[-1])


def _too_close(source: Source, block: RowBlock, most: int) -> BenchmarkError:
    return BenchmarkError(
        f"{source.where(block.lines[-1])}: more than {most:,} rows are within one minute, more than a wave can send. "
        f"The times were read from the column {source.column}.",
        "Name another column with --replay-column, or cut the file.",
    )


def _check_begin(source: Source, block: RowBlock, at: Int64, given_until: int) -> None:
    if int(at.min()) < given_until:
        which = int(np.argmax(at < given_until))
        raise BenchmarkError(
            f"{source.where(block.lines[which])}: its request began more than {LONGEST_REQUEST_NS // NS} s before "
            "its timestamp, too early to be sorted among the others.",
            f"Use the timestamps as they are: --replay-column {source.column}.",
        )


def _spread(at: Int64, unit_ns: int, seed: int, first: int) -> Int64:
    """The instants that are whole units, each a part of a unit later that depends on the seed and its row alone."""
    if not unit_ns:
        return at.copy()
    parts = uniforms(seed ^ _STREAM, first, len(at)) * unit_ns
    return np.where(at % unit_ns == 0, at + parts.astype(np.int64), at)


def uniforms(seed: int, first: int, count: int) -> npt.NDArray[np.float64]:
    """``plan.pacing.uniform`` of so many indices, at once."""
    shift = (np.uint64(30), np.uint64(27), np.uint64(31))
    z = np.arange(first + 1, first + 1 + count, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    z += np.uint64((seed * 0x9E3779B97F4A7C15) & (2**64 - 1))
    z = (z ^ (z >> shift[0])) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> shift[1])) * np.uint64(0x94D049BB133111EB)
    return (((z ^ (z >> shift[2])) >> np.uint64(11)) / (1 << 53)).astype(np.float64)
