"""The schedule of a wave from two hosts beside that of one from one host, with as many workers: what the server saw."""

from __future__ import annotations

from statistics import median

from tests.hosts.host import Spec
from tests.performance import measure
from tests.performance.figures import Figure, below
from tests.performance.hosts.stage import staged
from tests.performance.stamp_server import StampServer

RATE = 500
PAIRS = 5
TIMES = 1.5
SECRETS = ("--pass-env", "BENCHMARK_PERF_URL", "--pass-env", "BENCHMARK_PERF_N")


def figures(seconds: float) -> list[Figure]:
    """Waves of so long, from one host and from two in turn."""
    flags = ("--client-rps", f"{RATE}", "--obs-time", f"{seconds:g}", *SECRETS, "--hosts")
    p99: dict[str, list[float]] = {"alone*2": [], "alone*1,other*1": []}
    uncertain = 0.0
    with staged() as (lab, _):
        lab.start(Spec("alone", clock_s=7), Spec("other", clock_s=-90))
        for _ in range(PAIRS):
            for hosts, found in p99.items():
                with StampServer(address=lab.address, delay_ms=1) as server:
                    wave = measure.run(measure.HTTP, server.url, round(2 * RATE * seconds), *flags, hosts)
                    error = measure.schedule_error_ms(measure.arrivals(server.log(), wave))
                found.append(measure.percentile(error, 99))
                print(f"{hosts}: {found[-1]:.3f} ms, {wave.summary['verdict']}", flush=True)
                uncertain = max(uncertain, *(1e3 * each["clock"]["uncertainty_s"] for each in wave.summary["hosts"]))
    one, two = (median(found) for found in p99.values())
    return [
        Figure("one host: schedule error p99, median", one, "ms"),
        Figure("one host: least and most", min(p99["alone*2"]), "ms"),
        Figure("", max(p99["alone*2"]), "ms"),
        Figure("clocks known to, at worst", uncertain, "ms"),
        Figure("two hosts: schedule error p99, median", two, "ms", below(TIMES * one + uncertain)),
        Figure("two hosts: least and most", min(p99["alone*1,other*1"]), "ms"),
        Figure("", max(p99["alone*1,other*1"]), "ms"),
    ]
