"""The table of hosts in every form of a report; without hosts there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inference_benchmarker.cli.live import live_lines
from inference_benchmarker.export.figures import Count, Figures, Now
from inference_benchmarker.export.metric_rows import metrics_of
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report.hosts import HEADER, host_lines, host_table
from inference_benchmarker.report.markdown import to_markdown
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.hosted import CLOCK, hosted
from tests.waves import open_plan
from visualization.run_page import sections

LATENCY = np.full((10, 30), 0.1)
WAVE = hosted(LATENCY, (2, 1), clocks=[None, replace(CLOCK, offset_s=-0.0021, drift_ppm=None)])
ROW = ["load2", "1", "100", "0 ms", "100 ms", "100 ms", "10% of 8", "0.0%", "-2.1 ms", "± 0.2 ms", "-", "0.4 ms"]


def test_a_row_tells_what_a_host_sent_and_what_is_known_of_its_clock() -> None:
    header, first, second = host_table(WAVE.summary.hosts)
    assert header == list(HEADER)
    assert (first[0], first[1], first[8:]) == ("load1", "2", ["-"] * 4)
    assert second == ROW


def test_a_lost_host_without_samples_and_requests_has_a_row() -> None:
    lost = replace(WAVE.hosts[1], use=None, clock=None, lost="gone")
    row = host_table(replace(WAVE, hosts=(WAVE.hosts[0], lost)).summary.hosts)[2]
    assert row == ["load2 (lost)", *ROW[1:6], *["-"] * 6]


def test_a_pod_has_the_place_of_its_node_as_far_as_that_is_known() -> None:
    placed = replace(WAVE.hosts[1], node="node-a", zone="eu-west-1a", instance_type="m7i.large")
    rows = {"node-a": replace(placed, zone=None, instance_type=None), "node-a, eu-west-1a, m7i.large": placed}
    for marks, host in rows.items():
        assert host_table(replace(WAVE, hosts=(WAVE.hosts[0], host)).summary.hosts)[2][0] == f"load2 ({marks})"


def test_every_form_of_the_report_has_the_table() -> None:
    summary, verdict = WAVE.summary, WAVE.verdict
    for form in (WAVE.text(), to_markdown(WAVE, summary, verdict), str(sections.client(WAVE, summary))):
        assert all(cell in form for cell in (*HEADER[1:4], "load2", "± 0.2 ms", "-2.1 ms"))


def test_without_hosts_there_is_none() -> None:
    alone = replace(WAVE, hosts=(), plan=replace(WAVE.plan, hosts=Hosts()))
    assert list(host_lines(alone.summary.hosts)) == []
    assert "round trip" not in alone.text() + to_markdown(alone, alone.summary, alone.verdict)


def test_the_exported_figures_have_each_host_once_the_wave_is_over() -> None:
    figures = Figures({"run": "r"}, Count(), Now(hosts=WAVE.summary.hosts))
    found = {metric.name: metric.points for metric in metrics_of([figures])}
    fields = {
        name: {point.labels["host"]: point.value for point in found[f"host.{name}"]}
        for name in ("requests", "cpu", "clock_offset", "clock_uncertainty", "schedule_lag_p99")
    }
    assert fields == {
        "requests": {"load1": 200, "load2": 100},
        "cpu": {"load1": 0.1, "load2": 0.1},
        "clock_offset": {"load2": -0.0021},
        "clock_uncertainty": {"load2": 0.0002},
        "schedule_lag_p99": {"load1": 0.0, "load2": 0.0},
    }
    assert not [name for name in {m.name for m in metrics_of([Figures({}, Count(), Now())])} if "host" in name]


def test_the_live_view_tells_what_each_host_has_sent() -> None:
    state = SpoolState([], 3)
    for number, worker in enumerate(state.workers):
        worker.at, worker.ledger = 10 * NS, Ledger(sent=10 + number, ok=9)
    state.workers[2].at = 4 * NS
    found = {row.name: (row.value, row.alarm) for row in live_lines.rows(WAVE.plan, state)}
    assert found["load1"] == ("21 sent, 3 in flight", False)
    assert found["load2"] == ("12 sent, 3 in flight", True)
    assert "load1" not in {row.name for row in live_lines.rows(open_plan(workers=3), state)}
