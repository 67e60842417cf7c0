"""A closed loop with nothing around it: greenlets that call a factories file's invoke, and the CPU that took.

    python -m tests.performance.bare_loop FACTORIES --concurrency 32 --seconds 5

Prints one JSON object: requests, wall_s, cpu_s (user and system time of this process within the loop). With
``--rate R`` each request is a new greenlet at R a second instead, and the object has latency p50_ms and p99_ms:
what the client library and the machine add to the server's time without any harness.
"""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()  # as locust does in a worker, so that the invoke is the very same

import argparse  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import runpy  # noqa: E402
import time  # noqa: E402
from collections import deque  # noqa: E402
from inspect import isgeneratorfunction  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

import gevent  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def measure(
    invoke: Callable[[Any], Any], payloads: Iterator[Any], concurrency: int, seconds: float
) -> dict[str, float]:
    """Runs `concurrency` greenlets for `seconds` and says what they did; times in seconds."""
    requests = 0
    end = time.monotonic() + seconds

    def call_until_the_end() -> None:
        nonlocal requests
        while time.monotonic() < end:
            invoke(next(payloads))
            requests += 1

    start, cpu = time.monotonic(), time.process_time()
    gevent.joinall([gevent.spawn(call_until_the_end) for _ in range(concurrency)], raise_error=True)
    return {"requests": requests, "wall_s": time.monotonic() - start, "cpu_s": time.process_time() - cpu}


def measure_paced(
    invoke: Callable[[Any], Any], payloads: Iterator[Any], rate: float, seconds: float
) -> dict[str, float]:
    """Sends at a rate and says how long the requests took, in milliseconds."""
    latencies: list[float] = []

    def call(payload: Any) -> None:
        sent = time.monotonic_ns()
        invoke(payload)
        latencies.append((time.monotonic_ns() - sent) / 1e6)

    start = time.monotonic()
    calls = []
    for index in range(round(rate * seconds)):
        gevent.sleep(max(0.0, start + index / rate - time.monotonic()))
        calls.append(gevent.spawn(call, next(payloads)))
    gevent.joinall(calls, raise_error=True)
    latencies.sort()
    return {"requests": len(latencies), **{f"p{p}_ms": latencies[len(latencies) * p // 100] for p in (50, 99)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("factories")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    factories = runpy.run_path(options.factories)
    invoke = factories["invoke_factory"]()
    payloads = itertools.cycle(factories["payload_factory"]()["input"])
    drive = (lambda payload: deque(invoke(payload), maxlen=0)) if isgeneratorfunction(invoke) else invoke
    if options.rate is None:
        print(json.dumps(measure(drive, payloads, options.concurrency, options.seconds)))
    else:
        print(json.dumps(measure_paced(drive, payloads, options.rate, options.seconds)))


if __name__ == "__main__":
    main()
