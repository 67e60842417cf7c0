"""The findings on hosts: each names its host, its number and its limit."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.facts.client_use import Connections, WorkerUse
from inference_benchmarker.plan.hosts import Hosts
from tests.hosted import CLOCK, hosted
from tests.mentions import mentions
from tests.waves import HOST, drawn

if TYPE_CHECKING:
    from inference_benchmarker.facts.hosts import HostClock
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.wave.wave import Wave

LATENCY = np.full((10, 30), 0.1)


def of(wave: Wave, code: str) -> list[Finding]:
    return [finding for finding in wave.verdict.findings if finding.code == code]


def test_three_good_hosts_have_no_findings() -> None:
    assert hosted(LATENCY).verdict.findings == ()


@pytest.mark.parametrize(
    ("clock", "severity", "measured"),
    [
        (replace(CLOCK, uncertainty_s=0.0019), None, ""),
        (replace(CLOCK, uncertainty_s=0.0021), "warning", "load2: the uncertainty of its clock is ± 2.1 ms"),
        (replace(CLOCK, uncertainty_s=0.0199), "warning", "load2: the uncertainty of its clock is ± 19.9 ms"),
        (replace(CLOCK, uncertainty_s=0.021), "invalid", "load2: the uncertainty of its clock is ± 21"),
        (replace(CLOCK, jump_s=0.0001), None, ""),
        (replace(CLOCK, jump_s=1.0), "invalid", "load2: its clock jumped by 1"),
        (replace(CLOCK, round_trip_s=-0.5, jump_s=1.0), "invalid", "load2: by its clock it took 500 ms longer"),
        (replace(CLOCK, ahead_s=0.5), "invalid", "load2: a request ended 500"),
        (replace(CLOCK, slew_ppm=-500.0), "warning", "load2: its clock is slewed, by -500 ppm"),
        (replace(CLOCK, offset_s=-1e6, drift_ppm=90.0, slew_ppm=80.0), None, ""),
    ],
)
def test_a_clock_that_is_not_trusted_is_named(clock: HostClock, severity: str | None, measured: str) -> None:
    wave = hosted(LATENCY, clocks=[CLOCK, clock])
    found = of(wave, "host_clock")
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(finding.measured.startswith(measured) for finding in found)
    assert wave.verdict.valid is (severity != "invalid")
    assert wave.verdict.limited_by is None


def test_the_limit_of_a_clock_is_the_users() -> None:
    wave = hosted(LATENCY, clocks=[replace(CLOCK, uncertainty_s=0.021)])
    hosts = replace(wave.plan.hosts, max_clock_error_s=Decimal("0.01"))
    (finding,) = of(replace(wave, plan=replace(wave.plan, hosts=hosts)), "host_clock")
    assert (finding.severity, finding.limit) == ("warning", "10 ms")


def test_a_host_that_is_lost_is_named_with_its_last_words() -> None:
    wave = hosted(LATENCY, (1, 2))
    ledgers = (wave.ledgers[0], *(replace(each, sent=90, ok=90, lost=10) for each in wave.ledgers[1:]))
    lost = replace(wave.hosts[1], lost="Connection to load2 closed by remote host.")
    wave = replace(wave, hosts=(wave.hosts[0], lost), ledgers=ledgers, lost_workers=(1, 2))
    (finding,) = of(wave, "host_lost")
    assert finding.measured == "load2: Connection to load2 closed by remote host; 20 arrivals with it"
    assert not wave.verdict.valid
    (workers,) = of(wave, "worker_lost")
    assert workers.measured.startswith("load2: 2 of 3 workers")
    assert mentions(finding.advice, "benchmark hosts check --hosts load2")
    by_themselves = replace(wave.plan.hosts, host_keys=Path("keys/localhost.json"))
    (finding,) = of(replace(wave, plan=replace(wave.plan, hosts=by_themselves)), "host_lost")
    assert mentions(finding.advice, "benchmark hosts join")


def test_a_host_that_sees_more_is_named() -> None:
    latency = drawn(1, rate=90, seconds=30, cv=0.3)
    latency[:, 2::3] += 0.05
    (finding,) = of(hosted(latency), "host_differs")
    assert finding.severity == "warning"
    assert finding.measured.startswith("load3 sees ")
    assert "more latency than the others" in finding.measured


def test_a_lag_of_microseconds_is_not_reported() -> None:
    lag = np.random.default_rng(3).exponential(0.00001, 300)
    lag[1::3] *= 4
    assert of(hosted(LATENCY, lag_s=lag), "host_differs") == []


def used(wave: Wave, *uses: WorkerUse) -> Wave:
    return replace(wave, workers=uses, host=HOST)


def test_a_busy_worker_is_named_with_its_host() -> None:
    wave = used(hosted(LATENCY), *(WorkerUse(cpu_share=share) for share in (0.1, 0.97, 0.2)))
    (finding,) = of(wave, "worker_cpu")
    assert finding.measured.startswith("load2: worker 1 used 97")
    assert "the hosts have 24 cores" in finding.advice


def test_ports_and_refusals_are_those_of_one_host() -> None:
    refused = Connections(opened=30, refused={"EADDRNOTAVAIL": 4, "ENETUNREACH": 2})
    wave = used(hosted(LATENCY), WorkerUse(), WorkerUse(), WorkerUse(connections=refused))
    (ports,), (network,) = of(wave, "ports"), of(wave, "local_network")
    assert ports.measured == "load3: 4 requests failed because no local port was free"
    assert mentions(network.measured, "2 requests", "ENETUNREACH")
    assert wave.verdict.limited_by == "client"


def test_a_host_on_which_others_took_the_cpu_is_named() -> None:
    busy = replace(HOST, cores=4, cpu_share_mean=0.97, cpu_share_max=1.0)
    wave = used(hosted(LATENCY, lag_s=0.05), *(WorkerUse(cpu_share=0.1) for _ in range(3)))
    wave = replace(wave, hosts=(wave.hosts[0], replace(wave.hosts[1], use=busy), wave.hosts[2]))
    (finding,) = of(wave, "schedule_lag")
    assert mentions(finding.advice, "CPU", "4 cores", "97%")


def test_without_hosts_findings_are_as_they_were() -> None:
    wave = used(hosted(LATENCY), *(WorkerUse(cpu_share=share) for share in (0.1, 0.97, 0.2)))
    alone = replace(wave, hosts=(), plan=replace(wave.plan, hosts=Hosts()))
    (finding,) = of(alone, "worker_cpu")
    assert finding.measured.startswith("worker 1 used 97")
    assert "this host has 8 cores" in finding.advice


def test_the_hosts_that_were_late_are_named_where_others_were_not() -> None:
    lag = np.zeros(300)
    lag[1::3] = 0.05
    (finding,) = of(hosted(LATENCY, lag_s=lag), "schedule_lag")
    assert finding.measured.startswith("load2: p99 50")
    (finding,) = of(hosted(LATENCY, lag_s=0.05), "schedule_lag")
    assert finding.measured.startswith("p99 50")
