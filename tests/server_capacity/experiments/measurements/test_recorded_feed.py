"""The feed that is made again from records is the one that the workers sent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.hosts import HostFacts
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.recorded_feed import recorded_feed
from tests.waves import MS, Worker, observe, on_time, staged

if TYPE_CHECKING:
    from inference_benchmarker.records.record import RequestRecord


def varied(each: RequestRecord) -> RequestRecord:
    """Streams of three tokens, requests that failed or nobody waited for, payloads that took a while, and lag."""
    each = each._replace(sent=each.sent + each.index % 7 * MS, build_ns=each.index % 3 * MS, done=each.done + 9 * MS)
    if each.index % 5 == 0:
        return each._replace(outcome="failed", error="E")
    if each.index % 5 == 1:
        return each._replace(outcome="abandoned")
    first, last = each.sent + 3 * MS, each.sent + 9 * MS
    return each._replace(first_token=first, last_token=last, chunks=3, tokens_out=3, gaps=(2000, 4000))


@pytest.mark.parametrize("hosts", [(), (HostFacts("load1", (0,)), HostFacts("load2", (1,)))], ids=["alone", "hosted"])
def test_it_has_the_times_that_the_workers_reported(hosts: tuple[HostFacts, ...]) -> None:
    plan = staged("20:3s,0:1s,70:2s", workers=2)
    records, live = [varied(each) for each in on_time(plan)], Feed()
    for number in range(2):
        worker = Worker(number)
        worker.writer.feed.set_stages([3 * NS, 4 * NS])
        for each in records:
            if each.worker == number:
                worker.write(each)
        live.merge(worker.writer.feed.unreported()["feed"], ["", "E"], hosts[number].name if hosts else None)

    found = recorded_feed(replace(observe(plan, records), hosts=hosts))

    assert live.stage(2).times["ttft"].count > 0
    for stage in range(3):
        assert found.lags(stage) == live.lags(stage)
        for name in ("lag", "latency", "response_time", "ttft"):
            assert found.stage(stage).times[name] == live.stage(stage).times[name], name
