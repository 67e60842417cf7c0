"""Waves of one command: each host is logged in to once, and nothing of a wave is left there for the next one."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.hosts.protocol import LEASE_S
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]

SECRET = "tok-45c48cce2e2d7fbdea1afc51c7c6ad26"
REQUESTS = 20
SHIFTS_S = (30, -50)


class Said:
    """A view that keeps what it gets."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.say = self.texts.append

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""

    def close(self) -> None:
        """It is over."""


@pytest.fixture(scope="module")
def two(laboratory: Lab) -> Iterator[list[Host]]:
    hosts = laboratory.start(*(Spec(name, shift) for name, shift in zip(("one", "other"), SHIFTS_S, strict=True)))
    yield hosts
    laboratory.stop(*hosts)


@pytest.fixture
def plan(stamps: StampServer, two: list[Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WavePlan:
    """A short wave from both hosts, which are given a secret."""
    monkeypatch.setenv("UPSTREAM_TOKEN", SECRET)
    names = [f"{host.name}*1" for host in two]
    whole = a_plan(tmp_path, stamps.url, *names, of_hosts={"pass_env": ("UPSTREAM_TOKEN",)})
    return replace(whole, bounds=Bounds(num_requests=REQUESTS))


def agent(host: Host) -> int:
    """The process of the host's one agent."""
    (found,) = (each.pid for each in host.processes() if re.match(r"\S+python .*engine.hosts.agent", each.command))
    return found


def assert_whole(plan: WavePlan, stamps: StampServer, view: Said | None = None) -> None:
    before = len(stamps.log())
    wave = run_wave(plan, view)
    assert wave.ledger.ok == REQUESTS == len(stamps.log()) - before
    clocks = [host.clock for host in wave.hosts]
    assert all(
        clock is not None and abs(clock.offset_s - shift) <= clock.uncertainty_s
        for clock, shift in zip(clocks, SHIFTS_S, strict=True)
    )


def test_waves_of_a_command_use_the_same_login_unless_a_host_was_lost_between_them(
    plan: WavePlan, stamps: StampServer, two: list[Host]
) -> None:
    view = Said()
    with keeping_logins():
        assert_whole(plan, stamps)
        first = [agent(host) for host in two]
        assert [host.grep(SECRET) for host in two] == [[], []]
        workers = [each.command for host in two for each in host.processes() if "engine.worker" in each.command]
        assert workers == []
        (folder,) = (two[0].root / "tmp").glob("benchmark-*")
        assert sorted(path.name for path in folder.iterdir()) == ["lease", "primary"]
        assert_whole(plan, stamps)
        assert [agent(host) for host in two] == first
        os.kill(first[1], signal.SIGKILL)
        assert_whole(plan, stamps, view)
        last = [agent(host) for host in two]
    assert (last[0] == first[0], last[1] == first[1]) == (True, False)
    assert [text.startswith("other: ") for text in view.texts if text.endswith("; logging in again.")] == [True]
    assert [host.left() for host in two] == [[], []]


def test_one_that_cannot_be_logged_in_again_is_refused_before_any_load(
    plan: WavePlan, stamps: StampServer, two: list[Host]
) -> None:
    with keeping_logins():
        assert_whole(plan, stamps)
        two[1].kill_sshd(sessions=True)
        try:
            with pytest.raises(BenchmarkError, match=r"other cannot be used: .*Connection refused"):
                run_wave(plan)
        finally:
            two[1].start_sshd()
        assert len(stamps.log()) == REQUESTS
    assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
def test_an_agent_outlives_its_lease_between_two_waves(plan: WavePlan, stamps: StampServer, two: list[Host]) -> None:
    with keeping_logins():
        assert_whole(plan, stamps)
        first = [agent(host) for host in two]
        time.sleep(LEASE_S + 2)
        assert_whole(plan, stamps)
        assert [agent(host) for host in two] == first
    assert [host.left() for host in two] == [[], []]
