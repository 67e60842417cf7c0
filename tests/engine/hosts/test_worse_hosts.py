"""A host that is worse than the others is named: one that sees more latency, and one whose CPU time is limited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.launch import run_wave
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.usefixtures("users_ssh")]

FAR = """
import os
import time

FAR_S = 0.08 if os.path.exists("/home/load/far") else 0.02


def invoke_factory(endpoint_name=None):
    return lambda payload: time.sleep(FAR_S)


def payload_factory():
    return {"pre_computed": True, "input": [1]}
"""
BUSY = FAR.replace("time.sleep(FAR_S)", "sum(range(100_000))")


def measured(folder: Path, stamps: StampServer, source: str, *names: str) -> Wave:
    """A wave of 8 s, whose requests are what the source says."""
    path = folder / "endpoint.py"
    path.write_text(source)
    plan = a_plan(folder, stamps.url, *(f"{name}*1" for name in names), seconds=8)
    return run_wave(replace(plan, factories_file=path, factory_settings={}))


def test_one_that_sees_more_latency_is_named(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    hosts = lab.start(Spec("near"), Spec("close", clock_s=9), Spec("distant", clock_s=-40))
    hosts[2].run("touch", "/home/load/far", check=True)
    wave = measured(tmp_path, stamps, FAR, *(host.name for host in hosts))
    reported = [finding.measured for finding in wave.verdict.findings if finding.code == "host_differs"]
    assert [text.split()[0] for text in reported] == ["distant"]


def test_one_whose_quota_is_used_up_is_named_with_it(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    lab.start(Spec("strong"), Spec("weak", cpus=0.08))
    wave = measured(tmp_path, stamps, BUSY, "strong", "weak")
    strong, weak = (host.use for host in wave.hosts)
    assert strong is not None
    assert weak is not None
    assert not strong.throttled_s
    assert weak.throttled_s is not None
    assert weak.throttled_s > 0.1
    (late,) = [finding for finding in wave.verdict.findings if finding.code == "schedule_lag"]
    assert late.advice.startswith("The cgroup throttled weak for ")
