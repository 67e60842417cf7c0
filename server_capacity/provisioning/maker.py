"""``python -m server_capacity.provisioning.maker``: the process in which an endpoint_factory runs.

It is the keeper's child, and not the keeper: the user's code may wait for minutes, hang or crash, while the keeper has
to hear signals and to hold other endpoints. Standard input is a socket to the keeper, on which each says a JSON object
a line. The first one is the job. An interrupt of the factory, while it makes the endpoint, is KeyboardInterrupt.

Where the keeper is killed, this process removes the endpoint and runs what else the cleanup file holds.
"""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from inference_benchmarker.created_resources import use_holder
from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.engine.endpoint.endpoint_factory import begin, make, remove
from inference_benchmarker.engine.processes.leftovers import end_descendants, end_leftovers
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.host import adopt_orphans
from server_capacity.provisioning.cleanup_file import CleanupFile
from server_capacity.provisioning.messages import Job
from server_capacity.provisioning.restoring import PATIENCE_S, note_bad_end, restore
from server_capacity.provisioning.undo import MARK, Processes

if TYPE_CHECKING:
    from collections.abc import Generator

    from server_capacity.provisioning.messages import EndpointOrder

REMOVAL_S = 120.0
"""So long a factory may take to remove its endpoint, or to heed an interrupt, before its process is killed."""

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Line:
    """The line to the keeper.

    ``unwanted`` is set when the endpoint is no longer wanted, ``over`` when the keeper has removed all, or has ended
    before: ``is_cut`` tells which.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.unwanted, self.over = threading.Event(), threading.Event()
        self.is_cut = False
        self._channel = channel
        self._heard = channel.makefile("rb")
        self._speaking, self._asking = threading.Lock(), threading.Lock()
        self._asked = 0
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        first = self._heard.readline()
        self.job = decoded(json.loads(first), Job) if first else None
        self.run = self.job.order.run if self.job else ""

    def tell(self, **said: Any) -> None:
        """Say something, if anybody listens."""
        with self._speaking, suppress(OSError):
            self._channel.sendall(json.dumps(said).encode() + b"\n")

    def hold(self, undo: Any) -> None:
        """Have an undo written down; see ``created``."""
        with self._asking:
            self._asked += 1
            number = self._asked
            try:
                self.tell(created=undo, number=number)
            except (TypeError, ValueError) as error:
                raise BenchmarkError(f"created() takes what JSON can hold ({error}).") from None
            answer = {"number": 0}
            while answer["number"] != number and not self.is_cut:
                answer = self._answers.get()
        if self.is_cut:
            raise BenchmarkError("The keeper process has ended, so nothing more may be created.")
        if failed := answer.get("failed"):
            raise BenchmarkError(f"created(): {failed}.")

    def listen(self) -> None:
        """Take what the keeper says until it ends, and this process with it at the latest when its time is over."""
        with suppress(OSError, ValueError):  # a keeper that is killed resets the line, or leaves half of one
            for line in self._heard:
                said = json.loads(line)
                if "number" in said:
                    self._answers.put(said)
                elif "over" in said:
                    self.over.set()
                    return
                else:
                    self._end()
        self.is_cut = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for output in (1, 2):  # nobody reads them any more
            os.dup2(nowhere, output)
        self._answers.put({"number": 0})
        self.over.set()
        self._end()
        time.sleep(REMOVAL_S)
        os._exit(1)

    def _end(self) -> None:
        self.unwanted.set()
        os.kill(os.getpid(), signal.SIGINT)


class Spoken(io.TextIOBase):
    """Standard output, of which each line is progress that goes to the keeper as well."""

    def __init__(self, line: Line, output: TextIO) -> None:
        self._line = line
        self._output = output
        self._begun = ""

    def write(self, text: str) -> int:
        """Write to the log, and tell the lines that are whole."""
        with suppress(OSError):
            self._output.write(text)
            self._output.flush()
        *lines, self._begun = (self._begun + text).split("\n")
        for each in lines:
            self._line.tell(say=each)
        return len(text)


def main() -> int:
    """The process, from its job to its exit code."""
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    adopt_orphans()
    line = Line(channel)
    job = line.job
    if job is None:
        return 1
    os.set_inheritable(job.lock, False)
    path = Path(job.order.factories_file)
    interrupts = _Interrupts(line)
    threading.Thread(target=line.listen, daemon=True).start()
    use_holder(line)
    sys.stdout = Spoken(line, sys.stdout)
    generator, trouble = _made(job.order, line, interrupts)
    if generator is not None:
        line.unwanted.wait()
        trouble = _remove(path, generator, line)
    line.tell(ended=True)
    line.over.wait()  # while the keeper goes on, which may be killed yet
    end_descendants(os.getpid())
    if line.is_cut:
        _put_back(job, trouble)
    else:  # also for a keeper that is killed now
        end_leftovers(job.mark, {os.getpid()}, MARK)
    return 0


class _Interrupts:
    """Signals that ask for the end: they interrupt the factory while it makes the endpoint, and no removal."""

    def __init__(self, line: Line) -> None:
        self.is_making = False
        self._line = line
        for number in _ENDING:
            signal.signal(number, self._heed)

    def _heed(self, *_: object) -> None:
        self._line.unwanted.set()
        if self.is_making:
            self.is_making = False  # its own clearing up, which has begun then, is not interrupted
            raise KeyboardInterrupt


def _made(order: EndpointOrder, line: Line, interrupts: _Interrupts) -> tuple[Generator[Any, None, None] | None, str]:
    """The generator, whose endpoint is made; None where it could not be, and what was is removed.

    Beside it what went wrong with that removal.
    """
    path, generator = Path(order.factories_file), None
    begun = time.monotonic()
    try:
        interrupts.is_making = True
        if line.unwanted.is_set():
            raise KeyboardInterrupt
        generator = begin(path, order.arguments, order.settings)
        name = make(path, generator)
        interrupts.is_making = False
    except KeyboardInterrupt:
        line.tell(failed="Creating the endpoint was interrupted.")
    except BenchmarkError as error:
        line.tell(failed=error.message, hint=error.hint)
    else:
        line.tell(made=name, seconds=time.monotonic() - begun)
        return generator, ""
    finally:
        interrupts.is_making = False
    return None, "" if generator is None else _remove(path, generator, line)


def _remove(path: Path, generator: Generator[Any, None, None], line: Line) -> str:
    """Have the factory remove its endpoint; a clause on what went wrong, which the keeper knows too."""
    try:
        remove(path, generator)
    except BenchmarkError as error:
        trouble = str(error).rstrip(".")
        line.tell(trouble=trouble)
        return trouble
    return ""


def _put_back(job: Job, trouble: str) -> None:
    """Run what the keeper would have run, once all of its factories have ended."""
    os.close(job.lock)
    with suppress(BenchmarkError), CleanupFile.taken(Path(job.folder), REMOVAL_S) as cleanup:
        restore(cleanup, PATIENCE_S)
        if trouble:
            ours = Processes(job.mark)
            number = next(number for number, entry in enumerate(cleanup.entries) if entry.undo == ours)
            reported = [each for each, entry in enumerate(cleanup.entries) if not isinstance(entry.undo, Processes)]
            note_bad_end(cleanup, number, trouble, reported)


if __name__ == "__main__":
    raise SystemExit(main())
