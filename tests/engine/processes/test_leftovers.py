"""What a user's code starts in a worker: it sends nothing of the wave's, and nothing of it outlives the wave."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from inference_benchmarker.engine.processes.leftovers import MARK, end_leftovers, new_mark
from tests.bench import factories

if TYPE_CHECKING:
    from tests.bench import Bench

SENDS_ON = """
import multiprocessing
import subprocess
import sys

SENDER = '''
import http.client, sys, time
for number in range(600):
    connection = http.client.HTTPConnection(sys.argv[1])
    connection.request("POST", "/invocations", b"{}", {"X-Request-Id": "left-" + sys.argv[2]})
    connection.getresponse().read()
    open("sent-" + sys.argv[2], "w").close()
    time.sleep(0.1)
'''

def sit():
    for _ in range(600):
        time.sleep(0.1)

def sender(name, **options):
    place = os.environ["TARGET"].removeprefix("http://")
    subprocess.Popen([sys.executable, "-c", SENDER, place, name], **options)
"""
FORKING = """
if payload == 3:
    sender("child")
if payload == 5:
    sender("session", start_new_session=True)
if payload == 7:
    sender("nameless", env={})
if payload == 9:
    multiprocessing.get_context("fork").Process(target=sit).start()
if payload == 11 and os.fork() == 0:
    sit()
if payload == 20:
    while not all(os.path.exists("sent-" + name) for name in ("child", "session", "nameless")):
        gevent.sleep(0.05)
"""


@pytest.mark.process
def test_what_invoke_starts_doubles_no_arrival_and_ends_with_the_wave(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(
            *("--client-rps", 10, "--obs-time", 3, "--drain-timeout", 30),
            factories=factories(FORKING, SENDS_ON),
            target=endpoint,
        )
        wave = running.finish(timeout=60)
        time.sleep(0.3)
        reported = len(endpoint.arrivals()["id"])
        time.sleep(0.3)
        log = endpoint.arrivals()
    assert len(log["id"]) == reported
    own = [name for name in log["id"] if not str(name).startswith("left-")]
    assert sorted(map(int, own)) == list(range(30))
    assert {str(name) for name in log["id"]} - set(map(str, own)) == {"left-child", "left-session", "left-nameless"}
    assert wave.ledger["sent"] == wave.ledger["ok"] == 30
    assert not running.alive()
    assert len(wave.summary["left_behind"]) == 5
    (finding,) = [each for each in wave.summary["findings"] if each["code"] == "processes_left"]
    assert finding["measured"].startswith("5 processes outlived the wave")


def test_only_what_carries_the_mark_or_is_of_a_session_is_ended() -> None:
    mark = new_mark()
    line = [sys.executable, "-c", "import time; time.sleep(60)"]
    marked = subprocess.Popen(line, env={MARK: mark}, start_new_session=True)
    of_session = subprocess.Popen(line, env={}, start_new_session=True)
    other = subprocess.Popen(line, env={MARK: new_mark()}, start_new_session=True)
    try:
        assert len(end_leftovers(mark, {of_session.pid})) == 2
        assert other.poll() is None
        assert [psutil.pid_exists(process.pid) and process.poll() is None for process in (marked, of_session)] == [
            False
        ] * 2
    finally:
        for process in (marked, of_session, other):
            process.kill()
            process.wait()


def test_who_ends_by_itself_is_not_reported() -> None:
    mark = new_mark()
    soon = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"], env={MARK: mark})
    try:
        assert end_leftovers(mark, ()) == ()
    finally:
        soon.wait()
