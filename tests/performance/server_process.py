"""A server of others as a process: started, awaited, asked for its own counts, ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.listening import listen
from tests.performance.measure import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

PATIENCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Counts:
    """What a server has counted since it began; tokens are those it generated, None where it does not tell."""

    requests: int
    tokens: int | None = None

    def since(self, earlier: Counts) -> Counts:
        """What came after the earlier reading."""
        tokens = None if self.tokens is None else self.tokens - (earlier.tokens or 0)
        return Counts(self.requests - earlier.requests, tokens)


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers on ``port``; what it says goes to ``folder / "said"``."""

    port: int
    folder: Path

    def said(self, pattern: str) -> int:
        """The lines of its own log in which the pattern is found."""
        lines = (self.folder / "said").read_text(errors="replace").splitlines()
        return sum(1 for line in lines if re.search(pattern, line))

    def noted(self, name: str = "notes") -> list[dict[str, Any]]:
        """What our model within the server noted."""
        notes = self.folder / name
        return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []

    def metric(self, pattern: str, port: int | None = None) -> int:
        """The sum of its samples whose name and labels match, from its page of metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.port}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        return round(sum(float(line.rpartition(" ")[2]) for line in lines if re.match(pattern, line)))


@dataclass(frozen=True, slots=True)
class Case:
    """An example, the constants at its top that a user would edit, the load, and how the server counts it."""

    example: str
    counts: Callable[[Running], Counts]
    edits: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int | None = None
    rate: float = 4.0
    grpc: bool = False  # on the port after the other, and not through the proxy, which reads HTTP/1.1


@dataclass(frozen=True, slots=True)
class Server:
    """A server: its name and version, its command, its health page, its examples."""

    name: str
    version: Callable[[], str]
    command: Callable[[int, Path], list[str | Path]]
    ready: str
    cases: tuple[Case, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def running(self, folder: Path) -> Iterator[Running]:
        """The server in ``folder``, ready. Raises RuntimeError with the end of what it said where it is not."""
        folder.mkdir()
        running = Running(_free_port(), folder)
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "NOTES": str(folder / "notes"), **self.variables}
        with (folder / "said").open("wb") as said:
            process = subprocess.Popen(
                [str(word) for word in self.command(running.port, folder)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            _await(f"http://127.0.0.1:{running.port}{self.ready}", process, folder / "said")
            yield running
        finally:
            _end(process)


def _free_port() -> int:
    """One with two free ones behind it, or so one may hope."""
    with listen() as sock:
        port: int = sock.getsockname()[1]
    return port if port < 65_000 else _free_port()


def _await(url: str, process: subprocess.Popen[bytes], said: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return
        time.sleep(0.2)
    raise RuntimeError(f"{url} does not answer:\n{said.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """It leads a group, in which its own processes are."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
