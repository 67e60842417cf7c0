"""Waves as users run them: the command as a process, its children found by pid, its run directory read back."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pyarrow.parquet as pq

from inference_benchmarker.embedded.running import EndpointConfig, RunningEndpoint, start
from inference_benchmarker.wave.run_dir import RunDir
from tests.waves import facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT = Path(__file__).parent.parent
MARK = "BENCHMARK_TEST_MARK"
NS = 1_000_000_000
OF_A_BUSY_MACHINE = {"schedule_lag", "schedule_late", "late_arrivals", "loop_blocked", "worker_cpu"}

# Beside every factories file: tells the endpoint the payload as the request's id, so that its log names arrivals.
SENDER = """
import os
from geventhttpclient import HTTPClient


class HttpError(Exception):
    def __init__(self, status):
        super().__init__(f"answered {status}")
        self.status = status


url = os.environ["TARGET"]
client = HTTPClient.from_url(url, concurrency=5000, connection_timeout=20, network_timeout=100)


def post(payload, path="/invocations", body=b"{}"):
    response = client.post(path, body=body, headers={"X-Request-Id": str(payload)})
    data = bytes(response.read())
    if response.status_code != 200:
        raise HttpError(response.status_code)
    return data
"""

FACTORIES = """
from sender import post


def invoke_factory():
    return post


def payload_factory():
    return {"pre_computed": True, "input": list(range(10_000))}
"""


def factories(invoke: str, before: str = "", payloads: int = 10_000) -> str:
    """A factories file with this body of ``invoke`` and this code before it."""
    lines = "\n        ".join(invoke.strip().splitlines())
    return f"""
import os
import re
import time
import gevent
from sender import post
{before}

def invoke_factory():
    def invoke(payload):
        {lines}
        return post(payload)

    return invoke


def payload_factory():
    return {{"pre_computed": True, "input": list(range({payloads}))}}
"""


class Bench:
    """Starts commands and endpoints, each command in a folder of its own; ends what a failed test left behind."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = count()
        self._running: list[Running] = []

    def folder(self) -> Path:
        """A new empty folder."""
        folder = self._root / str(next(self._numbers))
        folder.mkdir()
        return folder

    def endpoint(self, **config: Any) -> RunningEndpoint:
        """An endpoint in a process of its own; use it in a ``with`` block."""
        return start(EndpointConfig(**config))

    def start(
        self,
        *arguments: object,
        factories: str | None = FACTORIES,
        target: RunningEndpoint | str | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        before: str = "",
        streams: Mapping[str, int] | None = None,
        session: Sequence[str] = (),
    ) -> Running:
        """Start the command in ``folder``. ``factories`` becomes its factories file; ``before`` is shell code.

        ``streams``: descriptors for some of stdin, stdout and stderr, instead of nothing and two files that are
        read back; they are closed here once the command has them. ``session``: a program that starts the command.
        """
        folder = folder or self.folder()
        url = target.url if isinstance(target, RunningEndpoint) else target or "http://127.0.0.1:9"
        given: list[object] = []
        if factories is not None:
            (folder / "sender.py").write_text(SENDER)
            (folder / "factories.py").write_text(factories)
            given = ["--factories-file", "factories.py", "--output-dir", "runs"]
        mark = uuid.uuid4().hex
        line = [sys.executable, "-P", "-m", "inference_benchmarker.cli", *map(str, [*given, *arguments])]
        if before:
            line = ["sh", "-c", f'{before}; exec "$@"', "sh", *line]
        line = [*session, *line]
        variables = {**os.environ, "PYTHONPATH": str(ROOT), "TARGET": url, MARK: mark, **(environment or {})}
        with (folder / f"{mark}.out").open("wb") as out, (folder / f"{mark}.err").open("wb") as err:
            standard: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": out.fileno(),
                "stderr": err.fileno(),
                **(streams or {}),
            }
            process = subprocess.Popen(line, cwd=folder, env=variables, **standard)
        for stream in set((streams or {}).values()):
            os.close(stream)
        running = Running(process, folder, mark)
        self._running.append(running)
        return running

    def run(self, *arguments: object, **options: Any) -> Finished:
        """Start the command and wait for its end."""
        return self.start(*arguments, **options).finish()

    def report(self, run_dir: Path, *arguments: str) -> Finished:
        """``benchmark report DIR``."""
        return self.run("report", run_dir, *arguments, factories=None)

    def close(self) -> None:
        """End what is still there."""
        for running in self._running:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()
            for process in running.alive():
                with suppress(psutil.NoSuchProcess):
                    process.kill()


class Running:
    """A command that runs, and the processes it started."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, mark: str) -> None:
        self.process = process
        self.folder = folder
        self.mark = mark
        self.children: dict[int, psutil.Process] = {}

    def look(self) -> None:
        """Remember the children that are there now."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self.children.setdefault(child.pid, child)

    def workers(self) -> list[psutil.Process]:
        """The workers that live, in order of their start."""
        return self._children("inference_benchmarker.engine.worker")

    def primary(self) -> psutil.Process:
        """The primary."""
        return self._children("inference_benchmarker.engine.primary")[0]

    def _children(self, module: str) -> list[psutil.Process]:
        self.look()
        found = []
        for child in sorted(self.children.values(), key=lambda child: (child.create_time(), child.pid)):
            with suppress(psutil.NoSuchProcess):
                if module in child.cmdline():
                    found.append(child)
        return found

    def alive(self) -> list[psutil.Process]:
        """Every process that carries this command's mark in its environment."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.pid != self.process.pid and process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    @property
    def out(self) -> str:
        """Standard output so far."""
        return (self.folder / f"{self.mark}.out").read_text()

    @property
    def err(self) -> str:
        """Standard error so far."""
        return (self.folder / f"{self.mark}.err").read_text()

    def wait_for(self, condition: Callable[[], Any], what: str, timeout: float = 60) -> Any:
        """Wait until something is so while the command runs."""
        deadline = time.monotonic() + timeout
        while not (result := condition()):
            assert self.process.poll() is None, f"ended with {self.process.returncode} before {what}: {self.err}"
            assert time.monotonic() < deadline, f"not within {timeout} s: {what}; {self.err}"
            time.sleep(0.02)
        self.look()
        return result

    def wait_for_arrivals(self, endpoint: RunningEndpoint, number: int) -> None:
        """Wait until the endpoint saw that many requests."""
        self.wait_for(lambda: len(endpoint.arrivals()["sequence"]) >= number, f"{number} arrivals")

    def run_dirs(self) -> list[Path]:
        """The run directories in this command's folder."""
        return sorted((self.folder / "runs").glob("*_benchmark*"))

    def signal(self, number: signal.Signals) -> None:
        """Send the command a signal, and nobody else."""
        self.process.send_signal(number)

    def kill_all(self) -> None:
        """SIGKILL for the primary, the workers and the command, in this order: none is to hear of another's end."""
        self.look()
        for pid in (*self.children, self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def finish(self, timeout: float = 90) -> Finished:
        """Wait for the end; nothing the command started may outlive it."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            self.look()
            if time.monotonic() > deadline:
                self.kill_all()
                raise AssertionError(f"still running after {timeout} s: {self.err}")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.3)
        self.check_that_nothing_is_left()
        named = re.findall(r"^Run directory: (.*_benchmark(?:-\d+)?)", self.out, re.MULTILINE)
        dirs = self.run_dirs()
        run_dir = self.folder / named[-1] if named else dirs[0] if len(dirs) == 1 else None
        return Finished(self.process.returncode, self.out, self.err, run_dir)

    def check_that_nothing_is_left(self) -> None:
        """No process of ours lives on; a command that ended by itself has also reaped every one of them."""
        killed = self.process.returncode == -signal.SIGKILL  # then zombies are init's to reap
        deadline = time.monotonic() + 10
        while left := [p for p in self.children.values() if p.is_running() and not (killed and _is_zombie(p))]:
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.05)
        while left := self.alive():
            assert killed, f"left behind: {left}"
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.05)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@dataclass
class Finished:
    """What a command left: its exit code, what it printed and its run directory."""

    code: int
    out: str
    err: str
    run_dir: Path | None

    @property
    def folder(self) -> Path:
        """The run directory, which must be there."""
        assert self.run_dir is not None, self.err
        return self.run_dir

    @property
    def folder_of_aiperf(self) -> Path:
        """What aiperf left in the run directory."""
        return self.folder / "aiperf"

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json without its digests."""
        return facts_of(RunDir(self.folder))

    @cached_property
    def everything(self) -> list[dict[str, Any]]:
        """Every row of requests.parquet."""
        rows: list[dict[str, Any]] = pq.read_table(self.folder / "requests.parquet").to_pylist()
        return rows

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The window's rows of requests.parquet."""
        return [row for row in self.everything if row["index"] >= 0]

    @property
    def ledger(self) -> dict[str, Any]:
        """The whole wave's counts."""
        ledger: dict[str, Any] = self.summary["ledger"]
        return ledger

    @property
    def findings(self) -> dict[str, str]:
        """Severity by code, but for what a busy machine adds."""
        found = {finding["code"]: finding["severity"] for finding in self.summary["findings"]}
        return {code: severity for code, severity in found.items() if code not in OF_A_BUSY_MACHINE}

    @property
    def invalid(self) -> set[str]:
        """The findings that make the wave INVALID."""
        return {code for code, severity in self.findings.items() if severity == "invalid"}

    @property
    def exit_code(self) -> int:
        """The exit code, as it is where the machine is not too busy to keep the schedule."""
        assert self.code == self.summary["exit_code"]
        if self.code == 3 and not self.invalid:
            return 1 if "missed" in self.findings.values() else 0
        return self.code

    def locust_totals(self) -> dict[str, int]:
        """Requests and failures of Locust's own CSV."""
        with (self.folder / "locust_stats" / "locust_stats.csv").open() as file:
            total = next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")
        return {"requests": int(total["Request Count"]), "failures": int(total["Failure Count"])}

    def outcomes(self) -> Counter[str]:
        """How many rows have each outcome."""
        return Counter(row["outcome"] for row in self.rows)

    def errors(self) -> Counter[str]:
        """How many rows have each error."""
        return Counter(row["error"] for row in self.rows if row["error"] is not None)

    def check_books(self, rate: str | None = None) -> None:
        """The ledger balances, the rows are what it says, and no request was early. ``rate``: constant arrivals."""
        ledger, workers = self.ledger, self.summary["ledger"]["workers"]
        for books in (ledger, *workers):
            assert books["scheduled"] + books["repeated"] == books["sent"] + books["dropped"] + books["lost"]
            assert books["sent"] == books["ok"] + books["failed"] + books["abandoned"] + books["in_flight"]
            assert min(value for value in books.values() if isinstance(value, int)) >= 0
        for name in workers[0]:
            assert ledger[name] == sum(books[name] for books in workers)
        outcomes = self.outcomes()
        assert {name: outcomes[name] for name in ("ok", "failed", "abandoned")} == {
            name: ledger[name] for name in ("ok", "failed", "abandoned")
        }
        indices = [(row["index"], row["attempt"]) for row in self.everything]
        assert indices == sorted(set(indices))
        assert sum(row["attempt"] > 0 for row in self.rows) == ledger["repeated"]
        for row in self.everything:
            assert row["index"] % len(workers) == row["worker"]
            assert row["due"] <= row["sent"] <= row["done"]
            assert (row["error"] is not None) == (row["outcome"] == "failed")
        if rate is not None:
            period = NS / Fraction(rate)
            assert all(row["due"] == row["index"] * period // 1 for row in self.everything)
        self._check_timeline()

    def _check_timeline(self) -> None:
        with (self.folder / "timeline.csv").open() as file:
            seconds = list(csv.DictReader(file))
        for name in ("ok", "failed", "abandoned"):
            assert sum(int(row[name]) for row in seconds) == self.ledger[name], name
        assert sum(int(row["sent"]) for row in seconds) == len(self.rows)
        assert sum(int(row["repeated"]) for row in seconds) == self.ledger["repeated"]
        end = len(seconds) * NS
        taken = sum(max(min(row["done"], end) - max(row["sent"], 0), 0) for row in self.everything) / NS
        assert abs(sum(float(row["in_flight"]) for row in seconds) - taken) < 1e-6 * len(seconds)


def ids(arrivals: Mapping[str, Sequence[Any]]) -> list[int]:
    """The ids of the arrivals, in order."""
    return [int(number) for number in arrivals["id"]]


def most_in_flight(arrivals: Mapping[str, Sequence[Any]]) -> int:
    """How many requests were at the endpoint at once, by its own log."""
    changes = [(arrival, 1) for arrival in arrivals["queued_ns"]] + [(end, -1) for end in arrivals["finish_ns"]]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def files_holding(folder: Path, needles: Iterable[str]) -> list[str]:
    """The files below a folder that hold one of the texts, on one line or several, Parquet's unpacked ones included."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".parquet":
                content += json.dumps(pq.read_table(path).to_pylist()).encode()
            content += b"\0" + content.replace(b"\n", b"")
            found += [f"{path.name}: {needle}" for needle in needles if needle.encode() in content]
    return found
