"""The waves on other hosts: their plans, and what is done while they run."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from inference_benchmarker.plan.hosts import Hosts, PlannedHost
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.system.packaged import HTTP_FILE, packaged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.performance.stamp_server import StampServer

PATIENCE_S = 30.0
BEGUN = 60  # requests by which a wave runs on each host


def a_plan(folder: Path, url: str, *hosts: str, seconds: int = 1, of_hosts: dict[str, Any] | None = None) -> WavePlan:
    """A wave of 200 requests/s to a server. ``of_hosts``: more of what the plan says of them."""
    plan = WavePlan(
        OpenLoop(Decimal(200)),
        Bounds(duration_s=Decimal(seconds)),
        factories_file=packaged("factories", HTTP_FILE),
        factory_settings={"SERVER": url},
        drain_timeout_s=Decimal(5),
        output_dir=folder,
    )
    return plan.on(Hosts(tuple(map(PlannedHost.parse, hosts)), **(of_hosts or {})))


@contextmanager
def once_it_runs(stamps: StampServer, act: Callable[[], object]) -> Iterator[None]:
    """Do something on a thread as soon as the server has had some requests."""

    def wait_and_act() -> None:
        last = time.monotonic() + PATIENCE_S
        while len(stamps.log()) < BEGUN and time.monotonic() < last:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    yield
    thread.join()
