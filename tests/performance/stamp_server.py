"""Compiles, starts and stops the stamping server of ``stamp_server.c`` and fetches what it stamped."""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOURCE = Path(__file__).with_name("stamp_server.c")
# The log as it comes over the wire: CLOCK_MONOTONIC, in ns.
RECORD = np.dtype([("id", "<i8"), ("arrival_ns", "<i8"), ("answered_ns", "<i8")])
_CONTROL_TIMEOUT_S = 30.0


@functools.cache
def _build_directory() -> tempfile.TemporaryDirectory[str]:
    """One a process; removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="stamp_server_")


@functools.cache
def compiled(source: Path) -> Path:
    """The program of a C file; RuntimeError where there is no C compiler or it refuses the source."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise RuntimeError(f"{source.name} needs a C compiler: install gcc or clang")
    program = Path(_build_directory().name) / source.stem
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra"]
    done = subprocess.run(
        [compiler, *flags, "-o", str(program), str(source)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{source.name} does not compile:\n{done.stderr}")
    return program


class StampServer:
    """A running server: ``with StampServer(delay_ms=1) as server``. Its end closes it, and so does ours."""

    def __init__(
        self,
        *,
        delay_ms: float = 0.0,
        servers: int = 0,
        tokens: int = 0,
        gap_ms: float = 0.0,
        port: int = 0,
        address: str = "127.0.0.1",
    ) -> None:
        self._process = subprocess.Popen(
            [
                str(compiled(SOURCE)),
                *("--address", address),
                *("--port", str(port)),
                *("--delay-us", str(round(delay_ms * 1e3))),
                *("--servers", str(servers)),
                *("--tokens", str(tokens)),
                *("--gap-us", str(round(gap_ms * 1e3))),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the stamping server did not start (exit code {self._process.wait()})")
        self.url = f"http://{address}:{int(line)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; what it has not answered stays unanswered."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def log(self) -> NDArray[Any]:
        """What was stamped since the start or the last ``clear``, in order of arrival; dtype ``RECORD``."""
        return np.frombuffer(self._control("GET", "/log"), dtype=RECORD)

    def clear(self) -> None:
        """Forget the log."""
        self._control("DELETE", "/log")

    def stall(self, length_s: float) -> tuple[int, int]:
        """Suspend all service from now on; its first and last instant in ns of CLOCK_MONOTONIC."""
        answer = json.loads(self._control("GET", f"/stall?ms={round(length_s * 1e3)}"))
        return answer["at_ns"], answer["until_ns"]

    def _control(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 - always http to our own server
        with urllib.request.urlopen(request, timeout=_CONTROL_TIMEOUT_S) as answer:  # noqa: S310
            body: bytes = answer.read()
        return body
