"""Starts LitServe with the models of tests/lit_models.py, and reads what they noted."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.embedded.listening import listen
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_PATIENCE_S = 60.0


class LitServer:
    """The server as a child, in ``folder``; ready within the ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with listen() as sock:
            self.port = sock.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def noted(self, model: str, **having: Any) -> list[dict[str, Any]]:
        """The model's notes that hold these values, in order of arrival."""
        rows = [json.loads(line) for line in (self._folder / model).read_text().splitlines()]
        return [row for row in rows if having.items() <= row.items()]

    def __enter__(self) -> Self:
        with (self._folder / "said").open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.lit_models", str(self.port), str(self._folder)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            self._await_readiness()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _await_readiness(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._folder / "said").read_text())
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        """It answers 503 until each model's process is there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _end(self) -> None:
        """Its models are processes of its group; its own way to end takes more than a second."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
