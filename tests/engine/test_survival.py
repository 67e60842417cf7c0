"""Waves to which something happens: what was measured stays true, is kept, and no process is left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from inference_benchmarker.wave.wave import Wave
from tests.bench import NS, ROOT, Bench, Finished, factories, ids

pytestmark = pytest.mark.process
GONE_S = 1.0  # what may be missing after a kill: reports are half a second apart
BUSY_S = 1.0  # what a busy machine may add to that


BLOCKING_FOR_EVER = factories("if payload == 11:\n    os.nice(19)\n    while True:\n        pass")


def test_a_blocked_worker_is_ended_when_it_is_overdue(bench: Bench) -> None:
    """Stands first, as it takes longest: the patience is ten seconds."""
    with bench.endpoint(service="none") as endpoint:
        flags = ("--client-rps", 20, "--obs-time", 1, "--workers", 2, "--drain-timeout", "0.1")
        wave = bench.run(*flags, factories=BLOCKING_FOR_EVER, target=endpoint)
        arrivals = ids(endpoint.arrivals())
    wave.check_books("20")
    assert "Worker 1 does not answer; ending it." in wave.err
    assert wave.summary["lost_workers"] == [1]
    assert sorted(arrivals) == sorted([*range(0, 20, 2), *range(1, 11, 2)])
    assert wave.ledger["workers"][0]["ok"] == 10
    assert wave.ledger["workers"][1]["ok"] + wave.ledger["workers"][1]["lost"] <= 10
    assert wave.ledger["scheduled"] == 20
    assert {"worker_lost"} <= wave.invalid
    assert wave.code == 3


def test_a_killed_worker_loses_its_stripe_from_its_last_report_on(bench: Bench) -> None:
    with bench.endpoint(servers=50, service_s=0.05) as endpoint:
        running = bench.start("--client-rps", 100, "--obs-time", 4, "--workers", 2, target=endpoint)
        running.wait_for_arrivals(endpoint, 150)
        victim = running.workers()[1]
        victim.kill()
        killed = time.monotonic_ns()
        wave = running.finish(timeout=30)
        log = endpoint.arrivals()
    wave.check_books("100")
    (lost,) = wave.summary["lost_workers"]
    books = wave.summary["ledger"]["workers"]
    assert wave.ledger["scheduled"] == 400
    for number, worker in enumerate(books):
        assert worker["scheduled"] == len(range(number, 400, 2))
        assert (worker["lost"] > 0) == (number == lost)
    assert wave.ledger["lost"] == 400 - wave.ledger["sent"]
    arrived = set(ids(log))
    assert {row["index"] for row in wave.rows} <= arrived
    assert {index for index in range(400) if index % 2 != lost} == {i for i in arrived if i % 2 != lost}
    check_that_what_was_reported_is_there(wave, log_before(log, killed, 2, lost))
    assert wave.invalid == {"worker_lost", "rate_missed"}
    assert wave.code == 3
    assert "1 of 2 workers" in wave.out
    assert Wave.load(wave.folder).to_json() == wave.summary


def log_before(log: dict[str, list[int]], killed_ns: int, workers: int = 1, worker: int = 0) -> set[int]:
    """Arrivals of a worker that were answered so long before a kill that they must have been reported."""
    bound = killed_ns - int((GONE_S + BUSY_S) * NS)
    answered = zip(ids(log), log["answered_ns"], strict=True)
    return {i for i, at in answered if i % workers == worker and at is not None and at < bound}


def check_that_what_was_reported_is_there(wave: Finished, reported: set[int]) -> None:
    """No less than what must have been reported."""
    assert reported <= {row["index"] for row in wave.rows}


def test_a_killed_primary_ends_the_wave_with_what_was_reported(bench: Bench) -> None:
    with bench.endpoint(servers=50, service_s=0.05) as endpoint:
        running = bench.start("--client-rps", 50, "--obs-time", 60, "--workers", 2, target=endpoint)
        running.wait_for_arrivals(endpoint, 150)
        running.primary().kill()
        killed = time.monotonic_ns()
        wave = running.finish(timeout=20)
        log = endpoint.arrivals()
    wave.check_books("50")
    assert {row["index"] for row in wave.rows} <= set(ids(log))
    assert log_before(log, killed)
    check_that_what_was_reported_is_there(wave, log_before(log, killed))
    assert wave.ledger["scheduled"] == 3000
    assert {"primary_lost", "worker_lost"} <= wave.invalid
    assert wave.code == 3


@pytest.mark.parametrize("arrivals", [pytest.param(1, marks=pytest.mark.slow), 150])
def test_a_wave_that_was_killed_as_a_whole_is_finalised_by_the_next_command(bench: Bench, arrivals: int) -> None:
    with bench.endpoint(servers=50, service_s=0.05) as endpoint:
        running = bench.start("--client-rps", 50, "--obs-time", 60, "--workers", 2, target=endpoint)
        running.wait_for_arrivals(endpoint, arrivals)
        (run_dir,) = running.run_dirs()
        still_running = bench.report(run_dir)
        running.kill_all()
        killed = time.monotonic_ns()
        running.finish(timeout=10)
        log = endpoint.arrivals()
    assert still_running.code == 2
    assert "its wave is still running" in still_running.err
    assert not (run_dir / "requests.parquet").exists()
    wave = bench.report(run_dir)
    wave.check_books("50")
    assert {row["index"] for row in wave.rows} <= set(ids(log))
    check_that_what_was_reported_is_there(wave, log_before(log, killed))
    assert wave.code == 3
    assert {"primary_lost", "worker_lost"} <= wave.invalid
    assert not (run_dir / "spool.bin").exists()
    again = bench.report(run_dir)
    assert (again.code, again.out) == (wave.code, wave.out)


def test_a_killed_command_takes_its_processes_along(bench: Bench) -> None:
    with bench.endpoint(servers=50, service_s=0.05) as endpoint:
        running = bench.start("--client-rps", 50, "--obs-time", 60, "--workers", 2, target=endpoint)
        running.wait_for_arrivals(endpoint, 100)
        running.signal(signal.SIGKILL)
        killed = time.monotonic_ns()
        running.finish(timeout=10)  # sees that nothing is left
        log = endpoint.arrivals()
        time.sleep(0.3)
        assert len(endpoint.arrivals()["id"]) == len(log["id"])
    (run_dir,) = running.run_dirs()
    wave = bench.report(run_dir)
    wave.check_books("50")
    check_that_what_was_reported_is_there(wave, log_before(log, killed))
    assert {"worker_lost", "rate_missed"} <= wave.invalid
    assert wave.ledger["scheduled"] == 3000
    assert (wave.code, wave.summary["interrupted"]) == (3, False)


@pytest.mark.parametrize(
    ("number", "load"),
    [(signal.SIGINT, ("--client-rps", "50", "--workers", "2")), (signal.SIGTERM, ("--concurrency", "6"))],
)
def test_one_ctrl_c_stops_drains_and_reports(bench: Bench, number: signal.Signals, load: tuple[str, ...]) -> None:
    with bench.endpoint(servers=50, service_s=0.3) as endpoint:
        running = bench.start(*load, "--obs-time", 60, target=endpoint)
        running.wait_for_arrivals(endpoint, 30)
        running.signal(number)
        wave = running.finish(timeout=30)
        log = endpoint.arrivals()
    wave.check_books()
    assert sorted(ids(log)) == [row["index"] for row in wave.rows]
    assert wave.ledger["sent"] == wave.ledger["ok"] == len(log["id"])
    assert wave.ledger["lost"] == wave.ledger["abandoned"] == 0
    stopped = wave.summary["window"]["stopped_at_s"]
    assert 0 < stopped < 30
    if load[0] == "--client-rps":
        assert [row["index"] for row in wave.rows] == list(range(wave.ledger["scheduled"]))
        assert wave.ledger["scheduled"] == sum(index / 50 < stopped for index in range(3000))
    assert not wave.invalid
    assert wave.code == 130
    assert "Stopping: waiting for requests in flight." in wave.err
    assert wave.out.splitlines()[2] == "RESULTS – InferenceBenchmarker"
    assert re.search(r"^(IN)?VALID \(interrupted\b", wave.out, re.MULTILINE)  # a busy machine adds its part
    assert bench.report(wave.folder).code == 130


def test_a_second_ctrl_c_ends_blocked_workers_as_well(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(
            *("--client-rps", 20, "--obs-time", 60, "--workers", 2), factories=BLOCKING_FOR_EVER, target=endpoint
        )
        running.wait_for_arrivals(endpoint, 15)
        running.signal(signal.SIGINT)
        running.wait_for(lambda: "Stopping" in running.err, "the first Ctrl-C was heard")
        running.signal(signal.SIGINT)
        wave = running.finish(timeout=20)
    wave.check_books("20")
    assert wave.summary["lost_workers"] == [1]
    assert wave.code == 130


def test_a_ctrl_c_that_a_blocked_worker_hears_late_keeps_the_books_balanced(bench: Bench) -> None:
    """On waking up, the worker sends what has become due in the meantime before it hears of the stop."""
    blocking = "if payload == 20:\n    gevent.monkey.get_original('time', 'sleep')(1.5)"
    with bench.endpoint(service="none") as endpoint:
        running = bench.start(
            *("--client-rps", 50, "--obs-time", 60, "--workers", 2),
            factories=factories(blocking, "import gevent.monkey"),
            target=endpoint,
        )
        running.wait_for(lambda: 21 in ids(endpoint.arrivals()), "worker 0 is blocked")
        running.signal(signal.SIGINT)
        wave = running.finish(timeout=40)
        log = endpoint.arrivals()
    wave.check_books("50")
    assert wave.ledger["sent"] == wave.ledger["ok"] == len(log["id"])
    assert not wave.invalid
    assert wave.code == 130


HELD_UP = factories(
    "pass",
    """
import __main__
import gevent.monkey

send_ready = __main__.Worker._send_ready


def send_ready_and_stand_still(worker):
    send_ready(worker)
    open("ready", "w").close()
    gevent.monkey.get_original("time", "sleep")(2)


__main__.Worker._send_ready = send_ready_and_stand_still
""",
)


def test_a_ctrl_c_between_the_last_ready_worker_and_the_start_is_not_forgotten(bench: Bench) -> None:
    running = bench.start("--client-rps", 50, "--obs-time", 60, factories=HELD_UP)
    running.wait_for((running.folder / "ready").exists, "the worker is ready")
    time.sleep(0.5)
    running.signal(signal.SIGINT)
    ended = running.finish(timeout=20)
    assert (ended.code, ended.out) == (130, "")
    assert running.run_dirs() == []


def test_a_ctrl_c_at_any_moment_ends_the_wave_in_good_order(bench: Bench) -> None:
    """The moments lie around the start, where workers are gathered, started and wait for the first arrival."""
    with bench.endpoint(service="none") as endpoint:
        started = [bench.start("--client-rps", 50, "--obs-time", 60, "--quiet", target=endpoint) for _ in range(3)]
        for running, delay_s in zip(started, (0.1, 0.6, 1.1), strict=True):
            running.wait_for(running.workers, "a worker")
            time.sleep(delay_s)
            running.signal(signal.SIGINT)
        for running in started:
            ended = running.finish(timeout=30)
            assert ended.code == 130, ended.err
            assert "Traceback" not in ended.err
            if ended.run_dir is not None:
                ended.check_books("50")
                assert "ledger_broken" not in ended.findings
                assert ended.ledger["sent"] == ended.ledger["ok"]


def test_who_started_us_may_have_signals_ignored(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        running = bench.start("--client-rps", 50, "--obs-time", 2, target=endpoint, before="trap '' HUP")
        running.wait_for_arrivals(endpoint, 10)
        running.signal(signal.SIGHUP)
        wave = running.finish()
    assert wave.ledger["ok"] == 100
    assert wave.exit_code == 0


@pytest.mark.slow
def test_an_endpoint_that_closes_in_mid_answer_fails_those_requests(bench: Bench) -> None:
    with bench.endpoint(service="none", close_share=0.5) as endpoint:
        wave = bench.run("--client-rps", 40, "--obs-time", 1, target=endpoint)
        log = endpoint.arrivals()
    wave.check_books("40")
    assert len(log["id"]) == 40
    closed = {i for i, status in zip(ids(log), log["status"], strict=True) if status == 0}
    assert {row["index"] for row in wave.rows if row["outcome"] == "failed"} == closed
    assert 0 < len(closed) < 40
    assert wave.exit_code == 1


def test_an_endpoint_that_stalls_for_ever_is_left_when_the_drain_ends(bench: Bench) -> None:
    with bench.endpoint(servers=50, service_s=0.01) as endpoint:
        running = bench.start("--concurrency", 4, "--obs-time", 1, "--drain-timeout", 1, target=endpoint)
        running.wait_for_arrivals(endpoint, 10)
        endpoint.stall(1000)
        wave = running.finish(timeout=30)
        log = endpoint.arrivals()
    wave.check_books()
    unanswered = {i for i, at in zip(ids(log), log["answered_ns"], strict=True) if at is None}
    assert {row["index"] for row in wave.rows if row["outcome"] == "abandoned"} == unanswered
    assert len(unanswered) == wave.ledger["abandoned"] > 0
    assert wave.ledger["sent"] == len(log["id"])
    assert not wave.invalid


def test_an_invoke_that_blocks_the_loop_makes_the_lag_show_and_loses_nothing(bench: Bench) -> None:
    invoke = "if payload == 20:\n    gevent.monkey.get_original('time', 'sleep')(0.2)"
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 50, "--obs-time", 1),
            factories=factories(invoke, "import gevent.monkey"),
            target=endpoint,
        )
        assert sorted(ids(endpoint.arrivals())) == list(range(50))
    wave.check_books("50")
    assert wave.ledger["ok"] == 50
    blocked = [row["sent"] - row["due"] for row in wave.rows if 20 < row["index"] < 29]
    assert all(later >= 0.2 * NS - (n + 1) * NS / 50 for n, later in enumerate(blocked)), "due while the loop stood"
    assert "schedule_lag" in {found["code"] for found in wave.summary["findings"] if found["severity"] == "invalid"}
    assert wave.code == 3


@pytest.mark.slow
def test_an_invoke_that_never_returns_is_abandoned(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 1, "--drain-timeout", "0.5"),
            factories=factories("if payload % 2:\n    gevent.sleep(1e6)"),
            target=endpoint,
        )
        assert sorted(ids(endpoint.arrivals())) == list(range(0, 40, 2))
    wave.check_books("40")
    assert wave.outcomes() == {"ok": 20, "abandoned": 20}
    assert wave.exit_code == 1


def test_an_invoke_that_ends_its_process_loses_that_worker(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 2, "--workers", 2),
            factories=factories("if payload == 41:\n    os._exit(0)"),
            target=endpoint,
        )
        arrived = set(ids(endpoint.arrivals()))
    wave.check_books("40")
    assert arrived == {*range(0, 80, 2), *range(1, 41, 2)}
    assert wave.summary["lost_workers"] == [1]
    assert wave.ledger["workers"][0]["ok"] == 40
    assert wave.ledger["lost"] == 40 - wave.ledger["workers"][1]["sent"] > 0
    assert wave.code == 3


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["import", "factory"])
def test_a_worker_that_ends_before_it_is_ready_is_bad_input(bench: Bench, moment: str) -> None:
    text = factories("pass", "os._exit(7)")
    if moment == "factory":
        text = factories("pass").replace("def invoke_factory():", "def invoke_factory():\n    os._exit(7)")
    running = bench.start("--client-rps", 40, "--obs-time", 2, factories=text)
    ended = running.finish(timeout=30)
    assert ended.code == 2
    assert "ended before it was ready" in ended.err
    assert "Traceback" not in ended.err


ENDS_WHEN_IT_STARTS = factories(
    "pass",
    """
import gc, sys


def end(phase, facts):
    if sys._getframe(1).f_code.co_name == "_arm":
        os._exit(7)


try:
    os.open("first", os.O_CREAT | os.O_EXCL)
    gc.callbacks.append(end)
except FileExistsError:
    pass  # another worker is the one
""",
)
BLOCKS_WHEN_IT_STARTS = ENDS_WHEN_IT_STARTS.replace("os._exit(7)", "gevent.monkey.get_original('time', 'sleep')(60)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENDS_WHEN_IT_STARTS, "ended before it acknowledged the start"),
        pytest.param(BLOCKS_WHEN_IT_STARTS, "did not acknowledge the start", marks=pytest.mark.slow),
    ],
    ids=("ends", "blocks"),
)
def test_where_one_worker_does_not_acknowledge_the_start_none_fires(bench: Bench, text: str, expected: str) -> None:
    with bench.endpoint(service="none") as endpoint:
        ended = bench.run("--client-rps", 40, "--obs-time", 2, "--workers", 3, factories=text, target=endpoint)
        assert ids(endpoint.arrivals()) == []
    assert ended.code == 3
    (line,) = [line for line in ended.err.splitlines() if line.startswith("benchmark: ")]
    assert expected in line
    assert "no load was sent" in line
    assert "Traceback" not in ended.err


def test_with_few_descriptors_requests_are_dropped_and_not_failed(bench: Bench) -> None:
    with bench.endpoint(servers=500, service_s=1.0) as endpoint:
        wave = bench.run("--client-rps", 100, "--obs-time", 1, target=endpoint, before="ulimit -n 64")
        log = endpoint.arrivals()
    wave.check_books("100")
    assert wave.ledger["sent"] == wave.ledger["ok"] == len(log["id"]) > 5
    assert wave.ledger["dropped"] == 100 - wave.ledger["sent"] > 0
    assert wave.invalid == {"dropped_arrivals", "rate_missed"}
    assert wave.code == 3


def test_too_few_descriptors_for_the_workers_are_said_before_any_starts(bench: Bench) -> None:
    running = bench.start("--client-rps", 100, "--obs-time", 1, "--workers", 30, before="ulimit -n 64")
    ended = running.finish()
    assert ended.code == 2
    assert "--workers 30 needs" in ended.err
    assert running.run_dirs() == []


def test_where_no_place_is_left_at_all_the_wave_ends_and_says_so(bench: Bench) -> None:
    """Not even one batch fits below the limit, neither in the run directory nor elsewhere."""
    running = bench.start(
        *("--client-rps", 2000, "--obs-time", 60, "--workers", 2),
        factories=factories("return None"),
        before=f"export TMPDIR=$PWD; ulimit -f {16 * 1024 // 512}",
    )
    wave = running.finish(timeout=40)  # not the time of the drain
    assert list(running.folder.glob("benchmark_spool_*")) == []
    assert "The run directory cannot be written (File too large); stopping the wave." in wave.err
    assert "Raise the limit on a file's size, as by `ulimit -f unlimited`" in wave.out
    assert "Free some space" not in wave.out
    assert {"disk_full", "worker_lost"} <= wave.invalid
    wave.check_books()
    assert wave.ledger["lost"] > 0
    assert wave.code == 3


BROKEN_SPOOL = """
import os, sys
from pathlib import Path
from inference_benchmarker.wave.spool.spool import SpoolReader, SpoolWriter

writer = SpoolWriter(Path("spool.bin"))
writer.batch(b"first")
refused = 0
for data in (b"x" * 5000, b"second", b"x" * 5000, b"third"):
    try:
        writer.batch(data)
    except OSError:
        refused += 1
writer.close()
frames = [data for path in (Path("spool.bin"), writer.path) for _, data in SpoolReader(path).frames()]
os.unlink(writer.path)
print(refused, *(frame.decode() for frame in frames))
"""


def test_what_follows_a_frame_that_could_not_be_written_can_be_read(bench: Bench) -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", sys.executable, "-c", BROKEN_SPOOL],
        cwd=bench.folder(),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2", "first", "second", "third"]


def test_a_factories_file_may_print_spawn_and_import_what_it_likes(bench: Bench) -> None:
    before = """
import sys

print("printed to standard output", flush=True)
print("printed to standard error", file=sys.stderr)
assert sys.stdin.read() == ""
sys.stdin.close()
boto3.Session()


def leave():
    gevent.sleep(0.3)
    raise SystemExit("from a greenlet")


def stay():
    while True:
        gevent.sleep(0.05)


def break_():
    raise ValueError("in a greenlet")


for function in (leave, stay, break_):
    gevent.spawn(function)
gevent.spawn_later(0.2, sys.exit, 5)
"""
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run(
            *("--client-rps", 40, "--obs-time", 1, "--json"),
            factories="import boto3\n" + factories("print('invoked')\ngevent.spawn(break_)", before),
            target=endpoint,
        )
        assert sorted(ids(endpoint.arrivals())) == list(range(40))
    assert wave.out.startswith("{\n")
    wave.check_books("40")
    assert wave.ledger["ok"] == 40
    assert wave.exit_code == 0
    text = (wave.folder / "logs" / "worker_0.log").read_text()
    for expected in ("printed to standard output", "printed to standard error", "invoked", "in a greenlet"):
        assert expected in text


@pytest.mark.slow
def test_sixty_workers_start_and_count_exactly(bench: Bench) -> None:
    with bench.endpoint(service="none") as endpoint:
        wave = bench.run("--client-rps", 60, "--obs-time", 2, "--workers", 60, target=endpoint)
        log = endpoint.arrivals()
    wave.check_books("60")
    assert sorted(ids(log)) == list(range(120))
    assert [worker["ok"] for worker in wave.ledger["workers"]] == [2] * 60
    assert not wave.invalid
