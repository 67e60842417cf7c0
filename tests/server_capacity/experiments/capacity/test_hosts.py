"""A search from several hosts says on which of them the client's limit was."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.plan.slo import Slo
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


def reason(plan: WavePlan, worker: int, ledger: Ledger, cpu_s: float = 0.0) -> str:
    """Of a stretch of 10 s in which one of four workers did this."""
    state = SpoolState([], 4)
    limits = limits_of([Slo.parse("p99<100ms")], 0.95)
    watch = ClientWatch(Question(plan, limits, Settings(), plan.workers))
    watch.begin(state)
    for each in state.workers:
        each.at, each.use = 10 * NS, {"cpu_s": 1.0}
    state.workers[worker].ledger = ledger
    state.workers[worker].use = {"cpu_s": 1.0 + cpu_s}
    return watch.reason(state, 0, 10.0)


@pytest.mark.parametrize(
    ("plan", "prefix"), [(ALONE, ""), (HOSTED, "load2: "), (UNCOUNTED, "")], ids=["alone", "hosted", "uncounted"]
)
def test_the_host_is_named(plan: WavePlan, prefix: str) -> None:
    limit = f"the client was the limit: {prefix}"
    assert reason(plan, 2, Ledger(dropped=5)) == f"{limit}5 arrivals found no place in flight"
    assert reason(plan, 3, Ledger(late_changes=1)) == f"{limit}a worker heard of a change of the rate too late"
    assert reason(plan, 3, Ledger(), cpu_s=8.5).startswith(f"{limit}worker 3 used 9")
    assert reason(plan, 3, Ledger()) == ""
