"""Short waves of two hosts in turns: none hangs, and none leaves anything."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.launch import run_wave
from inference_benchmarker.plan.load import Bounds
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec
from tests.performance.figures import Figure, exactly
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave

SHIFTS_S = (7, -90)
REQUESTS = 20
SHOWN = 10


def figures(count: int, a_login: int) -> list[Figure]:
    """So many waves; a login serves ``a_login`` of them, after which nothing is left on its host."""
    bad = left = 0
    slowest_s = 0.0
    with staged() as (lab, place), StampServer(address=lab.address) as stamps:
        hosts = lab.start(*(Spec(f"host{number}", shift) for number, shift in enumerate(SHIFTS_S)))
        plan = a_plan(place, stamps.url, *(f"{host.name}*1" for host in hosts))
        plan = replace(plan, bounds=Bounds(num_requests=REQUESTS))
        before = _held()
        for begun in range(0, count, a_login):
            with keeping_logins():
                for _ in range(begun, min(begun + a_login, count)):
                    started = time.monotonic()
                    bad += not _is_good(run_wave(plan))
                    slowest_s = max(slowest_s, time.monotonic() - started)
            left += sum(len(host.left(5)) for host in hosts)
            if begun % SHOWN == 0:
                print(
                    f"{begun + a_login} waves, {bad} bad, {left} left, slowest {slowest_s:.1f} s, "
                    f"held {before} -> {_held()}",
                    flush=True,
                )
        lost = count * REQUESTS - len(stamps.log())
        more = [now - then for now, then in zip(_held(), before, strict=True)]
    return [
        Figure("waves", count),
        Figure("not whole, or with a clock that is not within its uncertainty", bad, "", exactly(0)),
        Figure("requests that the server did not see", lost, "", exactly(0)),
        Figure("processes, sockets and files left on the hosts", left, "", exactly(0)),
        Figure("descriptors held here in the end, more than in the beginning", more[0]),
        Figure("threads", more[1]),
        Figure("processes", more[2], "", exactly(0)),
        Figure("the slowest wave", slowest_s, "s"),
    ]


def _is_good(wave: Wave) -> bool:
    clocks = [host.clock for host in wave.hosts]
    known = all(
        clock is not None and abs(clock.offset_s - shift) <= clock.uncertainty_s
        for clock, shift in zip(clocks, SHIFTS_S, strict=True)
    )
    return known and wave.ledger.ok == REQUESTS and not wave.lost_workers


def _held() -> tuple[int, int, int]:
    """The descriptors, threads and processes below this one; those of the laboratory are among them."""
    here = psutil.Process()
    return len(os.listdir("/proc/self/fd")), here.num_threads(), len(here.children(recursive=True))  # noqa: PTH208
