"""Runs a process for each endpoint, which makes it and searches its variants, so many at a time.

A process ends with this one in every case: the pipe that its job came through is its lifeline. It stands in a session
of its own, so that Ctrl-C reaches this process alone, which hands it on.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.engine.processes.children import child_environment
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.engine.processes.interrupts import Interrupts

POLL_S = 0.2
MOST_INTERRUPTS = 3
"""The first ends a search, the second its drain; after so many a process is killed: its keeper removes what it made."""


class Result(NamedTuple):
    """A variant's outcome: the job's and its place in that job; ``folder`` of its search, or why there is none.

    Neither: it was interrupted before. ``code``: the exit code of a variant that was not searched.
    """

    job: int
    place: int
    folder: str | None
    failed: str | None
    code: int = MISSED


class _Child:
    """A process with its job. ``results``: those that it reported and nobody has taken yet."""

    def __init__(self, number: int, module: str, job: dict[str, Any]) -> None:
        self.number = number
        self.missing = set(range(len(job["payloads"])))
        self.ended = False
        self._buffer = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        with suppress(OSError):  # its end is noticed elsewhere
            self._process.stdin.write(json.dumps(job).encode() + b"\n")
            self._process.stdin.flush()

    def results(self) -> Iterator[Result]:
        """Those that it reports now; at its end a reason for each variant of which it reported nothing.

        It reports each variant again once its endpoint is removed, or could not be.
        """
        data = os.read(self.output, 65536)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            fields = json.loads(line)
            self.missing.discard(fields["place"])
            yield Result(
                self.number, fields["place"], fields.get("folder"), fields.get("failed"), fields.get("code", MISSED)
            )
        if not data:
            self.ended = True
            code = self._process.wait()
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            why = None if code == INTERRUPTED else f"The process that ran the search {how}."
            for place in sorted(self.missing):
                yield Result(self.number, place, None, why, INVALID)

    def interrupt(self, *, last: bool) -> None:
        """Hand on an interrupt."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL if last else signal.SIGINT)

    def close(self) -> None:
        """Let go of it, and wait until it has ended, with what it made."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def run_jobs(module: str, jobs: Sequence[dict[str, Any]], parallel: int, interrupts: Interrupts) -> Iterator[Result]:
    """Run the jobs in their order, ``parallel`` at a time; results as they come. After an interrupt none begins.

    ``module``: the program, which reads its job as a line of JSON and tells each result in such a line.
    """
    waiting = list(enumerate(jobs))
    running: list[_Child] = []
    handed_on = interrupts.count
    try:
        while running or (waiting and not interrupts.count):
            while waiting and len(running) < parallel and not interrupts.count:
                number, job = waiting.pop(0)
                running.append(_Child(number, module, job))
            ready, _, _ = select.select([child.output for child in running], [], [], POLL_S)
            for child in running:
                if child.output in ready:
                    yield from child.results()
                elif interrupts.count > handed_on:
                    child.interrupt(last=interrupts.count >= MOST_INTERRUPTS)
            handed_on = interrupts.count
            for child in [child for child in running if child.ended]:
                running.remove(child)
                child.close()
    finally:
        for child in running:
            child.close()
