"""Samples what the host and this client's processes use, once a second."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psutil

from inference_benchmarker.facts.client_samples import HOST, Sample
from inference_benchmarker.system import procfs
from inference_benchmarker.system.host import memory_bytes
from inference_benchmarker.wave.files.client_table import add_to_client_table, begin_client_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

INTERVAL_S = 1.0

Count = TypeVar("Count", int, float)


class Sampler:
    """Holds what a sample is the difference to, and the processes by their names."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes: dict[str, psutil.Process] = {}
        for name, pid in processes.items():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                process.cpu_percent()  # the first call only marks the beginning
                self._processes[name] = process
        self._cores = _cores()
        self._throttling = procfs.Throttling()
        self._before = self._count()

    def sample(self) -> Iterator[Sample]:
        """Samples the host since the last call, then each living process."""
        unix_s = round(time.time(), 3)
        yield self._host_sample(unix_s)
        for name, process in self._processes.items():
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:  # one that has ended and that its parent did not ask for
                    yield Sample(unix_s, name, process.cpu_percent(), process.memory_info().rss)

    def _host_sample(self, unix_s: float) -> Sample:
        now, before = self._count(), self._before
        self._before = now
        elapsed = max(now.at_s - before.at_s, 1e-3)
        memory = psutil.virtual_memory()
        steal, throttled = _grown(now.steal_s, before.steal_s), _grown(now.throttled_s, before.throttled_s)
        return Sample(
            unix_s=unix_s,
            process=HOST,
            cpu_percent=round(100 * max(0.0, now.busy_s - before.busy_s) / elapsed, 1),
            memory_bytes=memory.used,
            network_sent_bytes=_grown(now.sent_bytes, before.sent_bytes),
            network_received_bytes=_grown(now.received_bytes, before.received_bytes),
            steal_percent=None if steal is None else round(100 * steal / elapsed, 1),
            memory_available_bytes=memory.available,
            time_wait=procfs.time_wait(),
            throttled_s=None if throttled is None else round(throttled, 6),
        )

    def _count(self) -> _Counters:
        busy_s, steal_s = procfs.cpu_seconds(self._cores) or _all_cores_seconds()
        return _Counters(time.monotonic(), busy_s, steal_s, *_network_bytes(), self._throttling.seconds())


class _Counters(NamedTuple):
    """The counters of the host since it started; None where it does not say."""

    at_s: float
    busy_s: float
    steal_s: float | None
    sent_bytes: int | None
    received_bytes: int | None
    throttled_s: float | None


def sample_regularly(
    processes: Mapping[str, int],
    sleep: Callable[[float], object],
    note: Callable[[list[Sample]], object],
    path: Path | None = None,
) -> None:
    """Give ``note`` the samples of each second until this greenlet is ended, or ``sleep`` returns true.

    ``processes``: name to pid. With a ``path`` they are rows of a client.csv as well, until the disk is full. Without
    /proc there are none.
    """
    rows_fit = path is not None and begin_client_table(path)
    if procfs.not_measured():
        return
    sampler = Sampler(processes)
    while not sleep(INTERVAL_S):
        try:
            samples = list(sampler.sample())
        except (OSError, psutil.Error):  # what the host reported a second ago it does not report now
            continue
        note(samples)
        rows_fit = rows_fit and path is not None and add_to_client_table(path, samples)


def host_constants() -> dict[str, Any]:
    """The facts that stay in a wave, as ``client_use.HostUse.of`` takes them. The cores are those we may use."""
    ports = procfs.port_range()
    return {
        "cores": len(_cores()),
        "memory_total_bytes": memory_bytes(),
        "ephemeral_ports": None if ports is None else len(ports),
    }


def _cores() -> set[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _all_cores_seconds() -> tuple[float, None]:
    """``procfs.cpu_seconds`` where there is no /proc."""
    times = psutil.cpu_times()
    return sum(times) - times.idle, None


def _network_bytes() -> tuple[int | None, int | None]:
    """Sent and received since the start of the system; None in a container without a network."""
    try:
        counters = psutil.net_io_counters(nowrap=False)  # cheaper; `_grown` does as much
    except OSError:
        counters = None
    return (None, None) if counters is None else (counters.bytes_sent, counters.bytes_recv)


def _grown(now: Count | None, before: Count | None) -> Count | None:
    """By how much a counter grew; one that was begun anew did not."""
    return None if now is None or before is None else max(now - before, 0)
