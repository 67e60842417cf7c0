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
from inference_benchmarker.records.batch import FINISH_MASK, FINISH_SHIFT, HAS_STREAM, OUTCOME
from inference_benchmarker.records.record import ENDINGS, NONE, OUTCOMES
from inference_benchmarker.records.user_metrics import FIRST_ANSWER, PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

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
METRIC_DTYPE = np.dtype([("row", "<u4"), ("name", "u1"), ("value", "<f8")])
TURN_DTYPE = np.dtype([("think_ns", "<i8"), ("turn", "<u2"), ("ended", "u1")])
_MOST_GAPS = (1 << 31) - 1
_STREAM_NUMBERS = ("first_token", "last_token", "chunks", "tokens_in", "tokens_out")
_KEY_BITS = 62
_MOST_AFTER_NS = 1 << 53


@dataclass(frozen=True, slots=True)
class WorkerColumns:
    """One worker's reports, joined over its batches: packed arrays and the names their numbers mean.

    ``attempts`` has a pair for each request that was not its arrival's first: its row, and the how many-th it was.
    ``metrics`` are values of the user's own, each with the row of its request and the number of its name. ``turns`` has
    one for each request of a wave of sessions, and none of another.
    """

    worker: int
    base: npt.NDArray[Any]
    streams: npt.NDArray[Any]
    gaps: npt.NDArray[np.uint32]
    labels: list[str]
    errors: list[str]
    finish_reasons: list[str]
    attempts: Int64 = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    metrics: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, METRIC_DTYPE))
    metric_names: list[str] = field(default_factory=list)
    turns: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, TURN_DTYPE))

    def between(self, first: int, stop: int) -> WorkerColumns:
        """The reports of the arrivals from ``first`` on, before ``stop``."""
        index = self.base["index"]
        chosen = (index >= first) & (index < stop)
        if chosen.all():
            return self
        check_rows(self)
        streams = chosen[(self.base["outcome"] & HAS_STREAM) != 0]
        places = np.cumsum(chosen) - 1
        attempts = self.attempts[chosen[self.attempts[:, 0]]]
        metrics = self.metrics[chosen[self.metrics["row"]]]
        metrics["row"] = places[metrics["row"]]
        return WorkerColumns(
            self.worker,
            self.base.take(np.flatnonzero(chosen)),  # a mask moves rows field by field
            self.streams.take(np.flatnonzero(streams)),
            self.gaps[np.repeat(streams, self.streams["gaps"])],
            *(self.labels, self.errors, self.finish_reasons),
            np.column_stack((places[attempts[:, 0]], attempts[:, 1])),
            *(metrics, self.metric_names),
            self.turns.take(np.flatnonzero(chosen)) if len(self.turns) else self.turns,
        )


def unpacked(sections: Sequence[memoryview]) -> dict[str, npt.NDArray[Any]]:
    """A batch's sections as arrays, by their names in ``WorkerColumns``."""
    kinds = {
        "base": BASE_DTYPE,
        "streams": STREAM_DTYPE,
        "gaps": np.dtype(np.uint32),
        "metrics": METRIC_DTYPE,
        "turns": TURN_DTYPE,
    }
    return {name: np.frombuffer(data, kind) for (name, kind), data in zip(kinds.items(), sections, strict=True)}


def joined(workers: Sequence[WorkerColumns]) -> dict[str, pa.Array]:
    """Every column by its name; rows by arrival, turn and attempt. ValueError where a report contradicts itself.

    The names of all ``workers`` are numbered, in their order, whichever of them the rows have.
    """
    order = _order(workers)
    columns = _named_columns(workers, order)
    columns["attempt"] = arrow.column(_all_attempts(workers)[order])
    columns["bytes"] = arrow.nullable(_field(workers, "bytes").take(order), NONE)
    for name in ("index", "due", "sent", "done", "build_ns"):
        columns[name] = arrow.column(_field(workers, name).take(order))
    return columns | _stream_columns(workers, order) | _metric_columns(workers, order) | _turn_columns(workers, order)


def check_rows(worker: WorkerColumns) -> None:
    """Raise ValueError where streams, gaps or turns are not as many as there must be, or a metric is of no request."""
    streams, gaps = np.count_nonzero(worker.base["outcome"] & HAS_STREAM), int(worker.streams["gaps"].sum())
    if streams != len(worker.streams):
        raise ValueError(f"{len(worker.streams):,} streams, {streams:,} of them reported")
    if gaps != len(worker.gaps):
        raise ValueError(f"{len(worker.gaps):,} gaps between tokens, {gaps:,} of them reported")
    if len(worker.turns) not in (0, len(worker.base)):
        raise ValueError(f"{len(worker.turns):,} turns of {len(worker.base):,} requests")
    if (worker.metrics["row"] >= len(worker.base)).any():
        raise ValueError("a metric of no request")
    named = worker.metrics["name"][worker.metrics["name"] != FIRST_ANSWER]
    if (named >= len(worker.metric_names)).any():
        raise ValueError("a metric without a name")


def _order(workers: Sequence[WorkerColumns]) -> Int64:
    """The places of the rows, worker after worker, in the order of the wave.

    A whole number of index, turn, attempt and place is sorted in a fraction of the time that places are sorted in by
    others.
    """
    index = np.concatenate([np.zeros(0, np.int64), *(worker.base["index"] for worker in workers)])
    if not len(index):
        return index
    attempts, turns = _all_attempts(workers), _turn_field(workers, "turn")
    attempt_bits = int(attempts.max()).bit_length()
    turn_bits = 0 if turns is None else int(turns.max()).bit_length()
    least, place_bits, minor_bits = int(index.min()), len(index).bit_length(), turn_bits + attempt_bits
    if not minor_bits and int(index.max()) - least < len(index):
        places = np.full(len(index), -1)
        places[index - least] = np.arange(len(index))
        if places.min() >= 0:  # each arrival has one request
            return places
    if (int(index.max()) - least).bit_length() + place_bits + minor_bits > _KEY_BITS:
        return np.lexsort((attempts, *(() if turns is None else (turns,)), index))
    keys = (index - least) << minor_bits | attempts
    if turns is not None:
        keys |= turns.astype(np.int64) << attempt_bits
    keys = keys << place_bits | np.arange(len(keys))
    keys.sort()
    return keys & ((1 << place_bits) - 1)


def _all_attempts(workers: Sequence[WorkerColumns]) -> npt.NDArray[np.uint16]:
    numbers = np.zeros(sum(len(worker.base) for worker in workers), np.uint16)
    begin = 0
    for worker in workers:
        numbers[begin + worker.attempts[:, 0]] = worker.attempts[:, 1]
        begin += len(worker.base)
    return numbers


def _turn_field(workers: Sequence[WorkerColumns], name: str) -> npt.NDArray[Any] | None:
    """A field of the turns of all requests; None where they are no sessions'."""
    if not any(len(worker.turns) for worker in workers):
        return None
    if any(len(worker.turns) != len(worker.base) for worker in workers):
        raise ValueError("some requests have turns, and others none")
    return np.concatenate([worker.turns[name] for worker in workers])


def _turn_columns(workers: Sequence[WorkerColumns], order: Int64) -> dict[str, pa.Array]:
    """The columns of sessions: null in all rows where there are none."""
    turns, thought = (_turn_field(workers, name) for name in ("turn", "think_ns"))
    names = [["", *ENDINGS]] * len(workers)
    if turns is None or thought is None:
        no_turn, nothing = (arrow.nothing(len(order), np.dtype(kind)) for kind in (np.uint16, np.int64))
        ended = _named([np.zeros(0, np.int64)], names[:1], order, zero_is_null=True)
        return {"turn": no_turn, "session": nothing, "think_ns": nothing, "ended": ended, "context_tokens": nothing}
    return {
        "turn": arrow.nullable(turns.take(order), 0),
        "session": arrow.column(_field(workers, "index").take(order)),
        "think_ns": arrow.nullable(thought.take(order), NONE),
        "ended": _named([worker.turns["ended"] for worker in workers], names, order, zero_is_null=True),
        "context_tokens": arrow.nullable(_tokens_in(workers)[order], NONE),
    }


def _tokens_in(workers: Sequence[WorkerColumns]) -> Int64:
    return np.concatenate([_spread(worker, "tokens_in", NONE) for worker in workers])


def _field(workers: Sequence[WorkerColumns], name: str) -> npt.NDArray[Any]:
    return np.concatenate([np.zeros(0, BASE_DTYPE[name]), *(worker.base[name] for worker in workers)])


def _named_columns(workers: Sequence[WorkerColumns], order: Int64) -> dict[str, pa.Array]:
    """The columns of names, and the workers' numbers."""
    places = np.repeat(
        np.array([worker.worker for worker in workers], np.uint16), [len(worker.base) for worker in workers]
    )
    outcomes = [worker.base["outcome"] for worker in workers]
    finish = [outcome >> FINISH_SHIFT & FINISH_MASK for outcome in outcomes]
    outcomes = [outcome & OUTCOME for outcome in outcomes]
    labels, errors = ([worker.base[name] for worker in workers] for name in ("label", "error"))
    return {
        "worker": arrow.column(places.take(order)),
        "label": _named(labels, [worker.labels for worker in workers], order),
        "error": _named(errors, [worker.errors for worker in workers], order, zero_is_null=True),
        "outcome": _named(outcomes, [list(OUTCOMES)] * len(workers), order),
        "finish_reason": _named(finish, [worker.finish_reasons for worker in workers], order, zero_is_null=True),
    }


def _named(
    numbers: Sequence[npt.NDArray[Any]], names: Sequence[list[str]], order: Int64, *, zero_is_null: bool = False
) -> pa.Array:
    """Each worker's numbers of its own names as one column of names."""
    everyone = list(dict.fromkeys(name for own in names for name in own))
    if zero_is_null and not any(some.any() for some in numbers):
        return pa.DictionaryArray.from_arrays(arrow.nothing(len(order), np.dtype(np.int32)), arrow.texts(everyone))
    place = {name: number for number, name in enumerate(everyone)}
    codes = [np.zeros(0, np.int32)]
    for some, own in zip(numbers, names, strict=True):
        places = np.array([place.get(name, 0) for name in own or [""]], np.int32)
        if zero_is_null:
            places[0] = -1
        if len(some) and (highest := int(some.max())) >= len(places):
            raise ValueError(f"number {highest} of a name is out of bounds")
        codes.append(places[some])
    taken = np.concatenate(codes).take(order)
    return pa.DictionaryArray.from_arrays(
        arrow.nullable(taken, -1) if zero_is_null else arrow.column(taken), arrow.texts(everyone)
    )


def _stream_columns(workers: Sequence[WorkerColumns], order: Int64) -> dict[str, pa.Array]:
    """The columns only some requests have, spread to their rows; entries and gaps lie in the order of rows."""
    for worker in workers:
        check_rows(worker)
    if not any(len(worker.streams) for worker in workers):
        nothing = arrow.nothing(len(order), np.dtype(np.int64))
        numbers = dict.fromkeys((*_STREAM_NUMBERS, "first_answer"), nothing)
        return {**numbers, "gaps": arrow.no_lists(len(order), pa.uint32())}

    def spread(name: str, missing: int) -> Int64:
        return np.concatenate([_spread(worker, name, missing) for worker in workers])

    columns = {name: arrow.nullable(spread(name, NONE)[order], NONE) for name in _STREAM_NUMBERS}
    answers = np.concatenate([_first_answers(worker) for worker in workers])
    columns["first_answer"] = arrow.nullable(answers[order], NONE)
    gaps = np.concatenate([worker.gaps for worker in workers])
    if len(gaps) > _MOST_GAPS:
        raise ValueError(f"{len(gaps):,} gaps between tokens, which are more than a column holds")
    offsets = np.concatenate(([0], np.cumsum(spread("gaps", 0)))).astype(np.int32)
    no_pieces = np.append(spread("chunks", NONE) == NONE, False)
    lists = pa.ListArray.from_arrays(arrow.column(offsets, no_pieces), arrow.column(gaps))
    columns["gaps"] = lists.take(arrow.column(order))
    return columns


def _first_answers(worker: WorkerColumns) -> Int64:
    """When the first piece of an answer came, of streams that began with reasoning, at the rows of their requests."""
    values = np.full(len(worker.base), NONE, np.int64)
    own = worker.metrics[worker.metrics["name"] == FIRST_ANSWER]
    first, after = _spread(worker, "first_token", NONE)[own["row"]], own["value"]
    came = (first != NONE) & (after >= 0) & (after <= _MOST_AFTER_NS)
    values[own["row"][came]] = first[came] + after[came].astype(np.int64)
    return values


def _metric_columns(workers: Sequence[WorkerColumns], order: Int64) -> dict[str, pa.Array]:
    """A column for each name that any of the workers has, in the order of the names."""
    columns = {}
    for name in sorted({name for worker in workers for name in worker.metric_names}):
        values = np.concatenate([_metric(worker, name) for worker in workers]).take(order)
        columns[PREFIX + name] = arrow.column(values, np.isnan(values))
    return columns


def _metric(worker: WorkerColumns, name: str) -> npt.NDArray[np.float64]:
    """The values of a metric at the rows of their requests; NaN where none was reported."""
    values = np.full(len(worker.base), np.nan)
    if name in worker.metric_names:
        own = worker.metrics[worker.metrics["name"] == worker.metric_names.index(name)]
        values[own["row"]] = own["value"]
    return values


def _spread(worker: WorkerColumns, name: str, missing: int) -> Int64:
    """A number of the streams, at the rows of their requests."""
    values = np.full(len(worker.base), missing, np.int64)
    values[(worker.base["outcome"] & HAS_STREAM) != 0] = worker.streams[name]
    return values
