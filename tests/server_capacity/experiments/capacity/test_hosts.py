"""A search from several hosts says on which of them the client's limit was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.client_limit import ClientWatch
from server_capacity.experiments.measurements.question import Question
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.waves import open_plan

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

ALONE = open_plan(workers=4)
HOSTED = ALONE.on(Hosts(hosts_in("load1*2,load2*2")))
UNCOUNTED = replace(ALONE, hosts=Hosts(hosts_in("load1,load2*3")))


HOST: dict[str, Any] = {"versions": {}, "constants": {}, "clock": None, "lost": None}


def state_of(plan: WavePlan) -> SpoolState:
    """A wave of four workers; of hosts, one has reported by now that it has two cores."""
    state = SpoolState([], 4)
    if plan.hosts:
        hosts = [{**HOST, "name": "load1", "workers": [0, 1]}, {**HOST, "name": "load2", "workers": [2, 3]}]
        state.hosts.take({"event": "hosts", "hosts": hosts, "ahead_ns": [None] * 4})
    return state


def watch_of(plan: WavePlan) -> ClientWatch:
    return ClientWatch(Question(plan, limits_of([Slo.parse("p99<100ms")], 0.95), Settings(), plan.workers))


def reason(plan: WavePlan, worker: int, ledger: Ledger, cpu_s: float = 0.0) -> str:
    """Of a stretch of 10 s in which one of four workers did this."""
    state, watch = state_of(plan), watch_of(plan)
    watch.begin(state)
    for each in state.workers:
        each.at, each.use = 10 * NS, {"cpu_s": 1.0}
    state.workers[worker].ledger = ledger
    state.workers[worker].use = {"cpu_s": 1.0 + cpu_s}
    return watch.reason(state, 0, 10.0)


@pytest.mark.parametrize(
    ("plan", "prefix"), [(ALONE, ""), (HOSTED, "load2: "), (UNCOUNTED, "load2: ")], ids=["alone", "hosted", "uncounted"]
)
def test_the_host_is_named(plan: WavePlan, prefix: str) -> None:
    limit = f"the client was the limit: {prefix}"
    assert reason(plan, 2, Ledger(dropped=5)) == f"{limit}5 arrivals were dropped at the limit of requests in flight"
    assert reason(plan, 3, Ledger(late_changes=1)) == f"{limit}a worker received a change of the rate too late"
    assert reason(plan, 3, Ledger(), cpu_s=8.5).startswith(f"{limit}worker 3 used 9")
    assert reason(plan, 3, Ledger()) == ""


@pytest.mark.parametrize(("plan", "prefix"), [(ALONE, ""), (UNCOUNTED, "load2: ")], ids=["alone", "hosted"])
def test_the_host_that_sent_late_is_named(plan: WavePlan, prefix: str) -> None:
    state = state_of(plan)
    for worker in range(4):
        late_ns = 50_000_000 if worker == 3 else 0
        writer = BatchWriter()
        for index in range(worker, 80, 4):
            sent = index * 10_000_000 + late_ns
            writer.add(index, index * 10_000_000, sent, sent + 1_000_000, 0, 2, 0, 0, 0)
        state.feed.merge(writer.feed.unreported()["feed"], [""], state.hosts.name_of(worker))
    assert (
        watch_of(plan).late(state.feed, 0).startswith(f"the client was the limit: {prefix}it sent 25% of the requests")
    )
    assert watch_of(plan).late(state.feed, 1) == ""
