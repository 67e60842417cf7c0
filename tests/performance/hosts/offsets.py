"""Offsets of hosts' clocks against the truth: 100 each over links that a relay delays by 0, 10 and 50 ms each way."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.joining import joined
from inference_benchmarker.engine.processes.interrupts import Interrupts
from inference_benchmarker.engine.progress_listener import FaultTolerantView, NullView
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.words.units import NS
from tests.engine.hosts.plans import a_plan
from tests.hosts.host import Spec
from tests.performance.figures import Figure, exactly
from tests.performance.hosts.stage import staged

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.engine.hosts.clocks import ClockOffset
    from inference_benchmarker.plan.plan import WavePlan

SHIFTS_S = (7, -90, 1000, 0, -1)
DELAYS_S = (0.0, 0.01, 0.05)


def figures(count: int) -> list[Figure]:
    """So many offsets a delay."""
    found = []
    with staged() as (lab, place):
        specs = [Spec(f"host{number}", shift, relayed=True) for number, shift in enumerate(SHIFTS_S)]
        hosts = lab.start(*specs)
        plan = a_plan(place, "http://127.0.0.1:9", *(f"{host.name}*1" for host in hosts))
        for delay_s in DELAYS_S:
            for host in hosts:
                assert host.relay is not None
                host.relay.delay(delay_s)
            offsets = [pair for _ in range(count // len(hosts)) for pair in _measured(plan, place)]
            errors = [abs(offset.offset_ns - shift * NS) for offset, shift in offsets]
            inside = sum(error <= offset.uncertainty_ns for error, (offset, _) in zip(errors, offsets, strict=True))
            name = f"{2e3 * delay_s:g} ms more of round trip"
            found += [
                Figure(
                    f"{name}: offsets of {len(offsets)} within their uncertainty", inside, "", exactly(len(offsets))
                ),
                Figure(f"{name}: error, median", median(errors) / 1e6, "ms"),
                Figure(f"{name}: error, most", max(errors) / 1e6, "ms"),
                Figure(f"{name}: uncertainty, median", median(o.uncertainty_ns for o, _ in offsets) / 1e6, "ms"),
            ]
    return found


def _measured(plan: WavePlan, place: Path) -> list[tuple[ClockOffset, int]]:
    """The offset of each host as it is before a wave, and its truth in s."""
    with joined(plan, RunDir.create(place), Interrupts(), FaultTolerantView(NullView())) as party:
        for remote in party.remotes:
            remote.link.measure_clock()
        while any(remote.link.clock.left for remote in party.remotes):
            time.sleep(0.005)
        found = [remote.link.clock.offset() for remote in party.remotes]
    return [(offset, shift) for offset, shift in zip(found, SHIFTS_S, strict=True) if offset is not None]
