"""Advice names the flag that the load was given by: no --client-rps where there is none."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.server_limit import ServerLimit
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.missed_limits import threshold_findings
from inference_benchmarker.verdict.missed_server_limits import server_limit_findings
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.recordings import csv_of, replay_plan
from tests.waves import MS, closed_plan, observe, on_time, open_plan

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord


def stages(*texts: str) -> OpenLoop:
    return OpenLoop(stages=tuple(map(Stage.parse, texts)))


def plan_of(kind: str, folder: Path, *slos: str) -> WavePlan:
    if kind == "replay":
        return replay_plan(csv_of(folder / "few.csv", range(5)), slos=tuple(map(Slo.parse, slos)))
    loads = {
        "rate": (OpenLoop(10), Bounds(2)),  # type: ignore[arg-type]
        "stages": (stages("10:1s", "20:1s"), Bounds()),
    }
    return WavePlan(*loads[kind], slos=tuple(map(Slo.parse, slos)))


def advice(facts: WaveFacts) -> dict[str, str]:
    return {finding.code: finding.advice for finding in judge(facts, summarise(facts)).findings}


def answered_in(milliseconds: float, row: RequestRecord) -> RequestRecord:
    return row._replace(done=row.sent + round(milliseconds * MS))


@pytest.mark.parametrize(
    ("kind", "less", "search", "more"),
    [
        ("rate", "a lower --client-rps", "waves at lower --client-rps", "a longer --obs-time or more --num-requests"),
        ("stages", "lower rates in --stages", "each wave at one --client-rps", "longer --stages"),
        ("replay", "a lower --speed", "each wave at one --client-rps", "more of the recording"),
    ],
)
def test_it_names_what_the_load_was_given_by(kind: str, less: str, search: str, more: str, tmp_path: Path) -> None:
    plan = plan_of(kind, tmp_path, "p50<1ms")
    first, *others = on_time(plan)[:-1]
    found = advice(observe(plan, [answered_in(0.5, first), *others], dropped=[1]))
    assert f" {less}, or raise --max-in-flight" in found["dropped_arrivals"]
    assert search in found["slo_missed"]
    assert f": use {more}." in found["too_few_samples"]


@pytest.mark.parametrize("steered", [False, True])
@pytest.mark.parametrize("texts", [["100:10s"], ["100:10s", "10:60s"]])
def test_a_wave_that_is_steered_to_find_the_rate_is_not_told_to_find_it(texts: list[str], *, steered: bool) -> None:
    plan = WavePlan(replace(stages(*texts), steered=steered), Bounds())
    rows = [row._replace(done=max(row.sent, min(2 * row.due, 20 * NS)) + 20 * MS) for row in on_time(plan)]
    limited = advice(observe(plan, rows))["server_limited"]
    assert ("To find the rate that the endpoint can serve, send each wave at one --client-rps." in limited) != steered
    assert limited.endswith(" To serve more, scale the endpoint.")


@pytest.mark.parametrize("side", ["client", "server", "either", None])
def test_the_endpoint_is_scaled_only_where_the_client_is_not_the_limit(side: str | None) -> None:
    limits = (Slo.parse("p99<20ms"),)
    plan = open_plan(
        "100", "10", slos=limits, warmup_s=Decimal(1), server_limits=(ServerLimit.parse("server.queue<1"),)
    )
    queue = ServerMetric("prometheus", "queue", {"Value": 2.0})
    facts = replace(observe(plan, on_time(plan)), server_metrics=(queue,))
    found = [*threshold_findings(facts, summarise(facts), side), *server_limit_findings(facts, side)]
    assert [("scale the endpoint" in each.advice) for each in found] == [side in ("server", None)] * 2
    assert [("ase the client" in each.advice or "whether the client" in each.advice) for each in found] == [
        side in ("client", "either")
    ] * 2


def test_the_verdict_hands_on_the_side_that_was_the_limit() -> None:
    plan = open_plan("100", "10", slos=(Slo.parse("p99<20ms"),), warmup_s=Decimal(1))
    rows = [row._replace(sent=row.due + 50 * MS, done=row.done + 50 * MS) for row in on_time(plan)]
    facts = observe(plan, rows)
    assert judge(facts, summarise(facts)).limited_by == "client"
    assert "ease the client" in advice(facts)["slo_missed"]


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("slo", ["turn3.p95<1s", "session.p95<1s"])
def test_what_no_session_reached_is_not_told_as_no_session(slo: str, *, sessions: bool) -> None:
    plan = open_plan("1", "3", slos=(Slo.parse(slo),), success_threshold=0.0)
    rows = [row._replace(session=row.index, turn=1, ended="raised") for row in on_time(plan)]
    facts = observe(plan, rows if sessions else on_time(plan), environment={"sessions": sessions})
    found = advice(facts)["slo_missed"]
    assert ("only if the file has a session_factory" in found) != sessions
    assert ("each session was over before" in found) == sessions


FASTEST = "Even the fastest request took 20 ms, so a lower rate does not help"


@pytest.mark.parametrize(
    ("slo", "more", "is_in_vain"),
    [
        ("p99<19ms", {}, True),
        ("latency.p50<=5ms", {}, True),
        ("p99<20ms", {}, True),
        ("p99<30ms", {}, False),  # which one request took longer than
        ("p99<19ms", {"warmup_s": Decimal(1)}, False),  # the first request of the wave may have waited
    ],
)
def test_no_lower_rate_is_advised_where_an_idle_endpoint_takes_longer(
    slo: str, more: dict[str, Any], *, is_in_vain: bool
) -> None:
    plan = open_plan("100", "10", slos=(Slo.parse(slo),), **more)
    (first, *others) = (row for row in on_time(plan) if row.index >= 0)
    rows = [answered_in(200, row) if row.index % 50 == 7 else row for row in (first, *others)]
    found = advice(observe(plan, rows))["slo_missed"]
    assert found.startswith(FASTEST) == is_in_vain
    assert ("waves at lower --client-rps" in found) != is_in_vain


def test_a_closed_loop_that_keeps_its_endpoint_busy_is_told_to_send_less() -> None:
    plan = closed_plan(4, "10", slos=(Slo.parse("p99<19ms"),))
    assert FASTEST not in advice(observe(plan, on_time(open_plan("10", "10"))))["slo_missed"]


def test_a_limit_on_a_stage_in_which_nothing_was_due_says_so() -> None:
    plan = WavePlan(stages("10:2s", "late=20:2s"), Bounds(num_requests=10), slos=(Slo.parse("late:p99<1s"),))
    assert advice(observe(plan, on_time(plan)))["slo_missed"].startswith("No arrival was due in stage late")
