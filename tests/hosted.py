"""Simulated waves of several hosts, for tests of what is computed and said of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.facts.hosts import HostClock, HostFacts
from inference_benchmarker.plan.hosts import Hosts, PlannedHost
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import NS
from tests.waves import HOST, wave

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from inference_benchmarker.wave.wave import Wave

CLOCK = HostClock(1000.25, 0.0002, 12.5, 0.0004)


def hosted(
    latencies_s: npt.ArrayLike,
    workers: Sequence[int] = (1, 1, 1),
    lag_s: npt.ArrayLike = 0.0,
    clocks: Sequence[HostClock | None] = (),
    **more: Any,
) -> Wave:
    """A wave from hosts ``load1``, ``load2``, ... of so many workers; rows of latencies are its seconds."""
    seconds = np.asarray(latencies_s, np.float64)
    total, size = sum(workers), seconds.size
    due = np.arange(size) * NS // seconds.shape[1]
    sent = due + np.round(np.broadcast_to(lag_s, size) * NS).astype(np.int64)
    worker = (np.arange(size) % total).astype(np.uint16)
    columns = {"worker": worker, "sent": sent, "done": sent + np.round(seconds.ravel() * NS).astype(np.int64)}
    names = [f"load{place}" for place in range(1, len(workers) + 1)]
    hosts = Hosts(tuple(PlannedHost(name, number) for name, number in zip(names, workers, strict=True)))
    found = wave(seconds, workers=total, **columns, hosts=hosts, **more)
    counts = [int((worker == number).sum()) for number in range(total)]
    reported = [*clocks, *[CLOCK] * (len(workers) - len(clocks))]
    return replace(
        found,
        ledgers=tuple(Ledger(scheduled=count, sent=count, ok=count) for count in counts),
        hosts=tuple(
            HostFacts(name, tuple(numbers), {"python": "3.12.4"}, HOST, clock)
            for (name, numbers), clock in zip(hosts.numbers.items(), reported, strict=True)
        ),
    )
