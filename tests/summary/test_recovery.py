"""Recovery after a stage over capacity, computed from response times alone: by tables of waves made up in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.facts.stages import stages_of
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.report.summary_json import summary_of
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary import recovery
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.wave.report_check import check_report
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.parts import in_memory, in_parts
from tests.waves import MS, observe, on_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord
    from inference_benchmarker.summary.recovery import Recovery

STORM = "20:10s,spike=100:5s,after=20:20s"


def wave(text: str, slow: Callable[[float], float | None]) -> WaveFacts:
    """Arrivals on time; ``slow``: the response time in ms of one due at that second, None where it failed."""
    plan = WavePlan(OpenLoop(stages=tuple(map(Stage.parse, text.split(",")))), Bounds())
    return observe(plan, [_answered(record, slow(record.due / NS)) for record in on_time(plan)])


def _answered(record: RequestRecord, took_ms: float | None) -> RequestRecord:
    if took_ms is None:
        return record._replace(outcome="failed", error="ClientTimeout", done=record.sent + 500 * MS)
    return record._replace(done=record.sent + int(took_ms * MS))


def recoveries(facts: WaveFacts) -> dict[str, Recovery]:
    return {row.name: row.recovery for row in summarise(facts).stages if row.recovery is not None}


@pytest.mark.parametrize(
    ("name", "slow", "recovery_s", "after_s"),
    [
        ("at once", lambda at: 900 if 11 <= at < 15 else 20, 0, 0.02),
        ("backlog of eight seconds", lambda at: 900 if 11 <= at < 23 else 20, 8, 0.02),
        ("within twice", lambda at: 900 if 11 <= at < 18 else 39, 3, 0.039),
        ("beyond twice", lambda at: 900 if 11 <= at < 18 else 41 if at > 18 else 20, None, 0.041),
        ("never", lambda at: 900 if at >= 11 else 20, None, 0.9),
        ("no answers", lambda at: None if at >= 11 else 20, None, None),
        ("a lucky second", lambda at: 900 if at >= 11 and not 20 <= at < 21 else 20, None, 0.9),
        ("too late to be held", lambda at: 900 if 11 <= at < 31 else 20, None, 0.02),
        ("a relapse", lambda at: 900 if 11 <= at < 17 or 20 <= at < 26 else 20, 11, 0.02),
        (
            "every third fails",
            lambda at: 900 if 11 <= at < 15 else None if at * 20 % 3 < 0.1 and at > 15 else 20,
            0,
            0.02,
        ),
    ],
)
def test_the_first_second_from_which_five_are_as_before(
    name: str, slow: Callable[[float], float | None], recovery_s: float | None, after_s: float | None
) -> None:
    found = recoveries(wave(STORM, slow))
    assert list(found) == ["spike"], name
    assert found["spike"].recovery_s == recovery_s
    assert found["spike"].watched_s == 20
    assert found["spike"].before_s == 0.02 or name == "within twice"
    assert found["spike"].after_s == after_s


@pytest.mark.parametrize(
    ("text", "slow"),
    [
        (STORM, lambda _: 20),  # never over capacity
        (STORM, lambda at: 8.5 if at >= 11 else 4),  # slower, but within a few milliseconds
        ("spike=100:5s,after=20:20s", lambda _: 900),  # nothing before it
        ("20:10s,spike=100:5s", lambda at: 900 if at > 11 else 20),  # nothing after it
        ("20:10s,spike=100:5s,more=200:9s", lambda at: 900 if at > 11 else 20),  # the load did not fall
        ("20:10s,spike=100:5s,after=20:4s", lambda at: 900 if 11 < at < 15 else 20),  # too short to tell
        ("20:10s,spike=100:5s,0:20s", lambda at: 900 if at > 11 else 20),  # nobody came
        ("20:10s", lambda _: 20),
    ],
)
def test_there_is_none_to_tell(text: str, slow: Callable[[float], float | None]) -> None:
    assert recoveries(wave(text, slow)) == {}


def test_a_pause_is_waited_through_and_says_nothing() -> None:
    found = recoveries(wave("20:10s,spike=100:5s,0:10s,after=20:10s", lambda at: 900 if 11 <= at < 15 else 20))
    assert (found["spike"].recovery_s, found["spike"].watched_s) == (10, 20)


def test_a_ramp_down_falls_from_its_beginning() -> None:
    found = recoveries(wave("20:10s,spike=100:5s,100..20:20s", lambda at: 900 if 11 <= at < 25 else 20))
    assert (found["spike"].recovery_s, found["spike"].watched_s) == (10, 20)


def test_it_is_watched_until_the_load_rises_again() -> None:
    text = "20:10s,spike=100:5s,20:6s,10:6s,again=60:9s"
    found = recoveries(wave(text, lambda at: 900 if at >= 11 else 20))
    assert found["spike"].watched_s == 12
    assert found["spike"].recovery_s is None


@pytest.mark.parametrize(
    ("later", "watched_s"),
    [
        ("0:9s,again=100:20s,10:30s", None),  # the load fell to nothing, and came back as high
        ("0:9s,again=200:20s,10:30s", None),
        ("50..200:20s,10:30s", None),  # it rose above the spike along the ramp
        ("0:9s,20:9s,again=100:20s,50:9s", 18),
        ("0:9s,50:9s,again=100:20s,50:9s", None),  # nothing was in flight: 50/s may be too much by itself
        ("50:9s,40:9s,again=100:20s,50:9s", 18),
        ("100..20:9s,again=100:20s,50:9s", 9),
        ("60..20:9s,30..60:9s,again=61:20s", 18),
    ],
)
def test_nothing_is_watched_through_a_load_as_high_as_the_stages_own(later: str, watched_s: float | None) -> None:
    found = recoveries(wave(f"20:10s,spike=100:5s,{later}", lambda at: 900 if 11 <= at < 34 else 20)).get("spike")
    assert (found and found.watched_s) == watched_s


def test_a_run_that_was_watched_for_longer_still_loads() -> None:
    facts = wave("20:10s,spike=100:5s,0:9s,50:9s", lambda at: 900 if at >= 11 else 20)
    found = encoded(summary_of(facts, summarise(facts), judge(facts, summarise(facts))))
    rows = found["stages"]
    longer = {"recovery_s": None, "watched_s": 18.0, "before_s": 0.02, "before_stage": "1", "after_s": 0.9}
    stored = {**found, "stages": [{**row, "recovery": longer} if row["name"] == "spike" else row for row in rows]}
    check_report(stored, found)
    with pytest.raises(ValueError, match=r"stages\[1\].recovery is None, and .* follows from the requests"):
        check_report(found, stored)


def test_the_stage_before_is_the_fastest_of_those_at_a_lower_rate() -> None:
    text = "first=10:10s,second=20:10s,spike=100:5s,after=10:20s"
    found = recoveries(wave(text, lambda at: 40 if at < 10 else 900 if 20 <= at < 28 else 20))["spike"]
    assert (found.before_stage, found.before_s) == ("second", 0.02)


def test_each_of_several_stages_has_its_own() -> None:
    text = "20:10s,a=100:5s,20:10s,b=100:5s,20:10s"
    found = recoveries(wave(text, lambda at: 900 if 11 <= at < 17 or 26 <= at < 34 else 20))
    assert {name: recovery.recovery_s for name, recovery in found.items()} == {"a": 2, "b": 4}


def test_at_a_low_rate_seconds_are_as_long_as_a_few_arrivals() -> None:
    text = "1:60s,spike=20:10s,after=0.5:120s"
    found = recoveries(wave(text, lambda at: 900 if 62 <= at < 85 else 20))
    assert found["spike"].recovery_s == 20, "ten seconds hold five arrivals"


def test_it_is_reported_in_the_report_the_json_and_as_a_finding() -> None:
    facts = wave(STORM, lambda at: 900 if at >= 11 else 20)
    summary = summarise(facts)
    verdict = judge(facts, summary)
    assert (
        "After stage spike: not recovered in the 20 s until the load ended (median 900 ms; before, in stage 1: 20 ms)"
        in to_text(facts, summary, verdict)
    )
    (finding,) = (finding for finding in verdict.findings if finding.code == "not_recovered")
    assert finding.severity == "warning"
    first = to_text(facts, summary, verdict).splitlines()[0]
    assert "not recovered: in the 20 s after stage spike, the median response time was still 900 ms" in first
    assert finding.measured == "in the 20 s after stage spike, the median response time was still 900 ms"
    assert finding.limit == "2 x the 20 ms of stage 1"
    assert "backlog" in finding.advice
    (row,) = (row for row in encoded(summary_of(facts, summary, verdict))["stages"] if row["recovery"])
    assert row["recovery"] == {
        "recovery_s": None,
        "watched_s": 20.0,
        "before_s": 0.02,
        "before_stage": "1",
        "after_s": 0.9,
    }
    well = wave(STORM, lambda at: 900 if 11 <= at < 18 else 20)
    text = to_text(well, summarise(well), judge(well, summarise(well)))
    assert "After stage spike: recovered 3 s after the load fell (median before, in stage 1: 20 ms)" in text
    assert "not_recovered" not in text


def test_the_report_names_the_stage_that_ends_the_watch() -> None:
    facts = wave("20:10s,spike=100:5s,20:9s,again=60:9s", lambda at: 900 if at >= 11 else 20)
    summary = summarise(facts)
    text = to_text(facts, summary, judge(facts, summary))
    assert "After stage spike: not recovered in the 9 s until stage again (median 900 ms; " in text


@pytest.mark.parametrize(("extra", "said"), [(1, "… and 1 more stage, in"), (2, "… and 2 more stages, in")])
def test_stages_beyond_the_table_are_counted(extra: int, said: str) -> None:
    facts = wave(",".join(["20:1s"] * (20 + extra)), lambda _: 20)
    summary = summarise(facts)
    assert said in to_text(facts, summary, judge(facts, summary))


def test_a_storm_is_blamed_on_those_who_try_again() -> None:
    plan = WavePlan(OpenLoop(stages=tuple(map(Stage.parse, STORM.split(",")))), Bounds(), retries=Retries(retries=2))
    rows = []
    for record in on_time(plan):
        if record.due < 11 * NS:
            rows.append(record)
            continue
        for attempt in range(3):
            due = record.due + attempt * 500 * MS
            rows.append(
                record._replace(due=due, sent=due, done=due + 500 * MS, outcome="failed", error="T", attempt=attempt)
            )
    facts = observe(plan, rows)
    (finding,) = (each for each in judge(facts, summarise(facts)).findings if each.code == "not_recovered")
    assert finding.measured == "in the 20 s after stage spike, most users still got no answer"
    first = to_text(facts, summarise(facts), judge(facts, summarise(facts))).splitlines()[0]
    assert "(limit 95%); not recovered: in the 20 s after stage spike, most users still got no answer; " in first
    assert first.startswith("LIMIT MISSED: success rate ")
    assert mentions(first, "300", "1,100 users", "2,700 requests", "2,400 failed")
    assert "3.0 requests per arrival afterwards" in finding.advice


@pytest.mark.parametrize("rows", [13, 300])
@pytest.mark.parametrize(
    ("text", "slow"),
    [
        (STORM, lambda at: 900 if 11 <= at < 23 else 20),
        (STORM, lambda at: None if at >= 11 else 20),
        (STORM, lambda at: 900 if 11 <= at < 15 else None if at * 20 % 3 < 0.1 and at > 15 else 20),
        ("20:10s,spike=100:5s,0:10s,after=20:10s", lambda at: 900 if 11 <= at < 15 else 20),
        ("20:10s,a=100:5s,20:10s,b=100:5s,20:10s", lambda at: 900 if 11 <= at < 17 or 26 <= at < 34 else 20),
        ("1:60s,spike=20:10s,after=0.5:120s", lambda at: 900 if 62 <= at < 85 else 20),
    ],
)
def test_it_is_the_same_in_any_parts(text: str, slow: Callable[[float], float | None], rows: int) -> None:
    facts = wave(text, slow)
    stages = list(stages_of(facts))
    parts = in_parts(in_memory(facts.records), rows)
    found = recovery.recoveries(replace(facts, records=parts), stages)
    assert found == recovery.recoveries(facts, stages)
    assert any(found)
