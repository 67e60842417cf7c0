"""The page that Prometheus reads: its form, its readers, and what is asked of a port."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.destination import PageAt
from inference_benchmarker.export.exporter import Exporter
from inference_benchmarker.export.page import MOST_READERS, Page, exposition
from inference_benchmarker.records.label_counters import ValueCounts
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.verdict.verdict import Verdict
from tests.exported import count_of, figures, read_page, sample, samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.export.figures import Count


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page(PageAt(port=0), Exporter())
    yield made
    made.close()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
        ("localhost", 200),
        ("127.0.0.1:9", 200),
        ("[::1]:9", 200),
    ],
)
def test_a_page_of_loopback_answers_no_other_name(page: Page, host: str, status: int) -> None:
    for path in ("/metrics", "/dashboard.json", "/"):
        with closing(http.client.HTTPConnection(urlsplit(page.url).netloc, timeout=10)) as connection:
            connection.request("GET", path, headers={"Host": host})
            assert connection.getresponse().status == status


def everything() -> Count:
    """One of each metric."""
    count = count_of([0.02, 0.5, 2000.0], {"HttpError 503": 2})
    for name in ("response_time", "lag", "ttft", "itl"):
        count.cell.times[name].merge(count.cell.times["latency"])
    for label in ('a "b"\\\n', "ü"):
        count.named.labels[label].ok = 1
        count.named.labels[label].times["latency"].update(count.cell.times["latency"].counts)
    count.named.metrics["hits"].merge(ValueCounts(2, -1e-9, -1.0, 1.0))
    return count


def test_promtool_accepts_every_metric() -> None:
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("needs the program promtool")
    exporter = Exporter()
    verdict = Verdict((Finding("schedule_lag", "invalid", "9 ms", "5 ms", "Less."),))
    for each in (figures(everything()), figures(everything(), verdict=verdict)):
        exporter.take(each)
        text = exposition(exporter.metrics)
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
        assert (done.returncode, done.stderr.decode()) == (0, "")


def test_a_reader_gets_the_newest_figures(page: Page) -> None:
    assert sample(samples(read_page(page.url)), "requests_sent_total") is None
    page.exporter.take(figures(count_of([0.1] * 3)))
    assert sample(samples(read_page(page.url)), "requests_sent_total") == 3
    with urlopen(page.url, timeout=30) as answer:  # noqa: S310 - our own
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_the_dashboard_and_a_front_page_are_there_and_nothing_else(page: Page) -> None:
    base = page.url.removesuffix("metrics")
    assert json.loads(read_page(base + "dashboard.json"))["title"] == "InferenceBenchmarker"
    assert 'href="metrics"' in read_page(base)
    for path in ("nothing", "metrics/../../etc/passwd"):
        with pytest.raises(HTTPError) as refused:
            read_page(base + path)
        assert refused.value.code == 404


def test_it_is_known_whether_the_last_figures_were_read(page: Page) -> None:
    read_page(page.url)
    page.exporter.take(figures(count_of([0.1])))
    assert not page.wait_until_read(0)
    reader = threading.Timer(0.1, read_page, [page.url])
    reader.start()
    assert page.wait_until_read(60)
    reader.join()


def test_a_line_without_end_is_refused(page: Page) -> None:
    with closing(connect(page)) as sock:
        sock.sendall(b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n")
        assert b" 414 " in sock.recv(1000)
    assert "build_info" in read_page(page.url)


def test_readers_who_stand_still_keep_nobody_out(page: Page) -> None:
    """They say nothing, or take nothing; the oldest of too many is put out."""
    still = [connect(page) for _ in range(3 * MOST_READERS)]
    assert "build_info" in read_page(page.url)
    deadline = time.monotonic() + 60
    while threading.active_count() > MOST_READERS + 20 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert still[0].recv(10) == b""
    for sock in still:
        sock.close()


def connect(page: Page) -> socket.socket:
    host, port = page.url.split("/")[2].split(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_a_page_is_on_loopback_unless_reported() -> None:
    made = Page(PageAt(port=0), Exporter())
    assert made.is_loopback
    made.close()
    made = Page(PageAt("0.0.0.0", 0), Exporter())
    assert not made.is_loopback
    assert "build_info" in read_page(made.url.replace("0.0.0.0", "127.0.0.1"))
    made.close()


def test_a_port_that_is_taken_ends_the_command_before_the_wave(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BenchmarkError, match="cannot listen there"):
            Page(PageAt(port=port), Exporter())
        assert main(["--demo", "--export", f"prometheus:{port}"]) == 2
    stored = capsys.readouterr()
    assert f"prometheus:127.0.0.1:{port}: cannot listen there" in stored.err
    assert "prometheus:0" in stored.err
    assert "Sending" not in stored.err
