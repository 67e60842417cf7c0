"""Waves that end early by themselves, as processes: judged by what the endpoint saw, and that nothing came after."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.wave.wave import Wave
from tests.bench import ids

if TYPE_CHECKING:
    from inference_benchmarker.embedded.running import RunningEndpoint
    from tests.bench import Bench, Finished

pytestmark = pytest.mark.process

LONG_S = 300


def aborted(wave: Finished, endpoint: RunningEndpoint | None, *, planned_s: float = LONG_S) -> str:
    """The finding of a wave that ended long before its plan's end, and sent nothing afterwards."""
    wave.check_books()
    assert wave.exit_code == 1
    assert wave.findings["aborted"] == "missed"
    assert "rate_missed" not in wave.findings
    assert wave.out.splitlines()[0].count("aborted after") == 1
    assert wave.summary["aborted"] is not None
    assert wave.summary["window"]["stopped_at_s"] < planned_s / 2
    assert wave.ledger["lost"] == wave.ledger["dropped"] == 0
    if endpoint is not None:
        assert len(ids(endpoint.arrivals())) == wave.ledger["sent"]
        time.sleep(0.5)
        assert len(ids(endpoint.arrivals())) == wave.ledger["sent"]
    measured: str = next(each["measured"] for each in wave.summary["findings"] if each["code"] == "aborted")
    return measured


def test_a_wave_ends_by_itself_and_nothing_comes_after(bench: Bench) -> None:
    """Three at once: an endpoint that dies, one that answers nobody any more, and one that fails in a closed loop."""
    with ExitStack() as stack:
        dying, hanging, failing = (
            stack.enter_context(bench.endpoint(service="none", **fate))
            for fate in ({}, {"hang_share": 1.0}, {"error_share": 1.0})
        )
        drained = ("--obs-time", LONG_S, "--drain-timeout", 1)
        waves = [
            bench.start("--client-rps", 40, "--obs-time", LONG_S, "--workers", 2, target=dying),
            bench.start("--client-rps", 20, *drained, "--abort-on", "p99>1s@2s", target=hanging),
            bench.start("--concurrency", 2, *drained, "--abort-on", "success<50%@1s", target=failing),
        ]
        waves[0].wait_for_arrivals(dying, 20)
        dying.stop()
        died, hung, failed = (wave.finish() for wave in waves)
        assert "requests without a connection, over" in aborted(died, None)
        assert "p99 " in aborted(hung, hanging)
        assert "success 0% of " in aborted(failed, failing)
    assert set(died.errors()) <= {"ConnectionRefusedError", "ConnectionResetError", "HTTPConnectionClosed"}
    assert hung.ledger["abandoned"] == hung.ledger["sent"], "drained as usual"
    read = Wave.load(died.folder)
    assert read.aborted is not None
    assert (read.aborted.condition, encoded(list(read.verdict.findings))) == ("", died.summary["findings"])


@pytest.mark.slow
def test_an_endpoint_that_is_back_soon_ends_no_wave_and_neither_does_a_dead_one_that_may(bench: Bench) -> None:
    with bench.endpoint(service="none") as first:
        back = bench.start("--client-rps", 50, "--obs-time", 9, "--success-threshold", 0.1, target=first)
        dead = bench.start("--client-rps", 20, "--obs-time", 8, "--no-abort")
        back.wait_for_arrivals(first, 20)
        port = first.port
    time.sleep(1)
    with start(EndpointConfig(service="none"), port=port):
        again = back.finish()
        nothing = dead.finish()
    assert "ConnectionRefusedError" in again.errors()
    assert again.ledger["sent"] == 450
    assert nothing.ledger["sent"] == 160
    assert again.summary["aborted"] is nothing.summary["aborted"] is None


@pytest.mark.slow
def test_a_wave_that_has_sent_all_is_drained_as_planned(bench: Bench) -> None:
    """Its condition becomes true while it waits for the last answers: there is nothing left to end."""
    with bench.endpoint(service="none", hang_share=1.0) as endpoint:
        bounds = ("--client-rps", 20, "--num-requests", 20, "--drain-timeout", 4)
        wave = bench.run(*bounds, "--abort-on", "p99>1s@2s", target=endpoint)
    assert (wave.ledger["sent"], wave.ledger["abandoned"]) == (20, 20)
    assert wave.summary["aborted"] is None


@pytest.mark.slow
def test_a_killed_waves_spool_tells_that_it_was_aborted(bench: Bench) -> None:
    """What ended it is in the spool as soon as it is, so that a report of what was cut off says it, too."""
    with bench.endpoint(service="none", hang_share=1.0) as endpoint:
        wave = bench.start("--client-rps", 20, "--obs-time", LONG_S, "--abort-on", "p99>1s@1s", target=endpoint)
        wave.wait_for(lambda: "Ending the wave" in wave.err, "the end")
        time.sleep(1)
        wave.kill_all()
        (run_dir,) = wave.run_dirs()
        again = bench.report(run_dir)
    assert "aborted after" in again.out
