"""The environment of the processes that this one starts, and a line to them."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.system.given import read_source
from inference_benchmarker.words.redact import ADDRESSES, ASKED_FOR, asked_for, up_to_hosts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable

REAP_S = 2.0


INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def note_asked_for(file: Path | None, shown: Iterable[str] = ()) -> None:
    """Name the variables that a user's file asks for: this process, and those that it starts, hide the keys in them.

    ``shown``: values that are public anyway, as those of ``plan.json`` are.
    """
    if file is not None:
        with suppress(OSError):
            source = read_source(file).decode("utf-8", "replace")
            before = os.environ.get(ASKED_FOR, "").split(",")  # by a file of this process's last wave
            os.environ[ASKED_FOR] = ",".join(sorted({*before, *asked_for(source, os.environ, shown).split(",")} - {""}))


def note_addresses(*addresses: str | None) -> None:
    """Name addresses that were given: this process, and those that it starts, hide the passwords in them."""
    if given := {found for each in addresses for found in up_to_hosts(each or "")}:
        os.environ[ADDRESSES] = " ".join(sorted({*os.environ.get(ADDRESSES, "").split(), *given}))


def child_environment() -> dict[str, str]:
    """The user's environment without what Locust would read from it; our package stays importable from a clone."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCUST_")}
    root = str(Path(__file__).resolve().parents[3])
    if not root.endswith("-packages"):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (environment.get("PYTHONPATH"), root)))
    return {**environment, "PYTHONUNBUFFERED": "1"}


def write_line(process: subprocess.Popen[bytes], line: str) -> None:
    """Send a process a line, if it is still there."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is noticed elsewhere
        process.stdin.write(line.encode() + b"\n")
        process.stdin.flush()
