"""``--ui``: the page shows the wave, stops it, and refuses everything else."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Page:
    """The page of a running wave."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Status and text of an answer."""
        try:
            with urlopen(Request(self.url + path, method=method, headers=headers), timeout=20) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def stats(self) -> dict[str, Any]:
        """What the page shows."""
        found: dict[str, Any] = json.loads(self.ask("/stats/requests")[1])
        return found


@pytest.fixture
def page(command: list[str], tmp_path: Path) -> Iterator[Page]:
    """A long wave against the embedded endpoint, whose requests are all in flight at once."""
    factories = tmp_path / "endless.py"
    factories.write_text(
        "import gevent\n"
        "def invoke_factory():\n"
        "    return lambda payload: gevent.sleep(60)\n"
        "def payload_factory():\n"
        '    return {"pre_computed": True, "input": [1]}\n'
    )
    flags = ("--factories-file", str(factories), "--client-rps", "20", "--obs-time", "100", "--drain-timeout", "0")
    process = subprocess.Popen(
        [*command, *flags, "--ui", "--output-dir", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+", next(line for line in process.stderr if "page" in line))
        assert address is not None
        yield Page(process, address[0])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_the_page_shows_the_wave_refuses_changes_and_stops_it_once(page: Page) -> None:
    assert "Locust" in page.ask("/")[1]
    while not (shown := page.stats())["user_count"] or not shown["worker_count"]:  # Locust's part is two seconds old
        time.sleep(0.1)
    rows = shown["extended_stats"][0]["data"]
    assert shown["user_count"] == sum(row["in_flight"] for row in rows)
    assert shown["worker_count"] == 1

    for path in ("/swarm", "/stats/reset", "/user"):
        assert page.ask(path, "POST")[0] == 409, path
    assert page.ask("/stats/requests", Origin="http://elsewhere.example")[0] == 403
    assert page.ask("/stop", "POST", Origin="http://elsewhere.example")[0] == 403
    check_that_only_its_own_names_and_pages_are_answered(page)
    assert page.process.poll() is None

    listening = [
        connection.laddr.ip
        for child in psutil.Process(page.process.pid).children(recursive=True)
        for connection in child.net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert set(listening) == {"127.0.0.1"}

    assert page.ask("/stop", "POST", Origin=page.url)[0] == 200
    output, _ = page.process.communicate(timeout=60)
    assert page.process.returncode == 130
    assert output.startswith("FAILED, interrupted: every request was abandoned")
    assert "the measurement is VALID" in " ".join(output.partition("\n\n")[0].split())  # wrapped at 80 columns


def check_that_only_its_own_names_and_pages_are_answered(page: Page) -> None:
    """A name that leads to this address belongs to whoever owns the name."""
    port = page.url.rpartition(":")[2]
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "a@127.0.0.1", "10.0.0.1", "[::"):
        for path, method in (("/", "GET"), ("/stats/requests", "GET"), ("/stop", "POST"), ("/no/such/path", "GET")):
            assert page.ask(path, method, Host=f"{host}:{port}")[0] == 403, (host, path)
        assert page.ask("/stop", "POST", Host=f"{host}:{port}", Origin=f"http://{host}:{port}")[0] == 403, host
    for host in ("127.0.0.1", "127.8.9.10", "localhost", "LOCALHOST", "[::1]"):
        for name in (host, f"{host}:8089"):
            assert page.ask("/stats/requests", Host=name, Origin=f"http://{name}")[0] == 200, name
    for site in ("cross-site", "same-site"):
        assert page.ask("/stop", "POST", **{"Sec-Fetch-Site": site})[0] == 403
        assert page.ask("/", **{"Sec-Fetch-Site": site})[0] == 200
