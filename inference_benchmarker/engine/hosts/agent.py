"""The agent of a command far away: it starts, signals, samples and reaps the workers on its own host.

``python -m inference_benchmarker.engine.hosts.agent MARKER`` speaks lines of JSON with the command over its standard
input and output (see ``protocol``); MARKER begins its first line, since a login prints noise. An agent whose host
connects by itself speaks over that connection (see ``dialling``). The command holds a
lease: once it has not answered for ``LEASE_S``, the workers end, and the agent with them, for the end of a link that
is cut is reported nowhere. Another login may renew the lease, by touching a file. What the agent keeps lies in a folder
that goes with it, the socket that leads to the primary too, and what a wave keeps there goes with the wave.
"""

from __future__ import annotations

import base64
import os
import platform
import re
import shutil
import sys
import threading
import time
from contextlib import ExitStack, suppress
from queue import Empty, SimpleQueue
from signal import Signals
from typing import TYPE_CHECKING, Any, BinaryIO

from inference_benchmarker.engine.hosts.local import LocalHost
from inference_benchmarker.engine.hosts.protocol import BEAT_S, FILES, LEASE, LEASE_S, NODE, NODE_NAME, SOCKET, WAVE
from inference_benchmarker.engine.hosts.sampler import host_constants, sample_regularly
from inference_benchmarker.engine.hosts.transport import Lines
from inference_benchmarker.engine.processes.scratch import place_of_sockets, scratch_folder
from inference_benchmarker.system.files import is_file
from inference_benchmarker.system.host import adopt_orphans, raise_descriptor_limit, usable_cores
from inference_benchmarker.version import __version__
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.engine.hosts.transport import Message, Speaking

POLL_S = 0.02
LAST_WORDS_S = 2.0
MOST_LOG = 1 << 18  # bytes of a log in a message
CLOCKS_APART_NS = 5_000  # between two looks at clocks that are compared: more, and the process was held up meanwhile
_LOOKS = 5
_IN_FILES = ("factories_file", "locust_file")


class Agent:
    """Does what the command asks, wave after wave, until it is told to close, hears no more, or its lease is over."""

    def __init__(self, lines: Speaking, folder: Path) -> None:
        self._lines = lines
        self._folder = folder
        self._asked: SimpleQueue[Message] = SimpleQueue()
        self._heard_at = time.monotonic()
        self._wave: _Wave | None = None
        (folder / LEASE).touch()
        self._touched_at = self._renewed_at()

    def run(self) -> None:
        """Until it is over; every worker has ended by then."""
        self._lines.start(self._hear, lambda: self._asked.put({"do": "close"}))
        try:
            self._obey()
        finally:
            self._finish()
        self._lines.send({"say": "closed"})

    def _hear(self, message: Message, at: int) -> None:
        """Take a message, on the thread that reads: a question to the clock is answered at once."""
        self._heard_at = time.monotonic()
        if message["do"] == "clock":
            self._lines.send(lambda: {"say": "clock", "asked": message["asked"], "heard": at, **_clocks()})
        elif message["do"] != "beat":
            self._asked.put(message)

    def _holds(self) -> bool:
        """Tells whether the lease is held still."""
        if (touched_at := self._renewed_at()) != self._touched_at:
            self._touched_at = touched_at
            self._heard_at = time.monotonic()
        return time.monotonic() < self._heard_at + LEASE_S

    def _renewed_at(self) -> int:
        with suppress(OSError):  # it is the user's to remove
            return (self._folder / LEASE).stat().st_mtime_ns
        return 0

    def _obey(self) -> None:
        while self._holds():
            with suppress(Empty):
                message = self._asked.get(timeout=POLL_S)
                if message["do"] == "close":
                    return
                self._do(message)
                continue
            if self._wave is not None:
                self._wave.look()

    def _do(self, message: Message) -> None:
        word = message.pop("do")
        try:
            if word == "wave":
                self._wave = _Wave(self._lines.send, self._folder / WAVE, self._folder / SOCKET)
                self._lines.send({"say": "ready"})
            elif word == "finish":
                self._finish()
            else:
                getattr(self._wave, f"do_{word}")(**message)
        except OSError as error:  # a full disk, a home that is read-only
            self._lines.send({"say": "failed", "reason": f"{error.filename or 'a pipe'}: {error.strerror}"})

    def _finish(self) -> None:
        """Nothing is left of a wave, if there is one."""
        if self._wave is not None:
            left_behind, self._wave = self._wave.end(), None
            self._lines.send({"say": "finished", "left_behind": left_behind})


class _Wave:
    """A wave as it is there: its workers, variables and files, all of which ``end`` with it."""

    def __init__(self, say: Callable[[Message], None], folder: Path, socket: Path) -> None:
        self._say = say
        self._folder = folder
        self._run_dir = RunDir(folder)
        self._socket = socket
        self._environment = dict(os.environ)
        self._host: LocalHost | None = None
        self._logs: dict[int, BinaryIO] = {}
        self._ended_reported: set[int] = set()
        self._beat_at = 0.0
        self._is_over = threading.Event()
        self._sampling: threading.Thread | None = None
        (folder / FILES).mkdir(parents=True)
        self._run_dir.logs.mkdir()

    def do_environment(self, values: dict[str, str]) -> None:
        """Set variables."""
        os.environ.update(values)

    def do_file(self, name: str, data: str) -> None:
        """Add to a file of the folder, which is made with its folders."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(base64.b64decode(data))
        self._say({"say": "stored"})  # the command hears nothing else meanwhile

    def do_spawn(self, workers: list[int]) -> None:
        """Start workers, and sample what they use."""
        os.chdir(self._folder / FILES)  # as it is the command's own folder there
        self._host = LocalHost(self._run_dir)
        self._host.spawn(workers)
        processes = {f"worker_{number}": pid for number, pid in self._host.own().workers.items()}
        sampling = (processes, self._is_over.wait, lambda samples: self._say({"say": "samples", "samples": samples}))
        self._sampling = threading.Thread(target=sample_regularly, args=sampling, name="samples", daemon=True)
        self._sampling.start()

    def do_begin(self, worker: int, job: dict[str, Any]) -> None:
        """Give a worker its job, with the places of its files."""
        plan = {**job["plan"]}
        for key in _IN_FILES:
            plan[key] = plan[key] and str(self._folder / FILES / plan[key])
        self._there.begin(worker, {**job, "plan": plan})

    def do_connect(self, address: str | None) -> None:
        """Tell the workers where the primary is reached: by the socket, unless there is an address."""
        self._there.connect_to(address or f"ipc://{self._socket}")

    def do_signal(self, worker: int, number: int) -> None:
        """Send a worker a signal."""
        self._there.signal(worker, Signals(number))

    @property
    def _there(self) -> LocalHost:
        assert self._host is not None, "no worker was started"
        return self._host

    def look(self) -> None:
        """Tell what became of the workers, and what they printed."""
        if self._host is None:
            return
        self._host.tend()
        ended = {*self._host.ended()} - self._ended_reported
        for worker in ended:
            self._host.last_words(worker)  # its log is whole then
        if ended or time.monotonic() > self._beat_at:
            self._beat_at = time.monotonic() + BEAT_S
            self._tell_logs()
            memory = {str(worker): self._host.memory_of(worker) for worker in self._host.workers}
            self._say({"say": "memory", "left": self._host.memory_left(), "workers": memory})
        if ended:
            self._ended_reported |= ended
            self._say({"say": "ended", "workers": sorted(ended)})

    def end(self) -> tuple[str, ...]:
        """End every worker, and leave nothing of the wave; the names of what the user's code had left behind."""
        left_behind: tuple[str, ...] = ()
        self._is_over.set()
        if self._host is not None:
            left_behind = self._host.close()
            self._tell_logs()
        if self._sampling is not None:
            self._sampling.join()
        for log in self._logs.values():
            log.close()
        os.chdir(self._folder.parent)
        shutil.rmtree(self._folder, ignore_errors=True)
        os.environ.clear()
        os.environ.update(self._environment)
        return left_behind

    def _tell_logs(self) -> None:
        for worker in self._there.workers:
            log = self._run_dir.worker_log(worker)
            if worker not in self._logs and is_file(log):
                self._logs[worker] = log.open("rb")
            while worker in self._logs and (data := self._logs[worker].read(MOST_LOG)):
                self._say({"say": "log", "worker": worker, "data": base64.b64encode(data).decode()})


def _clocks() -> dict[str, int]:
    """The instant of CLOCK_MONOTONIC, and what CLOCK_MONOTONIC_RAW shows then."""
    for _ in range(_LOOKS):
        before, now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), time.monotonic_ns()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        if after - before < CLOCKS_APART_NS:
            break
    return {"answered": now, "raw": (before + after) // 2}


def _hello(**more: Any) -> Message:
    versions = {"benchmark": __version__, "python": platform.python_version()}
    facts = {"cores": usable_cores(), "open_files": raise_descriptor_limit(), "constants": host_constants()}
    node = os.environ.get(NODE, "")
    placed = {"node": node} if re.fullmatch(NODE_NAME, node) else {}
    return {"say": "hello", "versions": versions, "variables": sorted(os.environ), **facts, **placed, **more}


def serve(lines: Speaking) -> None:
    """Run an agent for whoever is at the other end of the lines, until it is over."""
    adopt_orphans()
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch_folder("benchmark-", place_of_sockets()))
            agent = Agent(lines, folder)
        except OSError as error:
            lines.start(lambda *_: None, lambda: None)
            lines.send(_hello(failed=f"{error.filename or 'its folder'}: {error.strerror}"))
        else:
            lines.send(_hello(folder=str(folder)))
            agent.run()
        lines.end(LAST_WORDS_S)


def main() -> None:
    """Run an agent for whoever has its standard input and output."""
    (marker,) = sys.argv[1:]
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.write(writing, f"\n{marker.replace('-', '')}".encode())
    serve(Lines(reading, writing))


if __name__ == "__main__":
    main()
