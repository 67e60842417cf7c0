"""Links that are cut and hosts that are lost while a wave runs: what is counted, and what is left there."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.hosts.ssh import SshTransport
from inference_benchmarker.engine.launch import run_wave
from tests.engine.hosts.plans import PATIENCE_S, a_plan, once_it_runs
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]


@pytest.fixture(scope="module")
def two(laboratory: Lab) -> Iterator[list[Host]]:
    """Two hosts; the second one is reached through a relay, which can be cut."""
    hosts = laboratory.start(Spec("near"), Spec("far", clock_s=-50, relayed=True))
    yield hosts
    laboratory.stop(*hosts)


def kill(host: Host, word: str) -> None:
    """Kill the Python process of a host whose arguments have this word, and not the shell that started it."""
    found = [
        process.pid for process in host.processes() if re.match(rf"\S+python .*{re.escape(word)}", process.command)
    ]
    os.kill(found[0], signal.SIGKILL)


@pytest.mark.parametrize("cut_s", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_a_link_that_is_cut_for_less_than_the_lease_is_mended(
    stamps: StampServer, two: list[Host], tmp_path: Path, cut_s: int
) -> None:
    relay = two[1].relay
    assert relay is not None

    def cut_and_mend() -> None:
        relay.cut()
        threading.Timer(cut_s, relay.mend).start()

    with once_it_runs(stamps, cut_and_mend):
        wave = run_wave(a_plan(tmp_path, stamps.url, "near*1", "far*1", seconds=2))
    assert wave.lost_workers == ()
    assert wave.ledger.ok == 400 == len(stamps.log())
    assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
@pytest.mark.parametrize("out_s", [4, 8])
def test_a_cable_that_is_out_for_less_than_the_lease_loses_no_host(
    stamps: StampServer, two: list[Host], tmp_path: Path, out_s: int
) -> None:
    """TCP tries again after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s: the last is after the lease's end, if nobody knocks."""

    def unplug_and_plug() -> None:
        two[0].unplug()
        threading.Timer(out_s, two[0].plug).start()

    with once_it_runs(stamps, unplug_and_plug):
        wave = run_wave(a_plan(tmp_path, stamps.url, "near*1", "far*1", seconds=2))
    assert wave.lost_workers == ()
    assert (wave.ledger.sent, wave.ledgers[1].ok) == (400, 200)
    assert wave.hosts[0].lost is None
    assert [host.left() for host in two] == [[], []]


@pytest.mark.parametrize("victim", ["engine.hosts.agent", pytest.param("engine.worker", marks=pytest.mark.slow)])
def test_what_is_killed_on_a_host_is_lost_and_the_others_go_on(
    stamps: StampServer, two: list[Host], tmp_path: Path, victim: str
) -> None:
    with once_it_runs(stamps, lambda: kill(two[1], victim)):
        wave = run_wave(a_plan(tmp_path, stamps.url, "near*1", "far*1", seconds=2))
    assert wave.lost_workers == (1,)
    assert (wave.ledgers[0].sent, wave.ledgers[0].ok) == (200, 200)
    assert wave.ledgers[1].lost > 0
    assert wave.ledgers[0].in_flight == 0
    assert (
        len(wave.records) == wave.ledger.sent - wave.ledgers[1].in_flight
    )  # it had reported some that it then awaited
    assert wave.ledger.sent <= len(stamps.log())
    far = wave.hosts[1]
    assert (far.name, far.lost is not None) == ("far", victim == "engine.hosts.agent")
    assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
@pytest.mark.parametrize("cut_s", [11, 30])
def test_a_host_behind_a_link_that_stays_cut_is_lost_and_ends_by_itself(
    stamps: StampServer, two: list[Host], tmp_path: Path, cut_s: int
) -> None:
    relay = two[1].relay
    assert relay is not None

    def cut() -> None:
        relay.cut()
        threading.Timer(cut_s, relay.mend).start()

    with once_it_runs(stamps, cut):
        wave = run_wave(a_plan(tmp_path, stamps.url, "near*1", "far*1", seconds=20))
    assert wave.lost_workers == (1,)
    assert (wave.ledgers[0].sent, wave.ledgers[0].ok) == (2_000, 2_000)
    assert wave.hosts[1].lost is not None
    assert [host.left(cut_s) for host in two] == [[], []]


def test_a_knock_touches_the_file_of_a_lease_and_makes_none(two: list[Host]) -> None:
    near = two[0]
    near.run("touch", "-d", "2020-01-01", "/home/load/lease", check=True)
    way, answered = SshTransport("near", None), [threading.Event(), threading.Event()]
    way.knock("/home/load/gone", answered[0].set)
    way.knock("/home/load/lease", answered[1].set)
    assert answered[1].wait(PATIENCE_S)
    assert (near.home / "lease").stat().st_mtime > time.time() - PATIENCE_S
    way.close(0)
    assert not answered[0].is_set()
    near.run("rm", "/home/load/lease", check=True)
    assert near.left() == []
