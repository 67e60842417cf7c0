"""Waves of three hosts whose clocks are far apart, as a user sends them: VALID, with the counts of the server's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.hosts.host import Spec
from tests.performance import measure
from tests.performance.figures import Figure, exactly
from tests.performance.hosts.schedule import SECRETS
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

if TYPE_CHECKING:
    from tests.performance.measure import Wave

SHIFTS_S = {"load1": 7, "load2": 1000, "load3": -80}
RATE, SECONDS = 60, 10
REQUESTS = RATE * SECONDS


def figures(count: int) -> list[Figure]:
    """So many waves of a worker a host."""
    names = ",".join(f"{name}*1" for name in SHIFTS_S)
    flags = ("--client-rps", f"{RATE}", "--obs-time", f"{SECONDS}", *SECRETS, "--hosts", names)
    valid = same = known = left = 0
    lag_ms = 0.0
    with staged() as (lab, _):
        hosts = lab.start(*(Spec(name, shift) for name, shift in SHIFTS_S.items()))
        for _ in range(count):
            with StampServer(address=lab.address, delay_ms=1) as server:
                wave = measure.run(measure.HTTP, server.url, REQUESTS, *flags)
                seen = sorted(server.log()["id"].tolist())
            valid += wave.exit_code == 0 and wave.summary["verdict"] == "VALID"
            same += seen == wave.column("index").tolist() == list(range(REQUESTS)) and wave.ledger("ok") == REQUESTS
            known += _clocks_known(wave)
            lag_ms = max(lag_ms, measure.percentile(wave.lag_ms, 99))
            left += sum(len(host.left()) for host in hosts)
            print(wave.summary["verdict"], [finding["code"] for finding in wave.summary["findings"]], flush=True)
    return [
        Figure(f"waves of {REQUESTS} requests that are VALID, of {count}", valid, "", exactly(count)),
        Figure("with each request once, in the server's log and in the records", same, "", exactly(count)),
        Figure("with each clock within its uncertainty", known, "", exactly(count)),
        Figure("schedule lag p99, of the worst wave", lag_ms, "ms"),
        Figure("processes, sockets and files left on the hosts", left, "", exactly(0)),
    ]


def _clocks_known(wave: Wave) -> bool:
    clocks = {host["name"]: host["clock"] for host in wave.summary["hosts"]}
    return {*clocks} == {*SHIFTS_S} and all(
        abs(clock["offset_s"] - SHIFTS_S[name]) <= clock["uncertainty_s"] for name, clock in clocks.items()
    )
