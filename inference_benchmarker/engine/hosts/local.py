"""The machine of the command as a host: it starts workers and the primary, and leaves none of them behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.primary_host import OwnHost
from inference_benchmarker.engine.processes.child_logs import ChildLogs
from inference_benchmarker.engine.processes.children import REAP_S, child_environment, write_line
from inference_benchmarker.engine.processes.leftovers import MARK, Orphans, end_leftovers, new_mark
from inference_benchmarker.system import procfs
from inference_benchmarker.system.host import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from signal import Signals

    from inference_benchmarker.wave.run_dir import RunDir


class LocalHost:
    """Runs workers on this machine; see ``Host``. Each dies with this process, and ``close`` reaps every one.

    The primary, which runs here whatever hosts the workers are on, is started and reaped with them.
    """

    def __init__(self, run_dir: RunDir) -> None:
        self._run_dir = run_dir
        self._mark = new_mark()
        self._logs = ChildLogs()
        self._orphans, self._looked_at = Orphans(self._mark), time.monotonic()
        self._primary: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of the workers, in order."""
        return list(self._workers)

    def spawn_primary(self, status: int) -> subprocess.Popen[bytes]:
        """Start the primary, which inherits the descriptor ``status``; to be done before ``spawn``."""
        self._primary = self._spawn("primary", self._run_dir.primary_log, pass_fds=(status,))
        return self._primary

    def spawn(self, workers: Sequence[int]) -> None:
        """Start these workers."""
        for number in workers:
            self._workers[number] = self._spawn("worker", self._run_dir.worker_log(number))
        self._logs.start()

    def own(self) -> OwnHost:
        """The part of it that the primary needs, which runs here, too."""
        return OwnHost(self._mark, {number: worker.pid for number, worker in self._workers.items()})

    def begin(self, worker: int, job: Mapping[str, Any]) -> None:
        """Give a worker its job, the place of its files and the parent that it is to die with."""
        place = {"run_dir": str(self._run_dir.path), "parent": os.getpid()}
        write_line(self._workers[worker], json.dumps({**job, **place}))

    def connect(self, port: int, also: str | None) -> None:  # noqa: ARG002 - they are on its machine
        """Tell every worker where the primary listens."""
        self.connect_to(f"tcp://{LOOPBACK}:{port}")

    def connect_to(self, address: str) -> None:
        """Tell every worker the address, in ZeroMQ's form, at which the primary is reached."""
        for worker in self._workers.values():
            write_line(worker, address)

    def signal(self, worker: int, number: Signals) -> None:
        """Send a worker a signal."""
        self._workers[worker].send_signal(number)

    def ended(self) -> Collection[int]:
        """The workers that have ended by now."""
        return [number for number, worker in self._workers.items() if worker.poll() is not None]

    def words(self, worker: int) -> list[str]:
        """The last lines that a worker printed so far."""
        return self._logs.words(self._run_dir.worker_log(worker))

    def last_words(self, worker: int) -> list[str]:
        """The last lines that a worker which has ended printed."""
        return self._logs.last_words(self._run_dir.worker_log(worker))

    def last_words_of_primary(self) -> list[str]:
        """The last lines that the primary printed, when it has ended."""
        return self._logs.last_words(self._run_dir.primary_log)

    def memory_left(self) -> int | None:
        """The bytes that are free: of the machine's memory, or of this process's cgroup, whichever is less."""
        import psutil

        try:
            free = int(psutil.virtual_memory().available)
        except (OSError, psutil.Error):
            return None
        limited = procfs.cgroup_memory_left()
        return free if limited is None else min(free, limited)

    def memory_of(self, worker: int) -> int:
        """The bytes of memory that a worker holds; 0 of one that has ended."""
        import psutil

        with suppress(psutil.Error):
            return int(psutil.Process(self._workers[worker].pid).memory_info().rss)
        return 0

    def tend(self) -> None:
        """Take the ids of ended orphans back, every now and then."""
        if time.monotonic() > self._looked_at + REAP_S:
            self._looked_at = time.monotonic()
            self._orphans.reap(self._ids())

    def close(self) -> tuple[str, ...]:
        """End the primary, every worker and all that they started; the names of what was left behind."""
        if self._primary is not None and self._primary.poll() is None:
            self._primary.terminate()
        for process in self._processes():
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
        deadline = time.monotonic() + REAP_S
        for process in self._processes():
            _reap(process, max(0.0, deadline - time.monotonic()))
        own = self._ids()
        left_behind = (*end_leftovers(self._mark, own), *self._orphans.end(own))
        self._logs.close()
        return left_behind

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        return [*self._workers.values(), *(() if self._primary is None else (self._primary,))]

    def _ids(self) -> set[int]:
        return {process.pid for process in self._processes()}

    def _spawn(self, module: str, log: Path, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        """Start one of our processes in a session of its own, so that Ctrl-C reaches this process alone."""
        output = self._logs.pipe_to(log)
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", f"inference_benchmarker.engine.{module}"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**child_environment(), MARK: self._mark},
                pass_fds=pass_fds,
                start_new_session=True,
            )
        finally:
            os.close(output)


def _reap(process: subprocess.Popen[bytes], patience_s: float) -> None:
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
