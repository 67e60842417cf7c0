"""The command as a user runs it, while hosts send for it."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.engine.hosts.plans import BEGUN, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.performance.stamp_server import StampServer


class Running:
    """A wave of a minute, of which the server has had some requests."""

    def __init__(self, folder: Path, stamps: StampServer, *flags: str) -> None:
        self.folder = folder
        line = [sys.executable, "-m", "inference_benchmarker.cli", stamps.url, *flags]
        line += ["--client-rps", "100", "--obs-time", "60", "--output-dir", str(folder)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        last = time.monotonic() + PATIENCE_S
        while len(stamps.log()) < BEGUN and self.process.poll() is None and time.monotonic() < last:
            time.sleep(0.02)

    def finish(self) -> tuple[int, str]:
        """The exit code and what was printed."""
        text, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, text


@contextmanager
def running(folder: Path, stamps: StampServer, *flags: str) -> Iterator[Running]:
    """Such a wave; killed in the end."""
    wave = Running(folder, stamps, *flags)
    try:
        yield wave
    finally:
        wave.process.kill()
        wave.process.communicate()
