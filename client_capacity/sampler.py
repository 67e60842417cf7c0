"""Samples what this client's processes use, once a second, into ``client.csv``."""

from __future__ import annotations

import csv
import time
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

INTERVAL_S = 1.0
COLUMNS = ("unix_s", "process", "cpu_percent", "memory_bytes", "network_sent_bytes", "network_received_bytes")

Row = tuple[float, str, float, int, int | None, int | None]


class Sampler:
    """Holds what a sample is the difference to. CPU is in percent of one core, for the host of all cores together."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items() if psutil.pid_exists(pid)}
        self._network = psutil.net_io_counters()
        psutil.cpu_percent()  # the first call only marks the beginning
        for process in self._processes.values():
            process.cpu_percent()

    def sample(self) -> Iterator[Row]:
        """A row for the host, with its network traffic since the last call, and one for each living process."""
        now = round(time.time(), 3)
        network, before = psutil.net_io_counters(), self._network
        self._network = network
        sent, received = network.bytes_sent - before.bytes_sent, network.bytes_recv - before.bytes_recv
        used = psutil.virtual_memory().used
        yield now, "host", round(psutil.cpu_percent() * (psutil.cpu_count() or 1), 1), used, sent, received
        for name, process in self._processes.items():
            try:
                yield now, name, process.cpu_percent(), process.memory_info().rss, None, None
            except psutil.NoSuchProcess:
                continue


def sample_regularly(path: Path, processes: Mapping[str, int], sleep: Callable[[float], object]) -> None:
    """Append a sample a second to a CSV file until this greenlet or thread is ended. ``processes``: name to pid."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        file.flush()
        sampler = Sampler(processes)
        while True:
            sleep(INTERVAL_S)
            rows.writerows(sampler.sample())
            file.flush()
