"""A rate that is changed while hosts send, one of them far away: a change is in force on all of them at one instant."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.engine.pilot import End, Rate
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec
from tests.parts import in_memory
from tests.steered import Script

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.usefixtures("users_ssh")]

TRIES = 3  # on a very busy machine a worker may hear of a change too late, which the wave says


def test_changes_are_in_force_on_every_host_at_one_instant(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    """Each of the hosts has another clock; commands to one of them take 50 ms."""
    hosts = lab.start(Spec("near", 500), Spec("distant", -70, relayed=True))
    assert hosts[1].relay is not None
    hosts[1].relay.delay(0.05)
    plan = replace(
        a_plan(tmp_path, stamps.url, "near*1", "distant*1"), load=OpenLoop(Decimal(100), steered=True), bounds=Bounds()
    )
    for _ in range(TRIES):
        before = len(stamps.log())
        wave = run_wave(plan, pilot=Script([(0.5, Rate(Decimal(40))), (1.5, Rate(Decimal(150))), (2.5, End())]))
        if not wave.ledger.late_changes:
            break
    assert wave.ledger.late_changes == 0
    assert isinstance(wave.plan.load, OpenLoop)
    assert [int(stage.to_rps) for stage in wave.plan.load.stages] == [100, 40, 150]
    planned = sorted(tuple(each) for worker in range(2) for each in TokenBucket.of(wave.plan).arrivals(worker))
    rows = zip(*(in_memory(wave.records).int(name).tolist() for name in ("index", "due")), strict=True)
    assert list(rows) == planned
    assert len(stamps.log()) - before == len(planned)
    assert [host.left() for host in hosts] == [[], []]
