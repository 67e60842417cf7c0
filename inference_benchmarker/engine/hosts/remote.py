"""A machine that is reached over a transport as a host: an agent there does what this asks, and tells what happens."""

from __future__ import annotations

import base64
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.clock_watch import ClockWatch
from inference_benchmarker.engine.hosts.protocol import ASK_S, FILES, KEEP_S, LEASE, LEASE_S, LOST_S, QUIET_S, SILENT_S
from inference_benchmarker.engine.processes.child_logs import ChildLogs
from inference_benchmarker.facts.client_samples import Sample
from inference_benchmarker.system.files import is_file
from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from signal import Signals

    from inference_benchmarker.engine.hosts.shipping import Cargo
    from inference_benchmarker.engine.hosts.transport import Message, Transport
    from inference_benchmarker.wave.run_dir import RunDir

CLOSING_S = 6.0  # an agent needs two seconds for workers that do not end, and as much for what they left behind
KNOCK_S = 0.5  # so often, while a host is silent: a login takes about as long
_PIECE = 1 << 20  # bytes of a file in a message
_LAST_WORDS = 3


class RemoteHost:
    """Runs workers on another machine; see ``Host``. ``name``: as the user calls it.

    ``problem`` says why it is lost, in a sentence without its end; None as long as it is there. Its answers are as old
    as the last word that came. ``hello``: its first word, with its cores and versions; None before it came.
    ``needs_socket``: its workers reach the primary by a socket there.
    """

    def __init__(
        self, name: str, transport: Transport, run_dir: RunDir, cargo: Cargo, *, needs_socket: bool = True
    ) -> None:
        self.name = name
        self.problem: str | None = None
        self.hello: Message | None = None
        self.clock = ClockWatch()
        self._transport = transport
        self._run_dir = run_dir
        self._cargo = cargo
        self._needs_socket = needs_socket
        self._logs = ChildLogs()
        self._pipes: dict[int, int] = {}
        self._workers: tuple[int, ...] = ()
        self._ended: set[int] = set()
        self._memory_left: int | None = None
        self._memory: dict[str, int] = {}
        self._samples: list[Sample] = []
        self._left_behind: tuple[str, ...] = ()
        self._heard_at = self._renewed_at = self._kept_at = self._asked_at = self._knocked_at = time.monotonic()
        self._closing = False
        self._closed = threading.Event()

    def connect_agent(self) -> None:
        """Open the way there, and have sent what its workers will need."""
        self._transport.start(self._hear, self._end)
        self._transport.send({"do": "environment", "values": dict(self._cargo.environment)})
        for place, path in self._cargo.files:
            self.send_file(place, path)

    def send_recording(self) -> None:
        """Send what the run directory has of a recording, to the same places there. OSError where it cannot be read."""
        for path in (self._run_dir.arrivals, *sorted(self._run_dir.recorded_rows.rglob("*"))):
            if is_file(path):
                self.send_file(str(path.relative_to(self._run_dir.path)), path)

    def send_file(self, place: str, path: Path) -> None:
        """Send a file to a place in the agent's folder. OSError where it cannot be read."""
        with path.open("rb") as file:
            data = file.read(_PIECE)
            while True:
                self._transport.send({"do": "file", "name": place, "data": base64.b64encode(data).decode()})
                if not (data := file.read(_PIECE)):
                    return

    def words_of_the_way(self) -> list[str]:
        """The last lines that came from the way there itself."""
        return self._transport.words()[-_LAST_WORDS:]

    def here(self, text: str) -> str:
        """A text of that host, with the paths that the files have here."""
        if self.hello is None:
            return text
        return text.replace(f"{self.hello.get('folder')}/{FILES}", str(self._cargo.base))

    def lacking_file(self, problem: str) -> str:
        """The hint on a file that was not sent; see ``Cargo``."""
        return self._cargo.lacking_file(problem)

    @property
    def cores(self) -> int:
        """The number of cores that its workers may use."""
        assert self.hello is not None
        return int(self.hello["cores"])

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what runs there, by name; none before its first word."""
        return {} if self.hello is None else dict(self.hello["versions"])

    @property
    def constants(self) -> dict[str, Any]:
        """The facts of it that stay in a wave; none before its first word."""
        return {} if self.hello is None else dict(self.hello["constants"])

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of its workers."""
        return self._workers

    def spawn(self, workers: Sequence[int]) -> None:
        """Start these workers there."""
        self._workers = tuple(workers)
        self._pipes = {number: self._logs.pipe_to(self._run_dir.worker_log(number)) for number in workers}
        self._logs.start()
        self._transport.send({"do": "spawn", "workers": list(workers)})

    def begin(self, worker: int, job: Mapping[str, Any]) -> None:
        """Give a worker its job; the files of its plan are those that were sent."""
        plan = {**job["plan"], **self._cargo.places}
        self._transport.send({"do": "begin", "worker": worker, "job": {**job, "plan": plan}})

    def connect(self, port: int, also: str | None) -> None:  # noqa: ARG002 - that port is reached from its machine alone
        """Tell every worker where the primary is reached: at its address, or by the socket there."""
        self._transport.send({"do": "connect", "address": also if also and also.startswith("tcp:") else None})

    def signal(self, worker: int, number: Signals) -> None:
        """Send a worker a signal."""
        self._transport.send({"do": "signal", "worker": worker, "number": int(number)})

    def ended(self) -> Collection[int]:
        """The workers that have ended by now: all of a host that is lost."""
        return self._workers if self.problem else self._ended

    def words(self, worker: int) -> list[str]:
        """The last lines that a worker printed so far."""
        return self._logs.words(self._run_dir.worker_log(worker))

    def last_words(self, worker: int) -> list[str]:
        """The last lines that a worker which has ended printed; of a lost host, why it is."""
        if self.problem and worker not in self._ended:
            return [f"{self.name}: {self.problem}"]
        return self._logs.last_words(self._run_dir.worker_log(worker))

    def memory_left(self) -> int | None:
        """The bytes that were free when it was last heard of."""
        return self._memory_left

    def memory_of(self, worker: int) -> int:
        """The bytes that a worker held then."""
        return self._memory.get(str(worker), 0)

    def samples(self) -> list[Sample]:
        """The samples of the host and its workers that came since the last call."""
        taken, self._samples = self._samples, []
        return taken

    def measure_clock(self) -> None:
        """Ask its clock several times in a row."""
        self.clock.burst()
        self._ask_clock()

    def tend(self) -> None:
        """Nothing is to be done in the wave's loop: ``keep`` does it, however long that loop takes."""

    def keep(self) -> None:
        """Renew its lease, and see whether it is there still; to be called often."""
        if self.hello is None:  # it logs in, for which there is a time of its own
            return
        now = time.monotonic()
        self.problem = self.problem or self._silence(now)
        if now > self._asked_at + ASK_S:
            self._ask_clock()
        if now > self._kept_at + KEEP_S:
            self._kept_at = now
            self._transport.send({"do": "beat"})
        is_silent = self.problem is None and QUIET_S < now - self._heard_at < LEASE_S
        if is_silent and self._renewed_at < self._heard_at and now > self._knocked_at + KNOCK_S:
            self._knocked_at = now
            self._transport.knock(f"{self.hello['folder']}/{LEASE}", self._renew)

    def _silence(self, now: float) -> str | None:
        """Why it is lost by now."""
        quiet_since = max(self._heard_at, self._renewed_at)
        if now > quiet_since + LOST_S or now > self._heard_at + SILENT_S:
            return f"it has not answered for {now - self._heard_at:.0f} s"
        return None

    def _renew(self) -> None:
        """Its agent is there, and waits with us for what is on the way."""
        self._renewed_at = time.monotonic()

    def close(self) -> tuple[str, ...]:
        """End its workers and its agent; the names of what the user's code had left behind."""
        if self._closing:
            return self._left_behind
        self._closing = True
        if self.problem is None and self.hello is not None:
            self._transport.send({"do": "close"})
            self._closed.wait(CLOSING_S)
        self._transport.close(CLOSING_S if self._closed.is_set() else 0.0)
        for worker in self._workers:
            self._end_log(worker)
        self._logs.close()
        return self._left_behind

    def _ask_clock(self) -> None:
        self._asked_at = time.monotonic()
        self._transport.send(lambda: {"do": "clock", "asked": time.monotonic_ns()})

    def _hear(self, message: Message, at: int) -> None:
        """Take what the agent says, on the transport's thread."""
        self._heard_at = time.monotonic()
        match message["say"]:
            case "clock":
                if self.clock.take(message, at):
                    self._ask_clock()
            case "memory":
                self._memory_left, self._memory = message["left"], message["workers"]
            case "log":
                self._add_to_log(message["worker"], base64.b64decode(message["data"]))
            case "samples":
                # Its wall clock may be anywhere: they are of the second in which they came.
                self._samples += [Sample(round(time.time(), 3), *values[1:]) for values in message["samples"]]
            case "ended":
                self._take_ended(message["workers"])
            case "hello":
                self.hello, self.problem = message, self.problem or self._refused(message)
            case "failed":
                self.problem = self.problem or message["reason"]
            case "closed":
                self._take_closed(message["left_behind"])

    def _take_closed(self, left_behind: list[str]) -> None:
        """It is over there, because we asked for it or the lease ended."""
        if not self._closing:
            self.problem = self.problem or f"it heard nothing for {LEASE_S:.0f} s, and ended its workers"
        self._left_behind = tuple(left_behind)
        self._closed.set()

    def _take_ended(self, workers: list[int]) -> None:
        for worker in workers:
            self._end_log(worker)
        self._ended |= {*workers}

    def _end(self) -> None:
        """The way is closed, whoever closed it."""
        self._closed.set()
        if not self._closing and self.problem is None:
            words = " | ".join(self.words_of_the_way())
            self.problem = words or "its connection was closed without a message"

    def _add_to_log(self, worker: int, data: bytes) -> None:
        with suppress(KeyError):
            os.write(self._pipes[worker], os.fsencode(self.here(os.fsdecode(data))))

    def _end_log(self, worker: int) -> None:
        if (pipe := self._pipes.pop(worker, None)) is not None:
            os.close(pipe)

    def _refused(self, hello: Message) -> str | None:
        """Why no worker can run there, by its first word."""
        if reason := hello.get("failed"):
            return str(reason)
        version = hello["versions"]["benchmark"]
        if version != __version__:
            return f"it has version {version}, and this host has {__version__}: `benchmark hosts prepare` installs it"
        if self._needs_socket and not hello["socket"]:
            return (
                "its SSH server forwards no Unix socket (AllowStreamLocalForwarding in its sshd_config, or a /tmp that "
                "cannot be written): allow it, or let the workers come to an address of this machine with --listen"
            )
        return self._cargo.lacking(hello["variables"])
