"""Waves whose workers run on other hosts, judged by the log of a server that every host reaches."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.version import __version__
from inference_benchmarker.words.units import NS
from tests.engine.hosts.plans import a_plan, once_it_runs
from tests.hosts.host import Spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from tests.hosts.host import Host
    from tests.hosts.lab import Lab
    from tests.performance.stamp_server import StampServer

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("users_ssh")]


SHIFT_S = 1000


@pytest.fixture(scope="module")
def two(laboratory: Lab) -> Iterator[list[Host]]:
    """Two hosts whose clocks are far apart; one of them greets whoever logs in."""
    hosts = laboratory.start(Spec("load1", bashrc="echo Welcome\n"), Spec("load2", clock_s=SHIFT_S, relayed=True))
    yield hosts
    laboratory.stop(*hosts)


def check_clocks(wave: Wave) -> None:
    """Both clocks are this machine's, so their true offsets are known."""
    assert [host.name for host in wave.hosts] == ["load1", "load2"]
    for host, shift in zip(wave.hosts, (0, SHIFT_S), strict=True):
        assert host.clock is not None
        assert abs(host.clock.offset_s - shift) <= host.clock.uncertainty_s
        assert host.clock.uncertainty_s >= host.clock.round_trip_s / 2 > 0
        assert (host.clock.jump_s, host.clock.ahead_s) == (0.0, 0.0)


def check_never_early(wave: Wave, stamps: StampServer) -> None:
    """No request came before it was due, by this machine's clock."""
    error = max(host.clock.uncertainty_s for host in wave.hosts if host.clock is not None) * NS
    arrived = sorted(stamps.log()["arrival_ns"].tolist())
    dues = [index * NS // 200 for index in range(200)]
    assert len(arrived) == len(dues)
    assert all(at >= wave.window.t0_monotonic_ns + due - error for at, due in zip(arrived, dues, strict=True))


def test_a_wave_of_two_hosts_sends_what_its_plan_says(stamps: StampServer, two: list[Host], tmp_path: Path) -> None:
    wave = run_wave(a_plan(tmp_path, stamps.url, "load1*2", "load2*1"))
    assert wave.lost_workers == ()
    assert [host.workers for host in wave.hosts] == [(0, 1), (2,)]
    assert [ledger.sent for ledger in wave.ledgers] == [67, 67, 66]
    assert wave.ledger.ok == 200
    assert all(host.use is not None and host.versions["benchmark"] == __version__ for host in wave.hosts)
    check_clocks(wave)
    check_never_early(wave, stamps)
    assert [host.left() for host in two] == [[], []]


@pytest.mark.slow
def test_twenty_hosts_with_twenty_clocks_send_what_the_plan_says(lab: Lab, stamps: StampServer, tmp_path: Path) -> None:
    """Their clocks are from 500 s behind to 450 s ahead; the join timeout is that of users, with a slow machine's."""
    shifts = {f"load{number}": 50 * number - 500 for number in range(20)}
    hosts = lab.start(*(Spec(name, shift) for name, shift in shifts.items()))
    patience = {"join_timeout_s": Decimal(120)}
    wave = run_wave(a_plan(tmp_path, stamps.url, *(f"{name}*1" for name in shifts), of_hosts=patience))
    assert wave.lost_workers == ()
    assert (wave.ledger.ok, len(stamps.log())) == (200, 200)
    assert [ledger.sent for ledger in wave.ledgers] == [10] * 20
    clocks = {host.name: host.clock for host in wave.hosts}
    assert {*clocks} == {*shifts}
    for name, clock in clocks.items():
        assert clock is not None
        assert abs(clock.offset_s - shifts[name]) <= clock.uncertainty_s
    check_never_early(wave, stamps)
    assert {host.name: host.left() for host in hosts} == {name: [] for name in shifts}


@pytest.mark.slow
def test_a_host_that_is_far_away_starts_at_the_same_instant(
    stamps: StampServer, two: list[Host], tmp_path: Path
) -> None:
    relay = two[1].relay
    assert relay is not None
    relay.delay(0.05, 0.01)
    wave = run_wave(a_plan(tmp_path, stamps.url, "load1*1", "load2*1"))
    relay.delay(0)
    assert (wave.ledger.ok, wave.ledger.late_changes) == (200, 0)
    check_clocks(wave)
    check_never_early(wave, stamps)


@pytest.mark.slow
def test_workers_come_to_an_address_where_ssh_forwards_nothing(
    laboratory: Lab, stamps: StampServer, tmp_path: Path
) -> None:
    (host,) = laboratory.start(Spec("no-forwarding", sshd=("DisableForwarding yes",)))
    plan = a_plan(tmp_path, stamps.url, "no-forwarding*2", of_hosts={"listen": laboratory.address})
    wave = run_wave(plan)
    laboratory.stop(host)
    assert wave.ledger.ok == 200 == len(stamps.log())


def test_an_address_that_is_not_this_hosts_is_refused(stamps: StampServer, two: list[Host], tmp_path: Path) -> None:
    plan = a_plan(tmp_path, stamps.url, "load1*1", of_hosts={"listen": two[0].address})
    with pytest.raises(BenchmarkError, match=rf"--listen {two[0].address} cannot be used"):
        run_wave(plan)


@pytest.mark.slow
def test_an_address_that_a_host_does_not_reach_is_the_reason_and_not_the_users_file(
    laboratory: Lab, stamps: StampServer, tmp_path: Path
) -> None:
    (host,) = laboratory.start(Spec("behind-a-wall"))
    address = f"{laboratory.address}00"
    subprocess.run(["ip", "address", "add", f"{address}/32", "dev", laboratory.name], check=True)
    host.run("ip", "route", "add", "blackhole", address, user="root", check=True)
    plan = a_plan(tmp_path, stamps.url, "behind-a-wall*1", of_hosts={"listen": address})
    with pytest.raises(BenchmarkError, match=rf"behind-a-wall: worker 0 has not come to --listen {address} within 5 s"):
        run_wave(replace(plan, load_timeout_s=Decimal(5)))
    laboratory.stop(host)
    assert len(stamps.log()) == 0


JUMP = """
import os, sys, time
if any("hosts.agent" in word for word in sys.orig_argv):
    real = time.monotonic_ns
    time.monotonic_ns = lambda: real() + (1_000_000_000 if os.path.exists("/home/load/now") else 0)
"""


@pytest.mark.slow
def test_a_host_whose_clock_jumps_makes_the_wave_invalid(laboratory: Lab, stamps: StampServer, tmp_path: Path) -> None:
    """Its agent shows another time from a moment on, as a host does whose clock is set by hand."""
    (liar,) = laboratory.start(Spec("liar", bashrc="export PYTHONPATH=/tmp/liar\n"))
    liar.run("sh", "-c", f"mkdir /tmp/liar && echo '{JUMP}' >/tmp/liar/sitecustomize.py", check=True)
    with once_it_runs(stamps, lambda: liar.run("touch", "/home/load/now", check=True)):
        wave = run_wave(a_plan(tmp_path, stamps.url, "liar*1", seconds=5))
    laboratory.stop(liar)
    assert wave.ledger.ok == 1_000 == len(stamps.log())
    (host,) = wave.hosts
    assert host.clock is not None
    assert host.clock.jump_s == pytest.approx(1, abs=0.1)
    assert ("host_clock", "invalid") in [(finding.code, finding.severity) for finding in wave.verdict.findings]
