"""Waves with a known culprit: who is blamed, for what, and by which name. Each is a real wave of real processes.

A recorded wave of each slow one's kind is judged in the suite.
"""

from __future__ import annotations

import errno
import re
import socket
from typing import TYPE_CHECKING

import pytest

from tests.bench import OF_A_BUSY_MACHINE
from tests.culprits.factories import BOTO3
from tests.mentions import mentions

if TYPE_CHECKING:
    from tests.bench import Bench, Finished

pytestmark = pytest.mark.process

LINE = "⚠️ CLIENT BOTTLENECK detected: "


def finding(wave: Finished, code: str) -> dict[str, str]:
    """The finding of this code, which must be there."""
    found = {finding["code"]: finding for finding in wave.summary["findings"]}
    assert code in found, (sorted(found), wave.out)
    return dict(found[code])


def blames_the_client(wave: Finished, code: str) -> dict[str, str]:
    """The finding by which the client is blamed, in the report's line too."""
    found = finding(wave, code)
    assert wave.summary["limited_by"] == "client"
    value, semicolon, more = found["measured"].partition("; ")
    assert f"{LINE}{code}, {value} (limit {found['limit']}){semicolon}{more}. {found['advice']}" in wave.out
    assert "client-limited)" in wave.out.splitlines()[-2] or "client-limited," in wave.out.splitlines()[-2]
    assert "server_limited" not in {other["code"] for other in wave.summary["findings"]}
    return found


# Spins on the CPU's clock: on the wall's, a busy machine would do part of it.
SPIN = """
from time import thread_time


def spin(seconds):
    end = thread_time() + seconds
    while thread_time() < end:
        pass


def invoke_factory():
    def invoke(payload):
        spin(0.003)

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [None]}
"""


def test_an_invoke_that_computes_too_long_is_named(bench: Bench) -> None:
    wave = bench.run("--client-rps", 500, "--obs-time", 2, factories=SPIN)
    blames_the_client(wave, "schedule_lag")
    blocked = blames_the_client(wave, "loop_blocked")
    assert "blocked by spin (factories.py:5)" in blocked["measured"]
    block = wave.summary["client"]["workers"][0]["block"]
    assert block["part"] == "invoke"
    assert block["stack"][-1].startswith("spin (factories.py:")
    assert block["stack"][-2].startswith("invoke_factory.<locals>.invoke (factories.py:")
    assert (wave.code, wave.summary["verdict"]) == (3, "INVALID")


@pytest.mark.slow
def test_in_the_closed_loop_too(bench: Bench) -> None:
    """It has no schedule to be late for: without this, the client's own work would pass for the endpoint's latency."""
    with bench.endpoint(servers=50, service_s=0.001) as endpoint:
        factories = SPIN.replace("def invoke(payload):", "def invoke(payload):\n        post(0)")
        wave = bench.run(
            "--concurrency", 20, "--obs-time", 2, factories=f"from sender import post\n{factories}", target=endpoint
        )
    blocked = blames_the_client(wave, "loop_blocked")
    assert "spin (factories.py:" in blocked["measured"]
    assert (wave.code, blocked["severity"]) == (3, "invalid")


@pytest.mark.slow
def test_a_call_that_gevent_cannot_switch_is_named(bench: Bench) -> None:
    """It takes no CPU: only the wall clock tells, and the frame that waits."""
    factories = SPIN.replace(
        "from time import thread_time",
        "from gevent.monkey import get_original\n\nsleep = get_original('time', 'sleep')",
    ).replace("end = thread_time() + seconds\n    while thread_time() < end:\n        pass", "sleep(0.02)")
    wave = bench.run("--client-rps", 100, "--obs-time", 2, factories=factories)
    assert "blocked by spin (factories.py:7)" in blames_the_client(wave, "loop_blocked")["measured"]
    assert wave.summary["client"]["workers"][0]["cpu_share"] < 0.5


BUILD = """
from time import thread_time, sleep

from sender import post


def build():
    end = thread_time() + 0.005
    while thread_time() < end:
        pass
    return 0


def wait():
    sleep(0.005)
    return 0


def invoke_factory():
    return post


def payload_factory():
    return {"pre_computed": False, "input": build}
"""


@pytest.mark.slow
def test_building_payloads_is_named(bench: Bench) -> None:
    with bench.endpoint(servers=50) as endpoint:
        wave = bench.run("--client-rps", 300, "--obs-time", 2, factories=BUILD, target=endpoint)
    late = blames_the_client(wave, "schedule_lag")
    assert late["advice"].startswith("Building a payload takes ")
    assert "payload building, build (factories.py:7)" in blames_the_client(wave, "loop_blocked")["measured"]
    assert "on average in build (factories.py:7)" in blames_the_client(wave, "payload_building")["measured"]


@pytest.mark.slow
def test_building_that_only_waits_is_named_though_nothing_is_late(bench: Bench) -> None:
    with bench.endpoint(servers=50) as endpoint:
        factories = BUILD.replace('"input": build', '"input": wait')
        wave = bench.run("--client-rps", 50, "--obs-time", 2, factories=factories, target=endpoint)
    assert blames_the_client(wave, "payload_building")["severity"] == "warning"


def test_payloads_that_cannot_be_built_are_not_the_endpoints_failures(bench: Bench) -> None:
    with bench.endpoint(servers=50) as endpoint:
        factories = BUILD.replace("sleep(0.005)", "raise LookupError").replace('"input": build', '"input": wait')
        wave = bench.run("--client-rps", 50, "--obs-time", 1, factories=factories, target=endpoint)
    failed = blames_the_client(wave, "payload_failed")
    assert (failed["severity"], wave.code) == ("invalid", 3)
    assert mentions(failed["measured"], "50 payloads", "PayloadError", "LookupError")


def test_a_pool_of_boto3_that_is_too_small_is_named(bench: Bench) -> None:
    with bench.endpoint(servers=100, service_s=0.2) as endpoint:
        factories = BOTO3.replace("ATTEMPTS", "1").replace("POOL", "10")
        wave = bench.run("--concurrency", 60, "--num-requests", 600, factories=factories, target=endpoint)
    pool = blames_the_client(wave, "connection_pool")
    used = wave.summary["client"]["workers"][0]["connections"]
    assert f"{used['discarded']:,} connections discarded" in pool["measured"]
    assert used["discarded"] >= 50
    assert used["opened"] >= used["discarded"], "each that was discarded had been opened"
    assert "max_pool_connections=60" in pool["advice"]
    log = next((wave.folder / "logs").glob("worker_0.log")).read_text()
    assert log.count("Connection pool is full") == 1


@pytest.mark.slow
def test_a_pool_that_makes_requests_wait_is_named(bench: Bench) -> None:
    """Nothing fails and nothing is logged; the wait for a connection just looks like latency."""
    factories = """
import os
from geventhttpclient import HTTPClient

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=2)


def invoke_factory():
    return lambda payload: bytes(client.post("/invocations", body=b"{}").read())


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""
    with bench.endpoint(servers=100, service_s=0.2) as endpoint:
        wave = bench.run("--concurrency", 20, "--num-requests", 40, factories=factories, target=endpoint)
    pool = blames_the_client(wave, "connection_pool")
    assert "waited for their pool's connections" in pool["measured"]
    assert wave.summary["client"]["workers"][0]["connections"]["opened"] == 2


@pytest.mark.slow
def test_a_pool_that_was_full_long_after_the_endpoint_fell_behind_is_a_consequence(bench: Bench) -> None:
    """Three hundred a second at two hundred: two seconds pass until so many wait there that the pool is full."""
    factories = """
import os
from geventhttpclient import HTTPClient

client = HTTPClient.from_url(os.environ["TARGET"], concurrency=200, network_timeout=60)


def invoke_factory():
    return lambda payload: bytes(client.post("/invocations", body=b"{}").read())


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""
    wave = _limited(bench, "--client-rps", 300, "--obs-time", 4, factories=factories, servers=4, service_s=0.02)
    assert wave.summary["limited_by"] == "server"
    assert re.search(r" in the first [12]", finding(wave, "server_limited")["measured"])
    assert finding(wave, "connection_pool")["advice"].startswith("A consequence: ")
    codes = list(wave.findings)
    assert codes.index("server_limited") < codes.index("connection_pool")
    assert LINE not in wave.out


def test_retries_that_boto3_hides_are_counted(bench: Bench) -> None:
    with bench.endpoint(servers=100, error_share=0.2, error_status=503, seed=4) as endpoint:
        factories = BOTO3.replace("ATTEMPTS", "5").replace("POOL", "100")
        wave = bench.run("--client-rps", 40, "--obs-time", 2, factories=factories, target=endpoint)
        arrived = len(endpoint.arrivals()["id"])
    assert wave.ledger["sent"] == 80
    assert arrived > 80
    retried = finding(wave, "hidden_retries")
    assert retried["measured"] == f"{arrived - 80} retries by the client library in 80 requests"
    assert "total_max_attempts" in retried["advice"]


@pytest.mark.slow
def test_descriptors_that_limit_the_requests_in_flight_are_named(bench: Bench) -> None:
    with bench.endpoint(servers=500, service_s=1) as endpoint:
        wave = bench.run("--client-rps", 150, "--obs-time", "1.5", target=endpoint, before="ulimit -n 128")
    few = blames_the_client(wave, "descriptors")
    (cap,) = wave.summary["client"]["caps"]
    assert few["measured"].startswith(f"file descriptors allowed {cap} requests in flight")
    assert few["limit"] == "128 open files"
    assert "dropped_arrivals" in wave.invalid


def test_requests_that_fail_for_want_of_descriptors_were_not_offered(bench: Bench) -> None:
    with bench.endpoint(servers=500, service_s=1) as endpoint:
        flags = ("--client-rps", 150, "--obs-time", "1.5", "--max-in-flight", 1000)
        wave = bench.run(*flags, target=endpoint, before="ulimit -n 128")
    failed = blames_the_client(wave, "descriptors")
    assert mentions(failed["measured"], f"{wave.ledger['failed']} requests")
    assert failed["severity"] == "invalid"


def test_connections_that_this_host_refuses_are_not_the_endpoints_failures(bench: Bench) -> None:
    """A broadcast address: TCP to it is refused by the kernel, whatever the routes."""
    with socket.socket() as probe:
        number = probe.connect_ex(("255.255.255.255", 9))
    wave = bench.run("--client-rps", 20, "--obs-time", 1, target="http://255.255.255.255:9")
    refused = blames_the_client(wave, "local_network")
    assert errno.errorcode[number] in refused["measured"]
    assert (refused["severity"], wave.code) == ("invalid", 3)


def test_an_endpoint_at_twice_its_capacity_is_named_unless_the_machine_is_busy(bench: Bench) -> None:
    with bench.endpoint() as endpoint:
        wave = bench.run("--client-rps", 400, "--obs-time", 3, target=endpoint)
    codes = {found["code"] for found in wave.summary["findings"]}
    assert "server_limited" in codes or codes & OF_A_BUSY_MACHINE
    assert (wave.summary["limited_by"] == "server") == ("server_limited" in codes)
    assert wave.exit_code == 0


PLAIN = ("--obs-time", 4, "--workers", 2)


def _wave_on_a_quiet_machine(bench: Bench, rate: int) -> Finished:
    """The wave, or the third of it: a machine that is busy with other things makes any client late."""
    for _ in range(3):
        with bench.endpoint() as endpoint:
            wave = bench.run("--client-rps", rate, *PLAIN, target=endpoint)
        if wave.summary["limited_by"] != "client":
            break
    return wave


@pytest.mark.slow
def test_an_endpoint_beyond_its_capacity_is_named(bench: Bench) -> None:
    wave = _wave_on_a_quiet_machine(bench, 400)
    assert wave.summary["limited_by"] == "server"
    limited = finding(wave, "server_limited")
    assert re.search(r"^.*/s of 400/s completed during the load \([45].*%\); latency grew from", limited["measured"])
    assert "at a schedule lag of p99" in limited["measured"]
    assert (wave.code, limited["severity"]) == (0, "warning")
    assert "VALID (server-limited)" in wave.out
    assert "CLIENT BOTTLENECK" not in wave.out
    assert 180 <= wave.summary["rates"]["completed"] <= 210


@pytest.mark.slow
def test_an_endpoint_within_its_capacity_has_no_finding(bench: Bench) -> None:
    wave = _wave_on_a_quiet_machine(bench, 150)
    assert (wave.summary["findings"], wave.summary["limited_by"]) == ([], None)
    assert (wave.code, wave.out.splitlines()[-2]) == (0, "VALID")
    assert "worker 0" not in wave.out


def _limited(bench: Bench, *flags: object, factories: str | None = None, **endpoint: float) -> Finished:
    """The wave, or the third of it, as above."""
    for _ in range(3):
        with bench.endpoint(**endpoint) as target:
            given = {} if factories is None else {"factories": factories}
            wave = bench.run(*flags, target=target, **given)
        if wave.findings and "schedule_lag" not in {found["code"] for found in wave.summary["findings"]}:
            break
    return wave


@pytest.mark.slow
def test_an_overloaded_endpoint_is_named_though_the_clients_pool_overflows(bench: Bench) -> None:
    """The pool is too small because so many requests wait at the endpoint; a larger one would change nothing."""
    factories = BOTO3.replace("ATTEMPTS", "1").replace("POOL", "10")
    wave = _limited(bench, "--client-rps", 100, "--obs-time", 4, factories=factories, servers=1, service_s=0.02)
    assert finding(wave, "connection_pool")["severity"] == "warning"
    assert wave.summary["limited_by"] == "server"
    assert "! connection_pool: " in wave.out
    assert LINE not in wave.out


@pytest.mark.slow
def test_an_endpoint_that_lets_requests_time_out_is_named(bench: Bench) -> None:
    wave = _limited(bench, "--client-rps", 100, "--obs-time", 3, "--request-timeout", "0.5", servers=1, service_s=0.02)
    assert "were refused or timed out (RequestTimeout)" in finding(wave, "server_limited")["measured"]


@pytest.mark.slow
def test_one_request_at_a_time_waits_for_nobody(bench: Bench) -> None:
    factories = f"from sender import post\n{SPIN}".replace("spin(0.003)", "post(0)\n        spin(0.02)")
    with bench.endpoint(servers=1, service_s=0.08) as endpoint:
        wave = bench.run("--concurrency", 1, "--obs-time", 3, factories=factories, target=endpoint)
    assert wave.summary["client"]["workers"][0]["loop_delay"]["max_s"] > 0.005
    assert "loop_blocked" not in {found["code"] for found in wave.summary["findings"]}


def test_what_the_users_code_waits_for_in_c_is_not_broken_off(bench: Bench) -> None:
    """A signal would: poll() then returns early with EINTR, and a request fails that was fine."""
    factories = """
import ctypes

libc = ctypes.CDLL(None, use_errno=True)


def invoke_factory():
    def invoke(payload):
        if libc.poll(None, 0, 100) < 0:
            raise OSError(ctypes.get_errno(), "poll")

    return invoke


def payload_factory():
    return {"pre_computed": True, "input": [0]}
"""
    wave = bench.run("--client-rps", 8, "--obs-time", 1, factories=factories)
    assert wave.outcomes() == {"ok": 8}
    assert min(row["done"] - row["sent"] for row in wave.rows) >= 99_000_000
    assert wave.summary["client"]["workers"][0]["block"]["where"].startswith("invoke_factory.<locals>.invoke (")
