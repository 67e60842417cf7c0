"""The workers' packed reports as the columns of one table, sorted by arrival. Pure.

Each column is made for itself, of all workers at once: beside the reports there is one column in two versions at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from inference_benchmarker.records import arrow
from inference_benchmarker.records.record import FINISH_MASK, FINISH_SHIFT, HAS_STREAM, NONE, OUTCOME, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Int64 = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

BASE_DTYPE = np.dtype(
    [
        ("index", "<i8"),
        ("due", "<i8"),
        ("sent", "<i8"),
        ("done", "<i8"),
        ("build_ns", "<i8"),
        ("bytes", "<i8"),
        ("label", "<u2"),
        ("error", "<u2"),
        ("outcome", "u1"),
    ]
)
STREAM_DTYPE = np.dtype(
    [
        ("first_token", "<i8"),
        ("last_token", "<i8"),
        ("chunks", "<i8"),
        ("tokens_in", "<i8"),
        ("tokens_out", "<i8"),
        ("gaps", "<u4"),
    ]
)
_MOST_GAPS = (1 << 31) - 1
_STREAM_NUMBERS = ("first_token", "last_token", "chunks", "tokens_in", "tokens_out")


@dataclass(frozen=True, slots=True)
class WorkerColumns:
    """One worker's reports, joined over its batches: packed arrays and the names their numbers mean.

    ``attempts`` has a pair for each request that was not its arrival's first: its row, and the how many-th it was.
    """

    worker: int
    base: npt.NDArray[Any]
    streams: npt.NDArray[Any]
    gaps: npt.NDArray[np.uint32]
    labels: list[str]
    errors: list[str]
    finish_reasons: list[str]
    attempts: Int64 = field(default_factory=lambda: np.zeros((0, 2), np.int64))


def joined(workers: Sequence[WorkerColumns]) -> dict[str, pa.Array]:
    """Every column by its name; rows by arrival, and then by attempt. ValueError where a report contradicts itself."""
    order = _order(workers)
    take = _Taker(workers, order)
    columns = {name: arrow.column(take(_field(name))) for name in ("index", "due", "sent", "done", "build_ns")}
    columns["worker"] = arrow.column(take(lambda worker: np.full(len(worker.base), worker.worker, np.uint16)))
    columns["attempt"] = arrow.column(take(_attempts))
    columns["bytes"] = arrow.nullable(take(_field("bytes")), NONE)
    columns["label"] = take.named(_field("label"), lambda worker: worker.labels)
    columns["outcome"] = take.named(lambda worker: worker.base["outcome"] & OUTCOME, lambda _: list(OUTCOMES))
    columns["error"] = take.named(_field("error"), lambda worker: worker.errors, zero_is_null=True)
    columns["finish_reason"] = take.named(_finish, lambda worker: worker.finish_reasons, zero_is_null=True)
    return columns | _stream_columns(workers, take, order)


class _Taker:
    """Makes columns of the whole wave of what is a worker's."""

    def __init__(self, workers: Sequence[WorkerColumns], order: Int64) -> None:
        self._workers = workers
        self._order = order

    def __call__(self, part: Callable[[WorkerColumns], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """The values that ``part`` gives of each worker's rows, in the order of the wave."""
        parts = [part(worker) for worker in self._workers]
        return (np.concatenate(parts) if parts else np.zeros(0, np.int64))[self._order]

    def named(
        self,
        numbers: Callable[[WorkerColumns], npt.NDArray[Any]],
        names: Callable[[WorkerColumns], list[str]],
        *,
        zero_is_null: bool = False,
    ) -> pa.Array:
        """Numbers of the workers' own names as a column of names."""
        everyone = list(dict.fromkeys(name for worker in self._workers for name in names(worker)))
        place = {name: number for number, name in enumerate(everyone)}
        own = {
            worker.worker: np.array([place[name] for name in names(worker)] or [0], np.int32)
            for worker in self._workers
        }

        def codes(worker: WorkerColumns) -> npt.NDArray[Any]:
            found = numbers(worker)
            known: npt.NDArray[Any] = own[worker.worker][found]
            return np.where(found == 0, np.int32(-1), known) if zero_is_null else known

        taken = self(codes).astype(np.int32, copy=False)
        return pa.DictionaryArray.from_arrays(arrow.nullable(taken, -1), arrow.texts(everyone))


def _order(workers: Sequence[WorkerColumns]) -> Int64:
    """The places of the rows, worker after worker, in the order of the wave."""
    index = np.concatenate([np.zeros(0, np.int64), *(worker.base["index"] for worker in workers)])
    if any(len(worker.attempts) for worker in workers):
        return np.lexsort((np.concatenate([_attempts(worker) for worker in workers]), index))
    return np.argsort(index, kind="stable")


def _field(name: str) -> Callable[[WorkerColumns], npt.NDArray[Any]]:
    return lambda worker: worker.base[name]


def _finish(worker: WorkerColumns) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = worker.base["outcome"] >> FINISH_SHIFT & FINISH_MASK
    return found


def _attempts(worker: WorkerColumns) -> npt.NDArray[np.uint16]:
    numbers = np.zeros(len(worker.base), np.uint16)
    numbers[worker.attempts[:, 0]] = worker.attempts[:, 1]
    return numbers


def _stream_columns(workers: Sequence[WorkerColumns], take: _Taker, order: Int64) -> dict[str, pa.Array]:
    """The columns only some requests have, spread to their rows; entries and gaps lie in the order of rows."""
    for worker in workers:
        _check_streams(worker)
    if not any(len(worker.streams) for worker in workers):
        nothing = arrow.nothing(len(order), np.dtype(np.int64))
        return {**dict.fromkeys(_STREAM_NUMBERS, nothing), "gaps": arrow.no_lists(len(order), pa.uint32())}
    columns = {name: arrow.nullable(take(_spread(name, NONE)), NONE) for name in _STREAM_NUMBERS}
    lengths = np.concatenate([_spread("gaps", 0)(worker) for worker in workers])
    no_pieces = np.concatenate([_spread("chunks", NONE)(worker) == NONE for worker in workers])
    gaps = np.concatenate([worker.gaps for worker in workers])
    if len(gaps) > _MOST_GAPS:
        raise ValueError(f"{len(gaps):,} gaps between tokens, which are more than a column holds")
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(arrow.column(offsets, np.append(no_pieces, False)), arrow.column(gaps))
    columns["gaps"] = lists.take(arrow.column(order))
    return columns


def _check_streams(worker: WorkerColumns) -> None:
    """Raise ValueError where streams or gaps are not as many as the requests tell."""
    streams, gaps = np.count_nonzero(worker.base["outcome"] & HAS_STREAM), int(worker.streams["gaps"].sum())
    if streams != len(worker.streams):
        raise ValueError(f"{len(worker.streams):,} streams, {streams:,} of them told")
    if gaps != len(worker.gaps):
        raise ValueError(f"{len(worker.gaps):,} gaps between tokens, {gaps:,} of them told")


def _spread(name: str, missing: int) -> Callable[[WorkerColumns], Int64]:
    """A number of the streams, at the rows of their requests."""

    def part(worker: WorkerColumns) -> Int64:
        values = np.full(len(worker.base), missing, np.int64)
        values[(worker.base["outcome"] & HAS_STREAM) != 0] = worker.streams[name]
        return values

    return part
