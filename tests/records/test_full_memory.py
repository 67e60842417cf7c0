"""A worker whose memory is full for a while tells all of what it recorded later, under the same names."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from inference_benchmarker.engine.worker.in_flight import OpenSession, Slot
from inference_benchmarker.engine.worker.sent_prompts import SentPrompts
from inference_benchmarker.records import batch_writer
from inference_benchmarker.records.batch import HAS_STREAM, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.records.feed_writer import MOST_ROWS, FeedWriter
from inference_benchmarker.records.names import Names
from inference_benchmarker.records.prompts import ROW
from inference_benchmarker.records.record import FAILED, NONE, OK
from tests.waves import MS

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES: list[tuple[object, str]] = [(batch_writer, "joined_batch"), (FeedWriter, "unreported"), (Names, "unreported")]
PLACES += [(FeedWriter, "_groups"), (FeedWriter, "_places")]


def no_memory(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError


def write(writer: BatchWriter, index: int, label: str) -> None:
    """An arrival that failed and was tried again: a stream with a metric and a reason to end."""
    due = index * 300 * MS
    error, _ = writer.error(ValueError(f"of {label}"))
    writer.feed.sendings.append((due, due))
    writer.add(index, due, due, due + 30 * MS, 0, 10, writer.labels[label], error, FAILED)
    times = [due + 40 * MS, due + 60 * MS]
    reason = writer.finish_reasons[f"because of {label}"] << 2
    writer.add(index, due, due, due + 70 * MS, 0, 10, writer.labels[label], 0, OK | reason | HAS_STREAM)
    writer.add_stream(times, 7, NONE)
    writer.add_metrics({f"seen by {label}": 1.5})
    if type(writer) is BatchWriter:
        writer.turns.append((NONE, 1, 0))
        writer.add_attempt(1, due)
        writer.turns.append((NONE, 2, 1))


def reported(batch: bytes) -> tuple[dict[str, Any], list[bytes]]:
    meta, *sections = split_batch(batch)
    meta["feed"].sort(key=lambda cell: (cell["s"], cell["n"]))
    return meta, [bytes(section) for section in sections]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[1])
@pytest.mark.parametrize("make", [BatchWriter, CountingBatchWriter])
def test_a_batch_that_has_no_room_is_in_the_next_one(
    make: Callable[[], BatchWriter], place: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    full, roomy = make(), make()
    for writer in (full, roomy):
        write(writer, 0, "small")
        writer.take({})
        write(writer, 1, "large")
        write(writer, 2, "huge")
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(*place, no_memory)
            with pytest.raises(MemoryError):
                full.take({})
    for writer in (full, roomy):
        write(writer, 3, "large")
        write(writer, 4, "tiny")
    batch = full.take({})
    assert reported(batch) == reported(roomy.take({}))
    assert split_batch(batch)[0]["labels"] == ["large", "huge", "tiny"]
    assert reported(full.take({})) == reported(roomy.take({}))


@pytest.mark.parametrize("place", ["_groups", "_count_columns", "_count_ended"])
def test_a_row_that_could_not_be_counted_is_in_a_batch_once(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts are those of the progress; the rows are what is measured."""
    full, roomy = BatchWriter(), BatchWriter()
    for index in range(2 * MOST_ROWS):
        for writer in (full, roomy):
            is_full = writer is full and index >= MOST_ROWS
            with monkeypatch.context() as patch:
                if is_full:
                    patch.setattr(FeedWriter, place, no_memory)
                writer.add(index, index, index, index + MS, 0, 10, 0, 0, OK)
    assert reported(full.take({}))[1] == reported(roomy.take({}))[1]


def test_prompts_are_reported_until_they_are_in_a_report() -> None:
    worker, slot = SentPrompts(), Slot()
    slot.payload = {"messages": [{"role": "user", "content": "x" * 64}]}
    worker.add(slot, OpenSession(0))
    first = worker.unreported()
    assert (worker.unreported(), len(b64decode(first["prompt_rows"]))) == (first, ROW.size)
    worker.mark_reported()
    assert worker.unreported() == {}


def test_prompts_without_memory_for_their_sums_are_reported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = SentPrompts(), SentPrompts()
    for worker in workers:
        for number in range(2):
            slot = Slot()
            slot.payload = {"messages": [{"role": "user", "content": f"{number}" * 64}]}
            worker.add(slot, OpenSession(number))
    with monkeypatch.context() as patched:
        patched.setattr(workers[0], "_sums_of", no_memory)
        with pytest.raises(MemoryError):
            workers[0].unreported()
    assert workers[0].unreported() == workers[1].unreported()
