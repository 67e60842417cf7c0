"""How often the endpoint is named, by load, order of service and length of the wave.

The table of docs/reference/findings.md.

Simulated queues, no clock: python -m tests.performance.blame [WAVES]. Of each cell's waves a quarter each has fixed,
exponential, bimodal and lognormal service times; half have Poisson arrivals; a third each has 1, 4 and 16 servers.
"""

from __future__ import annotations

import sys

from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.bottleneck import bottleneck_findings
from tests.queues import KINDS, ORDERS, offered

RATE = 100
LENGTHS_S = (3, 10, 30)
LOADS = (0.5, 0.7, 0.9, 0.97, 1.05, 1.1, 1.2, 1.5, 2.0)


def share_named(order: str, load: float, seconds: int, waves: int) -> float:
    """The share of the waves in which anything was found: all there can be is ``server_limited``."""
    found = 0
    for seed in range(waves):
        observed = offered(
            order,
            load,
            kind=KINDS[seed % 4],
            rate=RATE,
            seconds=seconds,
            servers=(1, 4, 16)[seed // 4 % 3],
            poisson=seed // 12 % 2 == 0,
            seed=seed,
        )
        found += bool(bottleneck_findings(observed, summarise(observed)))
    return found / waves


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0 < share < 0.1 else f"{share:.0%}"


def main(waves: int) -> None:
    """Print the table, in percent."""
    print("| wave | order of service |", " | ".join(f"{load:g}" for load in LOADS), "|")
    print("|---|---|" + "---|" * len(LOADS))
    for seconds in LENGTHS_S:
        for order in ORDERS:
            shares = (share_named(order, load, seconds, waves) for load in LOADS)
            print(f"| {seconds} s | {order} |", " | ".join(f"{_percent(share)}" for share in shares), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 480)
