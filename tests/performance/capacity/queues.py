"""Queues of ``queues.c``: endpoints in simulated time, whose queue stays warm while the rate changes."""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

SOURCE = Path(__file__).with_name("queues.c")
Service = Literal["exact", "exponential", "lognormal", "bimodal"]
Order = Literal["fifo", "lifo", "shared", "urgent"]
Routing = Literal["random", "in turn", "fewest"]
_SERVICES: tuple[Service, ...] = ("exact", "exponential", "lognormal", "bimodal")
_ORDERS: tuple[Order, ...] = ("fifo", "lifo", "shared", "urgent")
_ROUTINGS: tuple[Routing, ...] = ("random", "in turn", "fewest")


@dataclass(frozen=True, slots=True)
class Rules:
    """An endpoint: ``mean_s`` is the service time of a request, or of a batch where ``batch_size`` is above 1.

    ``servers`` and ``queue_limit`` are those of each of its ``instances``.
    """

    servers: int
    mean_s: float
    service: Service = "exact"
    cv: float = 0.0
    queue_limit: int | None = None
    # In order of arrival; the last first; all at once, none with more than one server; a share of ``urgent`` first.
    order: Order = "fifo"
    urgent: float = 0.0
    instances: int = 1
    routing: Routing = "random"
    # Of the logarithms of lognormal services in a row.
    correlation: float = 0.0
    batch_size: int = 1
    batch_delay_s: float = 0.0
    # What each request of a batch adds to its service.
    each_s: float = 0.0
    # Of a server that remembers.
    most_servers: int = 0
    threshold: int = 0
    keep_s: float = 600.0
    # Of a cache that is cold at first.
    cold_requests: float = 0.0
    cold_factor: float = 1.0
    # Of one that is slow for some seconds after the first arrival.
    slow_s: float = 0.0
    slow_factor: float = 1.0
    # Of one that stands still again and again.
    pause_every_s: float = 0.0
    pause_s: float = 0.0
    # Of one that gets slower with each second, in times of its service; of one whose credits run out.
    leak: float = 0.0
    burst_s: float = 0.0
    baseline: float = 1.0

    @property
    def most(self) -> float:
        """Requests/s with every server busy and every batch full."""
        servers = self.instances * max(self.servers, self.most_servers)
        return servers * self.batch_size / (self.mean_s + self.batch_size * self.each_s)


class _Rules(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("servers", "service", "batch_size", "order", "queue_limit")),
        *((name, ctypes.c_int64) for name in ("threshold", "most_servers", "instances", "routing")),
        *((name, ctypes.c_double) for name in ("mean", "cv", "each", "delay", "keep", "cold_requests", "cold_factor")),
        *((name, ctypes.c_double) for name in ("slow_seconds", "slow_factor", "pause_every", "pause")),
        *((name, ctypes.c_double) for name in ("leak", "burst", "baseline", "urgent", "correlation")),
    )


class Counts(NamedTuple):
    """By window of arrival: what arrived, what of it was over the bound, and what was refused."""

    of: Ints
    over: Ints
    refused: Ints


@functools.cache
def _build_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="queues_")


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled queues; RuntimeError where there is no C compiler or it refuses the source."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError("the simulated queues need a C compiler: install gcc or clang")
    built = Path(_build_directory().name) / "queues.so"
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-fPIC", "-shared"]
    done = subprocess.run(
        [compiler, *flags, "-o", str(built), str(SOURCE), "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{SOURCE.name} does not compile:\n{done.stderr}")
    loaded = ctypes.CDLL(str(built))
    whole, real, pointer = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
    loaded.queue_new.argtypes, loaded.queue_new.restype = [pointer, ctypes.c_uint64], pointer
    loaded.queue_free.argtypes, loaded.queue_free.restype = [pointer], None
    loaded.queue_offer.argtypes, loaded.queue_offer.restype = [pointer, whole, pointer, whole, pointer], None
    loaded.queue_settle.argtypes, loaded.queue_settle.restype = [pointer, real, pointer], None
    loaded.queue_long.argtypes = [pointer, ctypes.c_uint64, real, whole, real, real, whole, real, *3 * [pointer]]
    loaded.queue_long.restype = None
    return loaded


class Queue:
    """One endpoint. Instants (seconds) given to it must never go backwards."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self._library = library()
        limit = -1 if rules.queue_limit is None else rules.queue_limit
        given = _Rules(
            *(rules.servers, _SERVICES.index(rules.service), rules.batch_size, _ORDERS.index(rules.order), limit),
            *(rules.threshold, rules.most_servers, rules.instances, _ROUTINGS.index(rules.routing)),
            *(rules.mean_s, rules.cv, rules.each_s, rules.batch_delay_s, rules.keep_s),
            *(rules.cold_requests, rules.cold_factor, rules.slow_s, rules.slow_factor),
            *(rules.pause_every_s, rules.pause_s),
            *(rules.leak, rules.burst_s, rules.baseline, rules.urgent, rules.correlation),
        )
        self._queue = self._library.queue_new(ctypes.byref(given), seed)

    def __del__(self) -> None:
        self._library.queue_free(self._queue)

    def offer(self, at: Floats, first: int, done: Floats) -> None:
        """Requests ``first``, ``first + 1``, .. arrive at these instants.

        ``done[id]`` becomes the instant of the answer, or minus that of the arrival for one that is refused; it stays
        as it was for one of which it is not known yet.
        """
        self._library.queue_offer(self._queue, len(at), at.ctypes.data, first, done.ctypes.data)

    def settle(self, until: float, done: Floats) -> None:
        """Let begin what begins up to then."""
        self._library.queue_settle(self._queue, until, done.ctypes.data)

    def long_run(  # noqa: PLR0917 - positions are those of the C function, names are at the call
        self, seed: int, rate: float, bound_s: float, warm_s: float, window_s: float, windows: int, even: bool = False
    ) -> Counts:
        """Counts of so many windows at one rate, after ``warm_s`` from an empty queue that count for nothing."""
        counts = Counts(*(np.zeros(windows, dtype=np.int64) for _ in range(3)))
        places = [part.ctypes.data for part in counts]
        self._library.queue_long(self._queue, seed, rate, even, warm_s, window_s, windows, bound_s, *places)
        return counts
