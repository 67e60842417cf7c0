"""Machines that lack what every other one has: loopback, /proc, memory, the right to read a file."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench import factories
from tests.faults.fault import SHORT, Ending, Fault, Stage
from tests.faults.output import SLOW_START
from tests.scripted_server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable

TAKES_LOOPBACK_DOWN = (
    f"import subprocess\nsubprocess.run(['ip', 'link', 'set', 'lo', 'down'], check=True)\n{SLOW_START}"
)
NOT_BEGUN, NOTHING = "nothing had begun", "nothing"


def namespace(*arguments: str) -> tuple[str, ...]:
    """A program that starts the command in a namespace of its own; the fault is skipped where there is none."""
    unshare = ("unshare", *arguments)
    if (
        shutil.which("unshare") is None
        or subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no namespace can be made here")
    return unshare


def with_loopback() -> tuple[str, ...]:
    """A network namespace whose loopback interface is up."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip")
    return (*namespace("--net"), "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


def refused(*flags: object, **options: Any) -> Callable[[Stage], Ending]:
    """A command that is refused before anything begins; ``session``: a function that gives the program around it."""
    session = options.pop("session", tuple)
    return lambda stage: Ending(stage.start(*flags, session=session(), **options).finish(), None, stored=False)


def a_byte_at_a_time(stage: Stage) -> Ending:
    """The list of a server's models arrives one byte every 0.2 s."""
    with ScriptedServer([[part for _ in range(1000) for part in (b"H", 0.2)]]) as server:
        url = f"{server.url}/v1/chat/completions"
        return Ending(stage.start(url, "--prompt", "a", *SHORT, text=None).finish(), None, stored=False)


HIDES_PROC = (*("unshare", "--mount"), "sh", "-c", 'mount -t tmpfs tmpfs /proc && exec "$@"', "sh")


def hides_proc() -> tuple[str, ...]:
    """A program that starts the command where /proc is empty."""
    if subprocess.run([*HIDES_PROC, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    return HIDES_PROC


def without_proc(stage: Stage) -> Ending:
    """A wave where nothing is known of the host and its processes, and of which a forked one stays."""
    text = factories("if payload == 3 and os.fork() == 0:\n    time.sleep(100)")
    with stage.server() as asked:
        flags = (*SHORT, "--sample-client-hw")
        finished = stage.start(*flags, text=text, target=asked.url, session=hides_proc()).finish()
        assert "CPU, memory and network N/A (/proc is hidden or not mounted)" in finished.out
        assert finished.summary["client"]["host"] is None
        return Ending(finished, asked.arrived())


def read_without_proc(stage: Stage) -> Ending:
    """A run that is read again there."""
    with stage.server() as asked:
        run = stage.start(*SHORT, target=asked.url).finish().folder
    again = stage.start("report", run.relative_to(stage.folder), text=None, session=hides_proc())
    return Ending(again.finish(), None, changed=True)


def unprivileged() -> tuple[str, ...]:
    """A program that starts the command without root's right to read everything."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    given_up = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={given_up}", f"--inh-caps={given_up}")


def closed(*flags: object, folder: str = "closed") -> Callable[[Stage], Ending]:
    """A command that is given something in a folder that this user may not look into."""

    def play(stage: Stage) -> Ending:
        place = stage.folder / folder
        place.mkdir(parents=True)
        place.chmod(0)
        try:
            return Ending(stage.start(*flags, text=None, session=unprivileged()).finish(), None, stored=False)
        finally:
            place.chmod(0o700)

    return play


def denied(name: str, happens: str, says: str, *flags: object, folder: str = "closed", slow: bool = True) -> Fault:
    """A row of a folder that is closed; ``says``: that it is, whichever of its files was looked for first."""
    played = closed(*flags, folder=folder)
    return Fault(f"closed-{name}", happens, "nothing is read or begun", NOTHING, 2, played, slow, says)


CLOSED = "Permission denied (closed is closed to this user)"
ENVIRONMENT = (
    Fault(
        "models-dribble",
        "the list of an OpenAI-compatible server's models arrives one byte every 0.2 s",
        NOT_BEGUN,
        NOTHING,
        2,
        a_byte_at_a_time,
        slow=True,
        says="its answer was not complete within 10 s. Give --model NAME.",
    ),
    Fault(
        "loopback-down",
        "the loopback interface is down",
        NOT_BEGUN,
        NOTHING,
        2,
        refused(*SHORT, session=lambda: namespace("--net")),
        says="The loopback interface (lo) is down, or a firewall closes it",
    ),
    Fault(
        "loopback-goes-down",
        "the loopback interface goes down while the endpoint is loaded",
        NOT_BEGUN,
        NOTHING,
        2,
        refused(*SHORT, text=TAKES_LOOPBACK_DOWN, session=with_loopback),
        slow=True,
        says="(no connection within 2 s), where the processes of a wave meet",
    ),
    Fault(
        "no-proc",
        "/proc is hidden or not mounted",
        "everything but the CPU, memory and network of the client's host, which are reported as N/A with the reason",
        "a process that the user's code leaves behind outside of its worker's group is not found",
        0,
        without_proc,
    ),
    Fault(
        "no-proc-reading",
        "a stored run is read where /proc is hidden or not mounted",
        "the files as they are",
        NOTHING,
        2,
        read_without_proc,
        slow=True,
        says="leads nowhere: /proc is hidden or not mounted",
    ),
    Fault(
        "address-space",
        "a process may have less address space than its libraries take (`ulimit -v`)",
        NOT_BEGUN,
        NOTHING,
        2,
        refused(*SHORT, before="ulimit -v 150000"),
        says="This process may have 146 MiB of address space (ulimit -v); its libraries alone take up to",
    ),
    Fault(
        "payloads-too-large",
        "`payload_factory` makes more payloads than the address space holds",
        NOT_BEGUN,
        NOTHING,
        2,
        refused(*SHORT, text=factories("pass", "kept = bytearray(8 << 30)"), before="ulimit -v 4000000"),
        slow=True,
        says="Make fewer or smaller payloads, or give its process more memory",
    ),
    Fault(
        "folder-gone",
        "the current folder was deleted before the command was given",
        NOT_BEGUN,
        NOTHING,
        2,
        refused(*SHORT, "--factories-file", "../factories.py", before="mkdir gone && cd gone && rmdir ../gone"),
        slow=True,
        says="The current folder was deleted",
    ),
    denied(
        "factories",
        "the factories file is in a folder that this user may not look into",
        "--factories-file closed/a.py: this user may not read it (Permission denied)",
        *("--factories-file", "closed/a.py", *SHORT),
    ),
    denied(
        "body",
        "the file of `--body` is in such a folder",
        f"closed/a.json: {CLOSED}",
        *("http://127.0.0.1:9", "--body", "@closed/a.json", *SHORT),
    ),
    denied(
        "clean",
        "`benchmark endpoints clean` is given such a folder",
        CLOSED,
        *("endpoints", "clean", "closed"),
        slow=False,
    ),
    denied("plot", "`benchmark plot` is given such a folder", CLOSED, "plot", "closed"),
    denied(
        "plan",
        "`benchmark plan` is given such a folder",
        CLOSED,
        *("plan", "closed", "--target-rps", "10"),
        slow=False,
    ),
    denied(
        "run-among-others",
        "one of the runs in a folder that `benchmark compare` is given is closed to this user",
        "Permission denied (many/closed is closed to this user)",
        *("compare", "many", "many"),
        folder="many/closed",
        slow=False,
    ),
)
