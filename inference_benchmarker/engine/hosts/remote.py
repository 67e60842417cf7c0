"""A machine with an agent as a host of a wave: the agent does what this asks, and reports what happens."""

from __future__ import annotations

import base64
import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.link import CLOSING_S
from inference_benchmarker.engine.hosts.protocol import FILES, WAVE
from inference_benchmarker.engine.processes.child_logs import ChildLogs
from inference_benchmarker.facts.client_samples import Sample
from inference_benchmarker.system.files import is_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from signal import Signals

    from inference_benchmarker.engine.hosts.link import Link
    from inference_benchmarker.engine.hosts.shipping import Cargo
    from inference_benchmarker.engine.hosts.transport import Message
    from inference_benchmarker.wave.run_dir import RunDir

_PIECE = 1 << 16  # bytes of a file in a message: a slow way carries one within the lease


class RemoteHost:
    """Runs the workers of a wave on another machine; see ``Host``. ``link``: leads to its agent.

    Its answers are as old as the last word that came. ``is_ready``: it can be given workers.
    """

    def __init__(self, link: Link, run_dir: RunDir, cargo: Cargo) -> None:
        self.link = link
        self.name = link.name
        self.is_ready = False
        self._run_dir = run_dir
        self._cargo = cargo
        self._lacking: str | None = None
        self._logs = ChildLogs()
        self._pipes: dict[int, int] = {}
        self._workers: tuple[int, ...] = ()
        self._ended: set[int] = set()
        self._memory_left: int | None = None
        self._memory: dict[str, int] = {}
        self._samples: list[Sample] = []
        self._left_behind: tuple[str, ...] = ()
        self._is_closed = False
        self._finished = threading.Event()

    @property
    def problem(self) -> str | None:
        """The reason why it is lost, or lacks something, in a sentence without its end; None as long as all is well."""
        return self.link.problem or self._lacking

    def prepare(self) -> None:
        """Begin the wave there, and have sent what its workers will need."""
        self.link.begin(self._hear)
        self.link.send({"do": "environment", "values": dict(self._cargo.environment)})
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
                self.link.send({"do": "file", "name": place, "data": base64.b64encode(data).decode()})
                if not (data := file.read(_PIECE)):
                    return

    def here(self, text: str) -> str:
        """A text of that host, with the paths that the files have here."""
        hello = self.link.hello
        return text if hello is None else text.replace(f"{hello.get('folder')}/{WAVE}/{FILES}", str(self._cargo.base))

    def lacking_file(self, problem: str) -> str:
        """The hint on a file that was not sent; see ``Cargo``."""
        return self._cargo.lacking_file(problem)

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of its workers."""
        return self._workers

    def spawn(self, workers: Sequence[int]) -> None:
        """Start these workers there."""
        self._workers = tuple(workers)
        self._pipes = {number: self._logs.pipe_to(self._run_dir.worker_log(number)) for number in workers}
        self._logs.start()
        self.link.send({"do": "spawn", "workers": list(workers)})

    def begin(self, worker: int, job: Mapping[str, Any]) -> None:
        """Give a worker its job; the files of its plan are those that were sent."""
        plan = {**job["plan"], **self._cargo.places}
        self.link.send({"do": "begin", "worker": worker, "job": {**job, "plan": plan}})

    def connect(self, port: int, also: str | None) -> None:  # noqa: ARG002 - that port is reached from its machine alone
        """Tell every worker where the primary is reached: at its address, or by the socket there."""
        self.link.send({"do": "connect", "address": also if also and also.startswith("tcp:") else None})

    def signal(self, worker: int, number: Signals) -> None:
        """Send a worker a signal."""
        self.link.send({"do": "signal", "worker": worker, "number": int(number)})

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

    def tend(self) -> None:
        """Nothing is to be done in the wave's loop: ``keep`` does it, however long that loop takes."""

    def close(self) -> tuple[str, ...]:
        """End its workers, and leave nothing of the wave there; the names of what the user's code had left behind."""
        if self._is_closed:
            return self._left_behind
        self._is_closed = True
        if self.problem is None and self.is_ready:
            self.link.send({"do": "finish"})
            if not self._finished.wait(CLOSING_S):
                self.link.lose("it did not end its workers")
        for worker in self._workers:
            self._end_log(worker)
        self._logs.close()
        return self._left_behind

    def _hear(self, message: Message) -> None:
        """Take what the agent says of the wave, on the transport's thread."""
        match message["say"]:
            case "ready":
                assert self.link.hello is not None
                self._lacking = self._cargo.lacking(self.link.hello["variables"])
                self.is_ready = True
            case "memory":
                self._memory_left, self._memory = message["left"], message["workers"]
            case "log":
                self._add_to_log(message["worker"], base64.b64decode(message["data"]))
            case "samples":
                # Its wall clock may be anywhere: they are of the second in which they came.
                self._samples += [Sample(round(time.time(), 3), *values[1:]) for values in message["samples"]]
            case "ended":
                self._take_ended(message["workers"])
            case "finished":
                self._left_behind = tuple(message["left_behind"])
                self._finished.set()
            case "lost":
                self._finished.set()

    def _take_ended(self, workers: list[int]) -> None:
        if not {*workers} <= {*self._workers}:
            self.link.lose("it reported workers that run elsewhere")
            return
        for worker in workers:
            self._end_log(worker)
        self._ended |= {*workers}

    def _add_to_log(self, worker: int, data: bytes) -> None:
        with suppress(KeyError):
            os.write(self._pipes[worker], os.fsencode(self.here(os.fsdecode(data))))

    def _end_log(self, worker: int) -> None:
        if (pipe := self._pipes.pop(worker, None)) is not None:
            os.close(pipe)
