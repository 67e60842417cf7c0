"""Runs aiperf in an environment of its own: finds it, hands it its arguments unseen, watches it and ends it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from inference_benchmarker.engine.processes.child_logs import child_log
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import replace_file
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.redact import redact, without
from server_capacity.aiperf.certificates import certificates
from server_capacity.aiperf.export import RECORDS
from server_capacity.aiperf.tokenizer import ADVICE, environment_for, in_log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

BINARY = "AIPERF_BIN"
LOG = "aiperf.log"
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venvIB-aiperf"
_POLL_S = 0.2
_TELL_S = 10.0
_END_S = 20.0
_HELP_S = 30.0
_LAST_LINES = 20
_FRAME = " ╭╮╰╯│─━┃┏┓┗┛•"

# The program that aiperf's own Python runs. The arguments come by standard input, so that the key is in no process's
# arguments; that input's end means that we are gone, and then so is aiperf. It is read past Python's own buffer, whose
# lock aiperf's forked children would inherit.
_RUNNER = """
import json, os, runpy, signal, sys, threading
line = b""
while not line.endswith(b"\\n"):
    line += os.read(0, 65536)
def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
sys.argv = [sys.argv[1], *json.loads(line)]
threading.Thread(target=end_with_parent, daemon=True).start()
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class AiperfFailedError(Exception):
    """aiperf ended without results; the text says why, or has its last words."""


@dataclass(frozen=True, slots=True)
class Installation:
    """aiperf's console script and the Python of the environment it is installed in."""

    script: Path
    python: Path

    @classmethod
    def find(cls, environment: Mapping[str, str]) -> Self:
        """By AIPERF_BIN, as ``./benchmark --init --with-aiperf`` made it, or on PATH."""
        named = environment.get(BINARY)
        own = ENVIRONMENT / "bin" / "aiperf"
        found = named or (str(own) if own.is_file() else shutil.which("aiperf", path=environment.get("PATH")))
        if found is None or not Path(found).is_file():
            what = f"{BINARY} is {named}, which is not a file." if named else "aiperf is not installed."
            raise BenchmarkError(
                what,
                "`./benchmark --init --with-aiperf` in the clone makes an environment for it; one of yours is found "
                f"on PATH, or by the path of its aiperf in {BINARY}.",
            )
        script = resolved(Path(found))
        for name in ("python3", "python"):
            if (python := script.parent / name).exists():
                return cls(script, python)
        raise BenchmarkError(
            f"{script} has no Python next to it.", f"Name the aiperf of a virtual environment in {BINARY}."
        )


def known_flags(installation: Installation, environment: Mapping[str, str]) -> frozenset[str]:
    """The flags that its help names, which takes it a second or two; empty where that cannot be read."""
    command: list[Path | str] = [installation.python, "-P", installation.script, "profile", "--help"]
    wide = {**environment, "COLUMNS": "1000"}  # so that no name is broken
    try:
        helped = subprocess.run(
            command, env=wide, stdin=subprocess.DEVNULL, capture_output=True, timeout=_HELP_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    found = frozenset(re.findall(r"(?<!\S)--([a-z0-9][a-z0-9-]*)", helped.stdout.decode(errors="replace")))
    return found if "url" in found else frozenset()


def run(
    installation: Installation,
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    say: Callable[[str], None],
    *,
    secrets: Sequence[str] = (),
) -> bool:
    """Run ``aiperf`` with its artifacts in ``folder``; whether it was interrupted. AiperfFailedError is the caller's.

    ``secrets`` stay out of its log. Ctrl-C (KeyboardInterrupt) asks it to end, and a second one ends it with all its
    processes.
    """
    with scratch_folder("aiperf_") as scratch, child_log(folder / LOG, secrets) as log:
        process = _start(installation, arguments, environment_of(environment, arguments, str(scratch)), log)
        try:
            _watch(process, folder / RECORDS, say)
        except KeyboardInterrupt:
            say("Stopping aiperf. Ctrl-C again ends it at once.")
            with suppress(KeyboardInterrupt):
                _ask_to_end(process)
            return True
        finally:
            _end(process)
    return False


def failure(folder: Path, secrets: Sequence[str]) -> AiperfFailedError:
    """The tokenizer that it could not load, or its last words without the frames it draws around them."""
    log = folder / LOG
    text = log.read_text(encoding="utf-8", errors="replace")
    if tokenizer := in_log(text):
        return AiperfFailedError(
            f"aiperf could not load the tokenizer {tokenizer!r}. {ADVICE} Its whole output is in {log}."
        )
    said = [clean for line in redact(text, secrets).splitlines() if (clean := line.strip(_FRAME))]
    last_words = "\n".join(f"  {line}" for line in said[-_LAST_LINES:])
    return AiperfFailedError(f"aiperf failed; its whole output is in {log}, which ends with:\n{last_words}")


def scrub(folder: Path, secrets: Sequence[str]) -> None:
    """Take secrets out of whatever aiperf wrote; out of its words also what only looks like one."""
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".json", ".jsonl", ".csv", ".txt", ".log"):
            text = path.read_text(encoding="utf-8", errors="replace")
            clean = redact(text, secrets) if path.suffix in (".txt", ".log") else without(text, secrets)
            if clean != text:
                replace_file(path, clean)


def _start(
    installation: Installation, arguments: Sequence[str], environment: Mapping[str, str], log: int
) -> subprocess.Popen[bytes]:
    """In a session of its own, so that Ctrl-C reaches this process alone and its children end with it."""
    process = subprocess.Popen(
        [installation.python, "-P", "-c", _RUNNER, installation.script],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # its end is noticed by who watches it
        process.stdin.write(json.dumps(list(arguments)).encode() + b"\n")
        process.stdin.flush()
    return process


def environment_of(environment: Mapping[str, str], arguments: Sequence[str], scratch: str) -> dict[str, str]:
    """The user's, with a temporary folder that goes with the run, and without a copy of the inputs in their home.

    It believes the certificate authorities that their other clients do.
    """
    given = dict(pairwise(arguments))
    found = environment_for(given.get("--tokenizer", given.get("--model")), environment)
    trusted = certificates(environment, Path(scratch))
    return {**found, **trusted, "TMPDIR": scratch, "AIPERF_DATASET_MMAP_CACHE_ENABLED": "false"}


def _watch(process: subprocess.Popen[bytes], records: Path, say: Callable[[str], None]) -> None:
    """Until it ends; every ten seconds how many requests its export has."""
    say("aiperf: starting, which takes a few seconds ...")
    begun = last_said = time.monotonic()
    done = read = 0
    while process.poll() is None:
        time.sleep(_POLL_S)
        if records.is_file():
            with records.open("rb") as file:
                file.seek(read)
                part = file.read()
            read, done = read + len(part), done + part.count(b"\n")
        if (now := time.monotonic()) - last_said >= _TELL_S:
            last_said = now
            say(f"aiperf: {done:,} requests done after {now - begun:.0f} s")


def _ask_to_end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it outlives this call: what is left in its session is killed."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
