"""The wave's processes, seen from the one that starts them: pipes to them, what the primary says, their end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from inference_benchmarker.plan import WavePlan
    from inference_benchmarker.run_dir import RunDir

REAP_S = 2.0


class Processes:
    """The wave's processes. Each dies with this one, and leaving the context reaps every one of them."""

    def __init__(self, plan: WavePlan, run_dir: RunDir) -> None:
        self.workers: list[subprocess.Popen[bytes]] = []
        self._buffer = b""
        self.status, status_write = os.pipe()
        os.set_blocking(self.status, False)
        self.primary = _spawn("primary", run_dir.primary_log, pass_fds=(status_write,))
        os.close(status_write)
        try:
            self._start(plan, run_dir, status_write)
        except BaseException:
            self.__exit__()
            raise

    def _start(self, plan: WavePlan, run_dir: RunDir, status_write: int) -> None:
        for number in range(plan.workers):
            self.workers.append(_spawn("worker", run_dir.worker_log(number)))
        whole_plan = plan.to_json()
        self.tell_primary(json.dumps({"plan": whole_plan, "run_dir": str(run_dir.path), "status_fd": status_write}))
        for number, worker in enumerate(self.workers):
            _write_line(worker, json.dumps({"plan": whole_plan, "worker": number, "parent": os.getpid()}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        everyone = [*self.workers, self.primary]
        if self.primary.poll() is None:
            self.primary.terminate()
        for process in everyone:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
        deadline = time.monotonic() + REAP_S
        for process in everyone:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        os.close(self.status)

    def tell_primary(self, command: str) -> None:
        """Send the primary a line."""
        _write_line(self.primary, command)

    def tell_port(self, port: int) -> None:
        """Tell every worker where the primary listens."""
        for worker in self.workers:
            _write_line(worker, str(port))

    def events(self) -> Iterator[dict[str, Any]]:
        """What the primary said since the last call."""
        with suppress(BlockingIOError):
            while data := os.read(self.status, 65536):
                self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield json.loads(line)


@dataclass(slots=True)
class Interrupts:
    """How often Ctrl-C (or SIGTERM, or the terminal's end) came."""

    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        """Count one; the wave's loop acts on it."""
        self.count += 1


@contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Count interrupts instead of raising; outside the main thread signals are not ours to take."""
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # nohup, background jobs
    before = {number: signal.signal(number, interrupts.add) for number in heeded}
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _spawn(module: str, log: Path, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """Start one of our processes in a session of its own, so that Ctrl-C reaches this process alone."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", f"inference_benchmarker.{module}"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=child_environment(),
            pass_fds=pass_fds,
            start_new_session=True,
        )


def child_environment() -> dict[str, str]:
    """The user's environment without what Locust would read from it; our package stays importable from a clone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    root = str(Path(__file__).resolve().parent.parent)
    if not root.endswith("-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), root)))
    return {**environment, "PYTHONUNBUFFERED": "1"}


def _write_line(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is noticed elsewhere
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
