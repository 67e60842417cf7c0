"""A worker's own use, for its reports: CPU, the event loop, the garbage collector, its client libraries."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.worker.client_watch import ClientWatch
from inference_benchmarker.engine.worker.loop_watch import LoopWatch
from inference_benchmarker.system.host import raise_descriptor_limit

if TYPE_CHECKING:
    from inference_benchmarker.engine.worker.requests import Requests

_STATUS = Path("/proc/self/status")
SCHEDSTAT = Path("/proc/self/schedstat")  # ns on a CPU, ns waiting for one; of the main thread


class Watch:
    """One worker's evidence, from the start of the window on. Read by ``spool_state``, as ``client_use.WorkerUse``."""

    def __init__(self) -> None:
        self._loop = LoopWatch()
        self._client = ClientWatch()
        self._pauses = Pauses()
        self._begun: _Instant | None = None
        self._sending: dict[str, float] = {}
        self._descriptors = 0
        self._limit = raise_descriptor_limit()
        self._cpu_s = 0.0

    def start(self) -> None:
        """The warm-up, or the window if there is none, begins."""
        self._cpu_s = time.process_time()
        self._client.hook()
        self._pauses.start()
        self._loop.start()

    def begin(self) -> None:
        """The window begins: what came before does not count."""
        self._loop.begin()
        self._client.begin()
        self._pauses.begin()
        self._begun = _Instant()

    def stop(self) -> None:
        """The last request is over."""
        self._loop.stop()

    def facts(self, requests: Requests, *, sending: bool) -> dict[str, Any]:
        """The facts known now. ``delays_us`` are those since ``mark_reported``, all else is since ``begin``.

        CPU shares and the loop's delays are of the time it sent: waiting for the last answers would dilute them.
        """
        self._client.look(requests.slots, (time.monotonic_ns() - requests.t0) / 1e9)
        self._descriptors = max(self._descriptors, open_descriptors())
        delays = list(self._loop.delays) if self._begun else []
        if self._begun and (sending or not self._sending):
            self._sending = self._begun.shares_until_now()
        elif not sending:
            delays = []
        return {
            "cpu_s": time.process_time() - self._cpu_s,
            "max_rss_bytes": max_rss_bytes(),
            "delays_us": delays,
            "block": self._loop.worst(),
            "collections": self._pauses.facts(),
            "connections": {**self._client.facts(), "refused": dict(requests.refused)},
            "answers": {"hidden": dict(requests.hidden), "textless": requests.textless},
            "descriptors": self._descriptors,
            "descriptor_limit": self._limit,
            **self._sending,
        }

    def mark_reported(self) -> None:
        """The facts are in a report: each delay is in one alone."""
        self._loop.delays.clear()


def max_rss_bytes() -> int:
    """The largest resident memory so far. On Linux getrusage's starts at that of the parent, which is not ours."""
    with suppress(OSError, IndexError, ValueError):
        return int(_STATUS.read_bytes().split(b"VmHWM:")[1].split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def open_descriptors() -> int:
    """The number of descriptors this process has open: the lowest free number, which costs nothing to ask for."""
    try:
        probe = os.open(os.devnull, os.O_RDONLY)
    except OSError:  # none is free
        return raise_descriptor_limit()
    os.close(probe)
    return probe


class _Instant:
    """The use of the worker's one busy thread by now."""

    def __init__(self) -> None:
        self._at = time.monotonic()
        self._cpu_s = time.thread_time()
        self._starved_s = _starved_s()

    def shares_until_now(self) -> dict[str, float]:
        """The share of the time since then that this thread used a CPU, and that it waited for one."""
        elapsed = time.monotonic() - self._at
        if not elapsed:
            return {}
        starved_s = _starved_s()
        shares = {"cpu_share": (time.thread_time() - self._cpu_s) / elapsed}
        if starved_s is not None and self._starved_s is not None:
            shares["starved_share"] = (starved_s - self._starved_s) / elapsed
        return shares


class Pauses:
    """Counts the garbage collector's pauses."""

    def __init__(self) -> None:
        self._since = 0.0
        self.begin()

    def start(self) -> None:
        """Begin to listen."""
        gc.callbacks.append(self._on_collection)

    def begin(self) -> None:
        """Forget the pauses so far."""
        self._count, self._total, self._longest = 0, 0.0, 0.0

    def facts(self) -> dict[str, float]:
        """Their number, and in seconds their sum and the longest."""
        return {"pauses": self._count, "total_s": self._total, "longest_s": self._longest}

    def _on_collection(self, phase: str, _: dict[str, int]) -> None:
        now = time.perf_counter()
        if phase == "start":
            self._since = now
            return
        pause = now - self._since
        self._count += 1
        self._total += pause
        self._longest = max(self._longest, pause)


def _starved_s() -> float | None:
    """The seconds this thread could have run while no CPU was free; None where the kernel does not say."""
    try:
        return int(SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return None
