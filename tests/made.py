"""A factories file whose endpoint is files and a process, and a program that has it made and waits."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from server_capacity.provisioning.cleanup_file import NAME
from server_capacity.provisioning.undo import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FACTORIES = '''
"""An endpoint of files in ``there`` and a process, which sleeps; ``how`` says what goes wrong."""
import signal, subprocess, sys, threading, time
from pathlib import Path
from inference_benchmarker import created, run_tags

RESOURCES = ("model", "config", "endpoint")

def make(name, there):
    file = Path(there) / name
    created([sys.executable, "-c", "import sys; from pathlib import Path; p = Path(sys.argv[1]); p.unlink(True)"
             "; open(p.parent / 'undone', 'a').write(p.name + ' ')", str(file)])
    file.write_text(repr(run_tags()))

def talk():
    for _ in range(20):
        print("x" * 30_000)
    (Path(__file__).parent / "talked").touch()

def endpoint_factory(there: str, how: str = "", pause: float = 0.0):
    server = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    try:
        for name in RESOURCES:
            print(f"{name}: Creating")
            make(name, there)
            time.sleep(pause)
            if how == "misreported":
                created("rm model")
            if how == "raises":
                raise ConnectionError("no capacity")
            if how == "hangs":
                time.sleep(600)
        if how == "talks":
            threading.Thread(target=talk, daemon=True).start()
        if how == "daemon":
            begin = ("from subprocess import DEVNULL, Popen; "
                     "print(Popen(['sleep', '600'], env={}, start_new_session=True, stdout=DEVNULL).pid)")
            pid = subprocess.check_output([sys.executable, "-S", "-c", begin])
            (Path(__file__).parent / "daemon").write_bytes(pid)
        yield "http://there"
        if how == "raises at its end":
            created(["/nowhere/to/be/found"])
            raise ConnectionError("throttled")
        if how == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
    finally:
        if how == "tidy":
            server.kill()
            for name in RESOURCES:
                (Path(there) / name).unlink(missing_ok=True)
'''

PROGRAM = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from server_capacity.provisioning.handle import Keeper
folder, factories, held_s, *arguments = sys.argv[1:]
say = lambda text: print(text, flush=True)
with Keeper(Path(folder), say, say) as keeper:
    with keeper.endpoint(Path(factories), dict(each.split("=", 1) for each in arguments), "a-run") as made:
        say(made.name)
        time.sleep(float(held_s))
"""


def factories_file(folder: Path) -> Path:
    """The file, written."""
    path = folder / "factories_made.py"
    path.write_text(FACTORIES)
    return path


def program(
    folder: Path, factories: Path, arguments: Sequence[str], env: dict[str, str], held_s: float = 60.0
) -> subprocess.Popen[bytes]:
    """The program, which says the endpoint's name once it is made, for so long; ``arguments`` as ``name=text``."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(factories), str(held_s), *arguments],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def left_running(folder: Path) -> list[psutil.Process]:
    """The processes that live of the endpoint_factories whose keeper had this folder, their own among them."""
    entries = json.loads((folder / NAME).read_text())["entries"] if (folder / NAME).exists() else []
    marks = {entry["undo"].get("processes") for entry in entries} - {None}
    return [process for process in psutil.process_iter() if _mark(process) in marks]


def _mark(process: psutil.Process) -> str | None:
    with suppress(psutil.Error):
        if process.status() != psutil.STATUS_ZOMBIE:
            return process.environ().get(MARK)
    return None
