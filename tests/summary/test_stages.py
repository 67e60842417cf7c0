"""The stages of a wave: each one's requests, rates, limits and what was in flight at its end."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import RequestLimit, Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.wave.files.timeline_file import read_timeline
from inference_benchmarker.words.units import NS
from tests.waves import MS, observe, on_time

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.load import Arrivals
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.summary.summary import Summary


def staged(text: str, *slos: str, **more: Any) -> WavePlan:
    load = OpenLoop(stages=tuple(map(Stage.parse, text.split(","))))
    return WavePlan(load, Bounds(), slos=tuple(map(Slo.parse, slos)), **more)


def slow_between(plan: WavePlan, start_s: float, end_s: float, latency_ms: int) -> list[RequestRecord]:
    """Every arrival on time and answered after 20 ms, but for those due in a span."""
    return [
        record._replace(done=record.sent + latency_ms * MS) if start_s * NS <= record.due < end_s * NS else record
        for record in on_time(plan)
    ]


def reported(facts: WaveFacts) -> dict[str, dict[str, Any]]:
    summary = summarise(facts)
    return {row["name"]: row for row in encoded(summary_of(facts, summary, judge(facts, summary)))["stages"] or ()}


def part(summary: Summary, name: str) -> Summary:
    return next(row.summary for row in summary.stages if row.name == name)


def test_a_wave_of_one_rate_has_none() -> None:
    facts = observe(WavePlan(OpenLoop(10), Bounds(2)), [])  # type: ignore[arg-type]
    assert reported(facts) == {}


def test_a_request_belongs_to_the_stage_that_it_was_due_in() -> None:
    plan = staged("10:2s,up=10..30:2s,0:1s", workers=2)
    rows = reported(observe(plan, on_time(plan)))
    assert {name: (row["planned"], row["sent"], row["ok"]) for name, row in rows.items()} == {
        "1": (20, 20, 20),
        "up": (40, 40, 40),
        "3": (0, 0, 0),
    }
    assert [(row["start_s"], row["end_s"], row["from_rps"], row["to_rps"]) for row in rows.values()] == [
        (0, 2, 10, 10),
        (2, 4, 10, 30),
        (4, 5, 0, 0),
    ]


def test_its_times_are_those_of_its_own_requests() -> None:
    plan = staged("10:2s,spike=50:2s,10:2s")
    summary = summarise(observe(plan, slow_between(plan, 2, 4, 300)))
    latencies = {row.name: row.summary.latency for row in summary.stages}
    assert {name: d and round(d.percentile(99), 6) for name, d in latencies.items()} == {
        "1": 0.02,
        "spike": 0.3,
        "3": 0.02,
    }


def test_a_constant_latency_completes_the_rate_of_each_stage() -> None:
    plan = staged("10:4s,50:4s,10:4s")
    summary = summarise(observe(plan, on_time(plan, 500 * MS)))
    assert [round(row.summary.rates.completed, 6) for row in summary.stages] == [10, 50, 10]
    assert [row.in_flight_end for row in summary.stages] == [5, 25, 5]


def test_a_backlog_shows_in_flight_at_the_end_and_drains_into_the_next_stage() -> None:
    plan = staged("20:1s,over=40:2s,20:3s")
    records, free = [], 0
    for record in on_time(plan):  # one server, 25 requests a second, in order
        free = max(free, record.sent) + 40 * MS
        records.append(record._replace(done=free))
    summary = summarise(observe(plan, records))
    rows = {row.name: row for row in summary.stages}
    assert rows["over"].in_flight_end in (30, 31)
    assert rows["over"].summary.rates.completed == pytest.approx(25, rel=0.02)
    assert rows["3"].in_flight_end == rows["over"].in_flight_end - 15


def test_a_stopped_wave_has_the_stages_that_had_begun() -> None:
    plan = staged("10:2s,20:2s,30:2s")
    records = [record for record in on_time(plan) if record.due < 3 * NS]
    rows = reported(observe(plan, records, stopped_at=3 * NS))
    assert {name: (row["planned"], row["end_s"]) for name, row in rows.items()} == {"1": (20, 2), "2": (20, 3)}


def test_the_target_rate_is_that_of_the_stages_up_to_the_end_of_the_wave() -> None:
    plan = staged("50:1s,60..80:1s")
    assert summarise(observe(plan, on_time(plan))).rates.target == 60
    short = replace(plan, bounds=Bounds(plan.bounds.duration_s, 30))
    rates = summarise(observe(short, on_time(short))).rates
    assert (rates.target, rates.scheduled) == (50, 50)
    stopped = [record for record in on_time(plan) if record.due < 1.5 * NS]
    assert summarise(observe(plan, stopped, stopped_at=3 * NS // 2)).rates.target == pytest.approx((50 + 32.5) / 1.5)


def test_the_timeline_names_the_stage_in_which_each_second_begins() -> None:
    def named(plan: WavePlan, **more: Any) -> list[str]:
        rows = csv.DictReader(io.StringIO(timeline(observe(plan, on_time(plan, 1500 * MS), **more))))
        return [row["stage"] for row in rows]

    plan = staged("calm=10:1.5s,0:0.2s,spike=20:1.3s")
    assert named(plan) == ["calm", "calm", "spike", "", ""]
    assert named(plan, stopped_at=NS) == ["calm", "", "", "", ""]
    assert set(named(WavePlan(OpenLoop(10), Bounds(2)))) == {""}  # type: ignore[arg-type]


def test_the_names_in_the_timeline_are_no_hindrance_to_its_numbers(tmp_path: Path) -> None:
    plan = staged("calm=10:2s")
    (tmp_path / "timeline.csv").write_text(timeline(observe(plan, on_time(plan))))
    columns = read_timeline(tmp_path / "timeline.csv")
    assert columns["sent"] == [10, 10, 0]
    assert "stage" not in columns


class TestLimits:
    def test_one_that_names_a_stage_holds_for_its_requests_alone(self) -> None:
        plan = staged("10:2s,spike=50:2s", "spike:p99<500ms", "1:p99<10ms", "spike:success>=1")
        facts = observe(plan, slow_between(plan, 2, 4, 300))
        found = [f for f in judge(facts, summarise(facts)).findings if f.code == "slo_missed"]
        assert [(finding.measured, finding.limit) for finding in found] == [("response time p99 20 ms", "1:p99<10ms")]

    def test_each_stage_tells_which_limits_it_met(self) -> None:
        plan = staged("10:2s,spike=50:2s,0:1s", "p99<100ms", "spike:p50<1s")
        rows = reported(observe(plan, slow_between(plan, 2, 4, 300)))
        assert rows["1"]["slos"] == [{"expression": "p99<100ms", "measured": pytest.approx(0.02), "met": True}]
        assert [limit["met"] for limit in rows["spike"]["slos"]] == [False, True]
        assert [row["slos_met_share"] for row in rows.values()] == [1.0, 0.5, None]

    def test_a_stage_that_never_began_has_missed_its_limits(self) -> None:
        plan = staged("10:2s,late=20:2s", "late:p99<1s")
        facts = observe(plan, [r for r in on_time(plan) if r.due < NS], stopped_at=NS)
        assert "slo_missed" in {finding.code for finding in judge(facts, summarise(facts)).findings}

    def test_goodput_is_reported_for_each_stage(self) -> None:
        plan = staged("10:2s,spike=50:2s", goodput=(RequestLimit.parse("latency<100ms"),))
        rows = reported(observe(plan, slow_between(plan, 2, 4, 300)))
        assert [row["goodput"]["share"] for row in rows.values()] == [1.0, 0.0]
        assert rows["1"]["goodput"]["rate"] == pytest.approx(10)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("nowhere:p99<1s", "there is no stage nowhere; the stages are 1, spike."),
            ("3:p99<1s", "there is no stage 3; the stages are 1, spike."),
        ],
    )
    def test_a_limit_on_no_stage_is_refused(self, text: str, problem: str) -> None:
        problems = problems_of_values(staged("10:2s,spike=50:2s", text))
        assert [each.text for each in problems] == [f"--slo {text}: {problem}"]


def test_the_report_has_a_row_for_each_stage() -> None:
    plan = staged("10:2s,spike=50:2s,400..0:1s,0:1s", "p99<100ms")
    facts = observe(plan, slow_between(plan, 2, 4, 300))
    summary = summarise(facts)
    lines = to_text(facts, summary, judge(facts, summary)).splitlines()
    start = next(index for index, line in enumerate(lines) if line.lstrip().startswith("Stage"))
    assert lines[start : start + 11] == [
        "   Stage  from      rate  planned   sent  completed  success  in flight",
        "   1       0 s      10/s     10/s   10/s       10/s     100%          0",
        "   spike   2 s      50/s     50/s   50/s       50/s     100%         15",
        "   3       4 s  400..0/s    200/s  200/s      200/s     100%          0",
        "   4       5 s       0/s      0/s    0/s        0/s        -          0",
        "",
        "   Stage  latency p50     p99  response time p50     p99  limits met",
        "   1            20 ms   20 ms              20 ms   20 ms      1 of 1",
        "   spike       300 ms  300 ms             300 ms  300 ms      0 of 1",
        "   3            20 ms   20 ms              20 ms   20 ms      1 of 1",
        "   4                -       -                  -       -           -",
    ]


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_the_report_says_that_poisson_arrivals_are_drawn(arrivals: Arrivals) -> None:
    plan = staged("10:2s,50:2s")
    assert isinstance(plan.load, OpenLoop)
    plan = replace(plan, load=replace(plan.load, arrivals=arrivals), seed=1)
    facts = observe(plan, on_time(plan))
    text = to_text(facts, summarise(facts), judge(facts, summarise(facts)))
    assert ("   planned: arrivals per second as drawn (Poisson); " in text) == (arrivals == "poisson")


@pytest.mark.parametrize("limits", [(), ("p99<100ms", "calm-again:p99<100ms")])
def test_stages_of_any_rate_fit_a_terminal_of_eighty_columns(limits: tuple[str, ...]) -> None:
    plan = staged("calm=50:1s,500..950:1s,spike=2000:1s,calm-again=50:1s", *limits)
    facts = observe(replace(plan, retries=Retries(Decimal(1), 2)), slow_between(plan, 2, 3, 1234))
    summary = summarise(facts)
    lines = to_text(facts, summary, judge(facts, summary)).split("\n\n")
    tables = [line for part in lines if part.lstrip().startswith("Stage") for line in part.splitlines()]
    assert len(tables) >= 15
    assert max(map(len, tables)) <= 80
    assert any("limits met" in line for line in tables) == bool(limits)
