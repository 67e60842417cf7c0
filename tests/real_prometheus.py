"""A real Prometheus server that reads one page, for what is handed on to it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from inference_benchmarker.embedded.running import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 60
_CONFIG = """\
global: {{scrape_interval: {every}, scrape_timeout: {every}}}
scrape_configs:
  - job_name: benchmark
    static_configs: [{{targets: ["{target}"]}}]
"""


@contextmanager
def reading(target: str, folder: Path, every: str = "1s") -> Iterator[str]:
    """The address of a server that reads ``target``/metrics so often, once it is ready."""
    binary = shutil.which("prometheus")
    if not binary:
        pytest.skip("needs the program prometheus")
    config = folder / "prometheus.yml"
    config.write_text(_CONFIG.format(target=target, every=every))
    address = free_address()
    flags = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([binary, *flags, "--log.level=warn"], stdout=log, stderr=log)
        try:
            _await(f"http://{address}", process)
            yield f"http://{address}"
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_address() -> str:
    """A port of this host that nobody listens at."""
    with listen() as sock:
        return f"127.0.0.1:{sock.getsockname()[1]}"


def ask(url: str, query: str) -> list[dict[str, Any]]:
    """The points of a query's answer, each with its labels; NaN is none."""
    with urlopen(f"{url}/api/v1/query?query={quote(query)}", timeout=PATIENCE_S) as answer:  # noqa: S310 - our own
        points = json.load(answer)["data"]["result"]
    return [point for point in points if point["value"][1] != "NaN"]


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(f"{url}/-/ready", timeout=1):  # noqa: S310 - our own
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise AssertionError("Prometheus is not ready")
