"""One fault, how it is brought about, and what holds whatever it is."""

from __future__ import annotations

import base64
import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from inference_benchmarker.wave.wave import Wave
from tests.bench import FACTORIES, Bench, Finished, Running, files_holding, ids
from tests.scripted_server import ScriptedServer, answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint

SECRET_NAME, SECRET = "FAULTS_API_KEY", "k/7f3a9c+fault&key=50%.of"
ASKED_NAME, ASKED = "FAULTS_TENANT", "4e7d1c90ab52f63877d0"  # no name of a secret: the file asks for it
TELLING = f"""
import base64, sys
from urllib.parse import quote, quote_plus

asked = os.environ.get("{ASKED_NAME}", "")
secret = os.environ["{SECRET_NAME}"]
for value in filter(None, (secret, asked)):
    data = value.encode()
    print("told", value, data.hex(), data.hex().upper(), flush=True)
    print("told", "".join("%%%02X" % byte for byte in data), "\\0".join(value), file=sys.stderr, flush=True)
    coloured = chr(27) + "[31m" + value[:4] + chr(27) + "[0m" + value[4:]
    print("told", coloured, base64.b32encode(data).decode(), flush=True)
for number in range(3):
    print("told", secret, quote(secret), quote_plus(secret, safe=""), flush=True)
    print("told", base64.b64encode(b"x" * number + secret.encode()).decode(), file=sys.stderr, flush=True)
"""
SHORT = ("--client-rps", "40", "--obs-time", "1", "--workers", "2")
THREE_S = ("--client-rps", "40", "--obs-time", "3", "--workers", "2")
LONG = ("--client-rps", "50", "--obs-time", "60", "--workers", "2")
EVERYTHING = "everything"
LEAVING_S = 20.0  # what goes by itself after a kill is gone by then


@dataclass
class Ending:
    """What a fault left: the command's end, and the ids that its server saw; None: there was no server to ask.

    ``unread``: no verdict reached the reader. ``unsent``: requests that failed before the server saw them.
    ``stored``: whether there was a wave to store; ``logs``: without one, whether a run directory is kept for them.
    ``changed``: the run was changed afterwards, and a command that reads it is judged.
    ``broken``: our own fault is shown with its traceback. ``apart``: exit code 3 has another reason than a finding
    that no busy machine makes. ``built``: it is built on waves, as a search is, and judged where it is brought about.
    """

    finished: Finished
    arrived: list[int] | None
    unread: bool = False
    unsent: bool = False
    stored: bool = True
    logs: bool = False
    changed: bool = False
    broken: bool = False
    apart: bool = False
    built: bool = False


@dataclass(frozen=True)
class Fault:
    """A row: what happens, what is kept, what is lost at most, the exit code, and a part of what is said."""

    name: str
    happens: str
    kept: str
    lost: str
    code: int
    play: Callable[[Stage], Ending]
    slow: bool = False
    says: str = ""

    def run(self, bench: Bench) -> None:
        """Bring it about and judge what is left."""
        stage = Stage(bench)
        Judge(self, stage, self.play(stage)).judge()


@dataclass(frozen=True)
class Server:
    """Whom a wave asks, and the ids that it saw."""

    url: str
    arrived: Callable[[], list[int]]

    def wait_for(self, number: int, running: Running) -> None:
        """Wait until that many requests have come while the command runs."""
        running.wait_for(lambda: len(self.arrived()) >= number, f"{number} arrivals")


@dataclass
class Stage:
    """A folder of one fault's own, with a temporary folder in it, and the command that runs there."""

    bench: Bench
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = self.bench.folder()
        self.temporary.mkdir()

    @property
    def temporary(self) -> Path:
        """The command's temporary folder."""
        return self.folder / "tmp"

    def start(
        self,
        *flags: object,
        text: str | None = FACTORIES,
        target: RunningEndpoint | str | None = None,
        environment: dict[str, str] | None = None,
        **options: Any,
    ) -> Running:
        """Start the command; its factories file prints a secret in every spelling."""
        shown = (
            None
            if text is None
            else text.replace("from sender import post", f"import os{TELLING}\nfrom sender import post", 1)
        )
        variables = {SECRET_NAME: SECRET, ASKED_NAME: ASKED, "TMPDIR": str(self.temporary), **(environment or {})}
        return self.bench.start(
            *flags, factories=shown, target=target, environment=variables, folder=self.folder, **options
        )

    @contextmanager
    def server(self, like: dict[str, Any] | None = None) -> Iterator[Server]:
        """One that answers at once; ``like``: an embedded endpoint."""
        if like:
            with self.bench.endpoint(**like) as endpoint:
                yield Server(endpoint.url, lambda: ids(endpoint.arrivals()))
        else:
            with ScriptedServer([[answer(b"{}")]]) as server:
                yield Server(server.url, lambda: arrived_at(server))


def arrived_at(server: ScriptedServer) -> list[int]:
    """The ids of what a scripted server was asked."""
    return [int(request.headers["x-request-id"]) for request in server.asked]


def nothing(_: Running) -> None:
    """Let the wave go on."""


def wave(
    *flags: object,
    act: Callable[[Running], object] = nothing,
    arrivals: int = 0,
    server: dict[str, Any] | None = None,
    like: dict[str, Any] | None = None,
    **options: Any,
) -> Callable[[Stage], Ending]:
    """A wave to which something happens after so many arrivals; ``server``: what the embedded endpoint is like."""

    def play(stage: Stage) -> Ending:
        with stage.server(server) as asked:
            running = stage.start(*(flags or SHORT), target=asked.url, **options)
            asked.wait_for(arrivals, running)
            act(running)
            return Ending(running.finish(), asked.arrived(), **(like or {}))

    return play


@dataclass
class Judge:
    """Holds what a fault left against what is promised."""

    fault: Fault
    stage: Stage
    ending: Ending

    def judge(self) -> None:
        """Raise AssertionError for the first promise that is broken."""
        finished = self.ending.finished
        assert self.ending.broken or "Traceback" not in finished.out + finished.err, finished.err
        assert self.fault.says in finished.err, finished.err
        if self.ending.changed:
            assert finished.code == self.fault.code, (finished.code, finished.err)
            assert finished.out == "", finished.out
        elif self.ending.built:
            assert finished.code == self.fault.code, (finished.code, finished.err, finished.out)
        elif self.ending.stored:
            if finished.code != self.fault.code:  # on a busy machine a wave may be INVALID for that alone
                assert finished.exit_code == self.fault.code, (finished.code, finished.err, finished.out)
            assert finished.code != 3 or self.fault.code != 3 or finished.invalid or self.ending.apart, finished.out
            self._one_verdict()
            self._books_of_both_sides()
        else:
            assert finished.code == self.fault.code, (finished.code, finished.err)
            assert not self.ending.arrived
            assert (finished.run_dir is not None) == self.ending.logs
            assert not list(self.stage.folder.rglob("summary.json"))
        self._nothing_left()
        assert not (found := spelled(self.stage.folder)), found

    def _one_verdict(self) -> None:
        """Stored, printed and loaded again, it is the same."""
        finished = self.ending.finished
        again = Wave.load(finished.folder)
        assert json.loads(json.dumps(again.to_json())) == finished.summary
        text = f"{again.text()}".replace(f"{self.stage.folder}/", "")
        stored = (finished.folder / "summary.txt").read_text().replace(f"{self.stage.folder}/", "")
        assert stored == text, difference(stored, text)
        if self.ending.unread:
            return
        if finished.out.startswith("{"):
            assert json.loads(finished.out) == finished.summary
        else:
            printed = finished.out.replace(f"{self.stage.folder}/", "")
            assert printed == text, difference(printed, text)

    def _books_of_both_sides(self) -> None:
        """Every arrival is a row and every row an arrival, but for what was lost or never got there."""
        finished = self.ending.finished
        finished.check_books()
        if self.ending.arrived is None:
            return
        arrived, outcomes = set(self.ending.arrived), {row["index"]: row["outcome"] for row in finished.rows}
        assert len(arrived) == len(self.ending.arrived), "no request is sent twice"
        lost, workers = finished.summary["lost_workers"], len(finished.ledger["workers"])
        assert {index % workers for index in arrived - outcomes.keys()} <= set(lost), "only a lost worker's are missing"
        unseen = {outcomes[index] for index in outcomes.keys() - arrived}
        assert unseen <= ({"failed"} if self.ending.unsent else set()), f"reported and not seen by the server: {unseen}"

    def _nothing_left(self) -> None:
        """No temporary file; that no process is left was seen when the command ended."""
        run_dir = self.ending.finished.run_dir
        deadline = time.monotonic() + LEAVING_S
        while left := [path for path in self.stage.temporary.iterdir() if path != run_dir]:
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.05)


def difference(one: str, other: str) -> str:
    """The lines in which two texts differ."""
    return "\n".join(unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=0))


def spelled(folder: Path) -> list[str]:
    """The files below a folder that hold the secret in any spelling."""
    return files_holding(folder, sorted(spellings(SECRET) | spellings(ASKED)))


def spellings(secret: str) -> set[str]:
    """Plain, quoted for a URL, by its bytes, coloured, and in base64 at its three alignments."""
    data = secret.encode()
    by_bytes = {data.hex(), data.hex().upper(), "".join(f"%{byte:02X}" for byte in data), "\0".join(secret)}
    coloured = f"{chr(27)}[31m{secret[:4]}{chr(27)}[0m{secret[4:]}"
    found = {*by_bytes, coloured, base64.b32encode(data).decode()[: 8 * len(data) // 5]}
    found |= {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
    for before in range(3):
        coded = base64.b64encode(b"x" * before + secret.encode()).decode().rstrip("=")
        found.add(coded[-(-8 * before // 6) : -2])  # its ends tell of what stands beside it
    return found
