"""How long agents of 10 and 20 hosts and 20 and 50 workers on ten take to join where a login takes a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil

from inference_benchmarker.engine.hosts.joining import joined
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.engine.processes.interrupts import Interrupts
from inference_benchmarker.engine.progress_listener import FaultTolerantView, NullView
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.units import NS
from tests.engine.hosts.plans import a_plan, once_it_runs
from tests.hosts.host import Spec
from tests.performance.figures import Figure, below, exactly
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.hosts.host import Host

HOSTS, MOST_HOSTS = 10, 20
LOGIN_S = 1.0
WORKERS = (20, 50)


def figures(_: float) -> list[Figure]:
    """Agents alone, and then waves with real workers on ten hosts."""
    found = []
    with staged() as (lab, place):
        specs = [Spec(f"host{number}", number, bashrc=f"sleep {LOGIN_S}\n") for number in range(MOST_HOSTS)]
        hosts = lab.start(*specs)
        for count, target in ((HOSTS, below(10)), (MOST_HOSTS, None)):
            agents_s = min(_agents_s(hosts[:count], place) for _ in range(3))
            found.append(Figure(f"{count} agents, each after a login of {LOGIN_S:g} s", agents_s, "s", target))
        for workers in WORKERS:
            with StampServer(address=lab.address) as stamps:
                found += _wave(hosts[:HOSTS], place, stamps, workers)
        left = sum(len(host.left()) for host in hosts)
    return [*found, Figure("processes, sockets and files left on the hosts", left, "", exactly(0))]


def _agents_s(hosts: list[Host], place: Path) -> float:
    plan = a_plan(place, "http://127.0.0.1:9", *(f"{host.name}*1" for host in hosts))
    begun = time.monotonic()
    with joined(plan, RunDir.create(place), Interrupts(), FaultTolerantView(NullView())):
        return time.monotonic() - begun


def _wave(hosts: list[Host], place: Path, stamps: StampServer, workers: int) -> list[Figure]:
    begun, spent = time.monotonic_ns(), list[float]()
    plan = a_plan(place, stamps.url, *(f"{host.name}*{workers // HOSTS}" for host in hosts), seconds=5)
    with once_it_runs(stamps, lambda: spent.extend(_cpu_s(hosts))):
        wave = run_wave(plan)
    joined_s = (wave.window.t0_monotonic_ns - begun) / NS
    name = f"{workers} workers on {HOSTS} hosts"
    return [
        Figure(f"{name}, from the command to the first request due", joined_s, "s"),
        Figure(f"{name}: CPU of a worker until then", sum(spent) / max(1, len(spent)), "s"),
        Figure(
            f"{name}: requests answered of {wave.ledger.scheduled}", wave.ledger.ok, "", exactly(wave.ledger.scheduled)
        ),
    ]


def _cpu_s(hosts: Iterable[Host]) -> list[float]:
    """The CPU seconds of each worker so far."""
    pids = [each.pid for host in hosts for each in host.processes() if "engine.worker" in each.command]
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return [each.user + each.system for each in times]
