"""The hosts of a wave as its spool tells of them."""

from __future__ import annotations

from typing import Any

import pytest

from inference_benchmarker.wave.spool.host_states import HostStates

CLOCK = {
    "offset_s": 3.0,
    "uncertainty_s": 0.001,
    "drift_ppm": None,
    "round_trip_s": 0.002,
    "jump_s": 0.0,
    "slew_ppm": 1.5,
}
HOST: dict[str, Any] = {
    "name": "load1",
    "workers": [0, 1],
    "versions": {"benchmark": "1"},
    "constants": {"cores": 2, "memory_total_bytes": 1 << 30, "ephemeral_ports": None},
    "clock": CLOCK,
    "lost": None,
}
HERE = {**HOST, "name": "localhost", "workers": [2], "constants": {}, "clock": None}


def reported(*hosts: dict[str, Any], ahead_ns: Any = (None, None, None)) -> HostStates:
    states = HostStates()
    states.take({"event": "hosts", "hosts": [*hosts], "ahead_ns": list(ahead_ns)})
    return states


def test_a_wave_of_this_host_alone_has_none() -> None:
    assert HostStates().facts(0, 1, None) == ()


def test_each_host_has_its_own_samples() -> None:
    states = reported(HOST, HERE)
    for cpu in (50.0, 150.0):
        samples = [[10.0, "host", cpu, 1 << 20], [10.0, "worker_0", 1.0, 5]]
        states.take({"event": "host_samples", "host": "load1", "samples": samples})
    one, here = states.facts(0, 20, None)
    assert one.use is not None
    assert (one.use.cores, one.use.cpu_share_mean, one.use.cpu_share_max) == (2, 0.5, 0.75)
    assert (here.name, here.workers, here.use, here.clock) == ("localhost", (2,), None, None)


@pytest.mark.parametrize(
    ("ahead_ns", "ahead_s"),
    [
        ((None, None, None), 0.0),
        ((-5, -9, None), 0.0),
        ((900_000, None, None), 0.0),
        ((None, 1_001_000_000, None), 1.0),
    ],
)
def test_a_clock_is_ahead_where_a_report_was_written_after_it_came(ahead_ns: Any, ahead_s: float) -> None:
    """Within the uncertainty of its offset it may be."""
    one, _ = reported(HOST, HERE, ahead_ns=ahead_ns).facts(0, 1, None)
    assert one.clock is not None
    assert one.clock.ahead_s == pytest.approx(ahead_s)


def test_what_is_written_again_holds() -> None:
    states = reported(HOST, HERE)
    states.take({"event": "hosts", "hosts": [{**HOST, "lost": "no route"}, HERE], "ahead_ns": [None] * 3})
    assert [host.lost for host in states.facts(0, 1, None)] == ["no route", None]


@pytest.mark.parametrize(
    "wrong", [{"name": 3}, {"workers": ["0"]}, {"clock": []}, {"clock": {**CLOCK, "offset_s": "3"}}, {"lost": 5}]
)
def test_what_is_no_host_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        reported({**HOST, **wrong}).facts(0, 1, None)
