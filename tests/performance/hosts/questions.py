"""Links that are cut as the clocks are asked for the last time: each clock is known as well as without a cut."""

from __future__ import annotations

import threading
import time
from statistics import median
from typing import TYPE_CHECKING

from inference_benchmarker.engine.hosts.logins import keeping_logins
from inference_benchmarker.engine.launch import run_wave
from tests.engine.hosts.plans import PATIENCE_S, a_plan
from tests.hosts.host import Spec
from tests.performance.figures import Figure, below, exactly
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from tests.hosts.relay import Relay

SHIFTS_S = (500, -50)
REQUESTS = 200
CUT_S = 3.0
STEP_S = 0.01
WORST_MS = 20.0  # ten times --max-clock-error: with more a wave is INVALID


def figures(count: int) -> list[Figure]:
    """So many waves, each cut ``STEP_S`` later after its last answer than the one before it."""
    uncertain, wrong, held = list[float](), 0, 0
    with staged() as (lab, place), keeping_logins():
        hosts = lab.start(Spec("near", SHIFTS_S[0]), Spec("far", SHIFTS_S[1], relayed=True))
        relay = hosts[1].relay
        assert relay is not None
        for number in range(count):
            with StampServer(address=lab.address, delay_ms=200) as stamps:
                cutting = threading.Thread(target=_cut, args=(stamps, relay, STEP_S * number))
                cutting.start()
                wave = run_wave(a_plan(place, stamps.url, "near*1", "far*1"))
                held += not cutting.is_alive()
                cutting.join()
            clock = wave.hosts[1].clock
            assert clock is not None
            uncertain.append(1e3 * clock.uncertainty_s)
            wrong += abs(clock.offset_s - SHIFTS_S[1]) > clock.uncertainty_s or wave.ledger.ok != REQUESTS
    return [
        Figure(
            f"cut for {CUT_S:g} s, {count} waves: not whole, or a clock not within its uncertainty",
            wrong,
            "",
            exactly(0),
        ),
        Figure("waves that waited for the end of the cut", held),
        Figure("uncertainty, median", median(uncertain), "ms"),
        Figure("uncertainty, most", max(uncertain), "ms", below(WORST_MS)),
    ]


def _cut(stamps: StampServer, relay: Relay, after_s: float) -> None:
    """Cut the link that long after the server's last answer, and mend it."""
    last = time.monotonic() + PATIENCE_S
    while not _all_answered(stamps) and time.monotonic() < last:
        time.sleep(0.005)
    time.sleep(after_s)
    relay.cut()
    time.sleep(CUT_S)
    relay.mend()


def _all_answered(stamps: StampServer) -> bool:
    log = stamps.log()
    return len(log) == REQUESTS and bool((log["answered_ns"] > 0).all())
