"""Requests of made-up waves, as records and as they are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from inference_benchmarker.records.aggregation import BatchAggregator
from inference_benchmarker.records.batch import split_batch
from inference_benchmarker.records.counting import CountingBatchWriter
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.wave.wave import Wave
from tests.waves import Worker, observe, open_plan, streamed

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from inference_benchmarker.records.counts import Counts

_LATENCIES = st.integers(0, 40).map(lambda power: int(1.8**power))


@st.composite
def requests(draw: st.DrawFn, streams: bool = True) -> list[RequestRecord]:
    """Up to fifty requests of two workers, some before the window, each in the order in which it was over."""
    rows = []
    for number in range(draw(st.integers(0, 50))):
        index = number - 10
        due = index * 100_000_000
        build = draw(st.sampled_from((0, 0, 0, 1_234_567)))
        sent = due + build + draw(st.integers(0, 5_000_000))
        outcome = draw(st.sampled_from(("ok", "ok", "ok", "failed", "abandoned")))
        stream: dict[str, Any] = {}
        done = sent + draw(_LATENCIES)
        if streams and draw(st.booleans()):
            gaps = tuple(draw(st.lists(st.integers(0, 1 << 20), max_size=4)))
            pieces = len(gaps) + 1 if draw(st.booleans()) else 0
            stream = {"chunks": pieces, "gaps": gaps if pieces else ()}
            if pieces:
                first = sent + draw(_LATENCIES)
                last = first + 1000 * sum(gaps)
                stream |= {"first_token": first, "last_token": last}
                done = max(done, last)
            reported = draw(st.sampled_from((None, 3, 100)))
            stream |= {"tokens_out": reported, "tokens_in": draw(st.sampled_from((None, 7)))}
        error = draw(st.sampled_from(("E1", "E2"))) if outcome == "failed" else None
        label = draw(st.sampled_from(("", "a", "b")))
        rows.append(RequestRecord(index, number % 2, due, sent, done, outcome, label, error, build, **stream))
    return rows


def unrecorded() -> Wave:
    """A wave of ten streams a second as ``--records none`` leaves it."""
    records = [streamed(place, 20, (20,) * 5, tokens_out=6) for place in range(200)]
    facts = observe(open_plan("10", "20", records="none"), records)
    members = {name: getattr(facts, name) for name in facts.__dataclass_fields__}
    return Wave(**members | {"counts": counted(records)})


def counted(
    records: Iterable[RequestRecord],
    *,
    stage_ends: Sequence[int] = (),
    open_loop: bool = True,
    draw: random.Random | None = None,
) -> Counts:
    """The counts of some records, as their workers tell them and a reader adds them up."""
    rows = list(records)
    adder = BatchAggregator()
    for number in sorted({row.worker for row in rows}):
        for batch, worker in batches([row for row in rows if row.worker == number], stage_ends, open_loop, draw):
            adder.add(
                split_batch(batch)[0],
                labels=worker.labels._names,
                errors=worker.errors._names,
                reasons=worker.finish_reasons._names,
            )
    return adder.counts()


def batches(
    rows: list[RequestRecord], stage_ends: Sequence[int], open_loop: bool, draw: random.Random | None
) -> Iterable[tuple[bytes, CountingBatchWriter]]:
    """The batches of one worker, at random instants."""
    worker = Worker()
    writer = worker.writer = CountingBatchWriter(warmup=any(row.index < 0 for row in rows))
    writer.feed.set_stages(stage_ends)
    writer.feed.open_loop = open_loop
    for row in sorted(rows, key=lambda row: (row.outcome == "abandoned", row.done)):
        if row.index >= 0:
            writer.feed.sendings.append((row.due, row.sent - row.build_ns))
        worker.write(row)
        if draw is not None and draw.random() < 0.1:
            yield writer.take({}), writer
    yield writer.take({}), writer
