"""The server of moto in a process of its own: it patches what it is imported beside."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def moto_server() -> Iterator[str]:
    """Its address."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            reported = (re.search(r"Running on (http://\S+)", line) for line in process.stderr)
            url = next(found[1] for found in reported if found)
            threading.Thread(
                target=process.stderr.read, daemon=True
            ).start()  # it tells of each request: a pipe fills up
            yield url
        finally:
            process.kill()
