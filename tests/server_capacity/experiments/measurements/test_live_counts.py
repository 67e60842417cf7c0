"""The counts that steer a search while its wave runs are those that its records give once it is over."""

from __future__ import annotations

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.batch import HAS_STREAM, split_batch
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.feed import Cell, Feed
from inference_benchmarker.records.record import NONE, OK
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.live_counts import counts_of
from server_capacity.search.limits import Limit
from server_capacity.search.stretch import Count

MS = NS // 1000


def held_up_by_prompts(answers: int, tokens: int) -> Cell:
    """Answers of a token each 6 ms, of whose gaps one in ten takes 30 ms, since another request's prompt came."""
    writer, feed = BatchWriter(), Feed()
    for index in range(answers):
        times = [0]
        for place in range(tokens - 1):
            times.append(times[-1] + (30 if place % 10 == 5 else 6) * MS)
        writer.add(index, 0, 0, times[-1], 0, NONE, 0, 0, OK | HAS_STREAM)
        writer.add_stream(times, 10, tokens)
    feed.merge(split_batch(writer.take({}))[0]["feed"], [""])
    return feed.total()


def test_a_time_per_output_token_is_that_of_an_answer_and_not_each_gap() -> None:
    cell = held_up_by_prompts(answers=20, tokens=51)
    tpot, itl = (Limit.of(Slo.parse(f"{metric}.p95<25ms"), "latency") for metric in ("tpot", "itl"))
    assert counts_of(tpot, cell, ()) == Count(20, 0), "8.4 ms on average"
    assert counts_of(itl, cell, ()) == Count(1000, 100)
