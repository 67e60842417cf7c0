"""The server that the performance programs judge by: it stamps each request once, under the number it carries."""

from __future__ import annotations

import shutil
from http.client import HTTPConnection

import pytest

from tests.performance.stamp_server import StampServer

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def test_every_request_is_stamped_once_and_answered_after_its_delay() -> None:
    with StampServer(delay_ms=2) as server:
        connection = HTTPConnection(server.url.removeprefix("http://"), timeout=20)
        for number in (7, 8, 9):
            connection.request("POST", "/invocations", str(number))
            assert connection.getresponse().read()
        connection.close()
        log = server.log()
    assert log["id"].tolist() == [7, 8, 9]
    assert (log["answered_ns"] - log["arrival_ns"]).min() >= 2_000_000
    assert sorted(log["arrival_ns"]) == log["arrival_ns"].tolist()
