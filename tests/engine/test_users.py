"""Users who think, in real waves, judged by the log of the endpoint."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker import BenchmarkError, Bounds, ClosedLoop, Wave, WavePlan, run_wave
from inference_benchmarker.engine.pilot import End, Rate, Users
from inference_benchmarker.plan.problems import check_plan
from inference_benchmarker.plan.think import Think
from tests.bench import FACTORIES, NS, OF_A_BUSY_MACHINE, SENDER, Bench
from tests.parts import in_memory
from tests.steered import Script, Watching

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process


def test_users_who_think_send_as_the_response_time_law_says_and_follow_a_pilot(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10 users, then 30, of 20 ms of service and 180 ms of thought."""
    (tmp_path / "sender.py").write_text(SENDER)
    (tmp_path / "factories.py").write_text(FACTORIES)
    load = ClosedLoop(10, Think.parse("180ms"), steered=True)
    plan = WavePlan(
        load,
        Bounds(),
        tmp_path / "factories.py",
        workers=2,
        seed=3,
        output_dir=tmp_path / "runs",
        warmup_s=Decimal("0.2"),
    )
    script = Script([(1, Users(30)), (1.7, Rate(Decimal("0.5"))), (2, Users(0)), (2.3, End())])
    watching = Watching()
    with bench.endpoint(servers=40, service="fixed", service_s=0.02) as endpoint:
        monkeypatch.setenv("TARGET", endpoint.url)
        wave = run_wave(plan, watching, pilot=script)
        arrived = np.sort(endpoint.arrivals()["queued_ns"]) - wave.window.t0_monotonic_ns
    offered = wave.plan.load
    assert isinstance(offered, ClosedLoop)
    assert [each.users for each in offered.populations] == [10, 30, 0]
    assert len(arrived) == wave.ledger.sent + len(wave.warmup)
    assert wave.ledger.scheduled == wave.ledger.sent == wave.ledger.ok
    assert not {finding.code for finding in wave.verdict.findings if finding.severity == "invalid"} - OF_A_BUSY_MACHINE
    ends = np.cumsum([int(each.duration_s * NS) for each in offered.populations])
    dues, done = (in_memory(wave.records).int(name) for name in ("due", "done"))
    for users, start, end in ((10, 0, ends[0]), (30, ends[0] + NS // 5, ends[1])):
        rate = ((arrived >= start) & (arrived < end)).sum() / ((end - start) / NS)
        mine = (dues >= start) & (dues < end)
        cycle_s = (done - dues)[mine].mean() / NS + 0.18
        assert rate * cycle_s == pytest.approx(users, rel=0.1), "the law, whatever a busy machine adds to an answer"
    assert not (dues >= ends[1] + 30 * NS // 1000).any()
    stages = Counter(bisect_right(ends.tolist(), due) for due in dues.tolist())
    feed = watching.spool_state.feed
    assert {number: feed.stage(number).sent for number in stages} == stages
    assert wave.summary.response_time is None
    assert wave.run_dir is not None
    assert Wave.load(wave.run_dir.path).to_json() == wave.to_json()


@pytest.mark.parametrize("number", [-1, 1_000_001])
def test_no_order_asks_for_a_number_of_users_that_there_cannot_be(number: int) -> None:
    with pytest.raises(ValueError, match="users"):
        Users(number)


def test_users_need_a_factories_file(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("")
    plan = WavePlan(ClosedLoop(2, Think.parse("1s")), Bounds(Decimal(1)), locust_file=tmp_path / "file.py")
    with pytest.raises(BenchmarkError, match="wait_time"):
        check_plan(plan)
