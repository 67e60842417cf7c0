"""The wave's processes, seen from the one that starts them: pipes to them, what the primary says, their end."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from inference_benchmarker.engine.child_logs import ChildLogs
from inference_benchmarker.engine.leftovers import MARK, Orphans, end_leftovers, new_mark
from inference_benchmarker.redact import ASKED_FOR, asked_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir

REAP_S = 2.0

Found = TypeVar("Found")


class Processes:
    """The wave's processes. Each dies with this one, and leaving the context reaps every one of them.

    They start when this is made, which takes them a while, and do nothing until they are told the plan.
    ``heard_at`` is when the primary last said anything, on the monotonic clock; ``left_behind`` names what the
    user's code had started and was still there at the end.
    """

    def __init__(self, workers: int, run_dir: RunDir) -> None:
        self.workers: list[subprocess.Popen[bytes]] = []
        self.heard_at = time.monotonic()
        self.left_behind: tuple[str, ...] = ()
        self.logs = ChildLogs()
        self._run_dir = run_dir
        self._mark = new_mark()
        self._orphans, self._looked_at = Orphans(), self.heard_at
        self._buffer = b""
        self.status, self._status_write = os.pipe()
        os.set_blocking(self.status, False)
        self._heard = select.poll()
        self._heard.register(self.status, select.POLLIN)
        self.primary = self._spawn("primary", run_dir.primary_log, pass_fds=(self._status_write,))
        os.close(self._status_write)
        try:
            for number in range(workers):
                self.workers.append(self._spawn("worker", run_dir.worker_log(number)))
            self.logs.start()
        except BaseException:
            self.__exit__()
            raise

    def tell_plan(self, plan: WavePlan) -> None:
        """Tell every process what to run; its plan stands in the run directory by now."""
        from inference_benchmarker.engine.curve import make_keys

        self.heard_at = time.monotonic()
        run_dir, whole_plan = str(self._run_dir.path), plan.to_json()
        keys, keys_of_workers = make_keys(plan.workers)
        job = {"plan": whole_plan, "run_dir": run_dir, "status_fd": self._status_write, "keys": keys.to_json()}
        self.tell_primary(json.dumps(job))
        for number, (worker, own) in enumerate(zip(self.workers, keys_of_workers, strict=True)):
            place = {"worker": number, "run_dir": run_dir, "parent": os.getpid()}
            job = {"plan": whole_plan, **place, "keys": own.to_json()}
            write_line(worker, json.dumps(job))

    def _spawn(self, module: str, log: Path, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        """Start one of our processes in a session of its own, so that Ctrl-C reaches this process alone."""
        output = self.logs.pipe_to(log)
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
        own = {process.pid for process in everyone}
        self.left_behind = (*end_leftovers(self._mark, own), *self._orphans.end(own))
        self.logs.close()
        os.close(self.status)

    def words(self, number: int) -> list[str]:
        """The last lines that a worker printed so far."""
        return self.logs.words(self._run_dir.worker_log(number))

    def last_words(self, number: int) -> list[str]:
        """The last lines that a worker which has ended printed."""
        return self.logs.last_words(self._run_dir.worker_log(number))

    def tell_primary(self, command: str) -> None:
        """Send the primary a line."""
        write_line(self.primary, command)

    def tell_port(self, port: int) -> None:
        """Tell every worker where the primary listens."""
        for worker in self.workers:
            write_line(worker, str(port))

    def wait(self, seconds: float) -> None:
        """Until the primary says something, but no longer than this."""
        self._heard.poll(1000 * seconds)
        if time.monotonic() > self._looked_at + REAP_S:
            self._looked_at = time.monotonic()
            self._orphans.reap({process.pid for process in (self.primary, *self.workers)})

    def events(self) -> Iterator[dict[str, Any]]:
        """The events that the primary told since the last call."""
        with suppress(BlockingIOError):
            while data := os.read(self.status, 65536):
                self._buffer += data
                self.heard_at = time.monotonic()
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            yield json.loads(line)


@dataclass(slots=True)
class Interrupts:
    """A count of how often Ctrl-C (or SIGTERM, or the terminal's end) came."""

    count: int = 0

    def add(self, _number: int, _frame: FrameType | None) -> None:
        """Count one; the wave's loop acts on it."""
        self.count += 1


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def counting_interrupts() -> Iterator[Interrupts]:
    """Count interrupts instead of raising; outside the main thread signals are not ours to take.

    Within another such context it is the same count, so that none is lost between the two.
    """
    outer = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
    interrupts = outer if isinstance(outer, Interrupts) else Interrupts()
    with _handling(interrupts.add):
        yield interrupts


def until_interrupted(act: Callable[[], list[Found]], interrupts: Interrupts | None = None) -> list[Found]:
    """The result of ``act``; nothing where KeyboardInterrupt ended it. To be called in a context that counts.

    While ``act`` runs an interrupt raises, and so does a second one; none does once it is over. ``interrupts`` counts
    those that raised.
    """
    found: list[Found] = []
    running = True

    def interrupt(*_: object) -> None:
        if running:
            if interrupts is not None:
                interrupts.count += 1
            raise KeyboardInterrupt

    with _handling(interrupt):
        try:
            try:
                found = act()
            finally:
                running = False
        except KeyboardInterrupt:
            running = False
    return found


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [number for number in INTERRUPTS if signal.getsignal(number) != signal.SIG_IGN]  # nohup, background jobs
    before = {number: signal.getsignal(number) for number in heeded}
    try:
        for number in heeded:
            signal.signal(number, handler)
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def note_asked_for(file: Path | None, shown: Iterable[str] = ()) -> None:
    """Name the variables that a user's file asks for: this process, and those that it starts, hide the keys in them.

    ``shown``: values that are told anyway, as those of ``plan.json`` are.
    """
    if file is not None:
        with suppress(OSError):
            source = file.read_text(encoding="utf-8", errors="replace")
            before = os.environ.get(ASKED_FOR, "").split(",")  # by a file of this process's last wave
            os.environ[ASKED_FOR] = ",".join(sorted({*before, *asked_for(source, os.environ, shown).split(",")} - {""}))


def child_environment() -> dict[str, str]:
    """The user's environment without what Locust would read from it; our package stays importable from a clone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    root = str(Path(__file__).resolve().parents[2])
    if not root.endswith("-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), root)))
    return {**environment, "PYTHONUNBUFFERED": "1"}


def write_line(process: subprocess.Popen[bytes], line: str) -> None:
    """Send a process a line, if it is still there."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is noticed elsewhere
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
