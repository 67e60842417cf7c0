"""Two runs side by side: every outcome by hand, and how often it is right on simulated records."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference_benchmarker import Wave, cli
from inference_benchmarker.cli.live.colours import coloured
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import FOREIGN
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import Answers, WorkerUse
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.expectation import Expectation
from inference_benchmarker.plan.model_mix import ModelMix
from inference_benchmarker.plan.recorded import Conversations, Recorded
from inference_benchmarker.plan.slo import MaxRegression, Slo
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.counts import PRECISION
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report.server_metrics import metric_lines
from tests.counted import counted
from tests.parts import in_memory
from tests.waves import closed_plan, drawn, open_plan, spooled, stored, wave
from visualization.comparison.changes import MetricChange, with_interval, with_intervals
from visualization.comparison.comparison import Check, Comparison, Side, compare
from visualization.comparison.estimates import Ratio
from visualization.comparison.headline import headline
from visualization.comparison.report import cells, same_time, to_junit, to_markdown, to_text
from visualization.comparison.result import result_of
from visualization.comparison.server_rows import server_rows
from visualization.pages.forest import forest

if TYPE_CHECKING:
    from tests.bench import Bench

PAIRS, ENOUGH = 200, 185
TIMES = ("latency.mean", "latency.p50", "response_time.mean", "response_time.p50")


def limits(*texts: str) -> list[MaxRegression]:
    return [MaxRegression.parse(text) for text in texts]


def outcomes(comparison: Comparison) -> dict[str, str]:
    return {row.name: row.outcome for row in comparison.rows}


def pairs(slowdown: float, **load: Any) -> Counter[tuple[str, str]]:
    """How many of the simulated pairs have each outcome, by metric."""
    found: Counter[tuple[str, str]] = Counter()
    for number in range(PAIRS):
        base, new = (drawn(2 * number + which, **load) for which in (0, 1))
        reported = outcomes(compare(wave(base), wave(new * slowdown)))
        found.update(reported.items())
        found["any", str(bool({"worse", "improved"} & set(reported.values())))] += 1
    return found


LOADS = [{"rate": 50}, pytest.param({"rate": 50, "shape": "gamma"}, marks=pytest.mark.slow)]


class TestSimulated:
    """Latencies with a coefficient of variation of 0.3, 20 seconds: what the command promises of 200 pairs."""

    @pytest.mark.parametrize("load", LOADS)
    def test_equal_runs_come_out_unchanged(self, load: dict[str, Any]) -> None:
        found = pairs(1, **load)
        assert {name: count for name in TIMES if (count := found[name, "unchanged"]) < ENOUGH} == {}
        assert found["any", "True"] <= 15  # 5% of them may have a metric that seems to have changed

    @pytest.mark.parametrize("load", LOADS)
    def test_a_slowdown_of_a_tenth_is_found(self, load: dict[str, Any]) -> None:
        found = pairs(1.1, **load)
        assert {name: count for name in TIMES if (count := found[name, "worse"]) < ENOUGH} == {}
        assert sum(found[name, "improved"] for name in TIMES) == 0

    def test_with_fewer_seconds_it_cannot_be_known(self) -> None:
        reported = outcomes(compare(wave(drawn(1, seconds=19)), wave(drawn(2) * 2)))
        assert set(reported.values()) == {"cannot tell"}

    def test_nor_with_too_few_records(self) -> None:
        reported = outcomes(compare(wave(drawn(1, rate=5)), wave(drawn(2, rate=5))))
        assert {reported[name] for name in TIMES} == {"cannot tell"}

    def test_what_is_faster_improved(self) -> None:
        reported = outcomes(compare(wave(drawn(1)), wave(drawn(2) / 1.2)))
        assert {reported[name] for name in TIMES} == {"improved"}

    def test_failures_are_worse_where_they_are_few(self) -> None:
        failing = ["ok"] * 2000
        failing[::50] = ["failed"] * 40
        base, new = wave(drawn(1)), wave(drawn(2), outcomes=failing)
        assert outcomes(compare(base, new))["success"] == "worse"
        assert outcomes(compare(new, base))["success"] == "improved"

    def test_a_rate_that_was_not_answered_is_worse(self) -> None:
        failing = ["ok", "ok", "ok", "ok", "failed"] * 400
        assert outcomes(compare(wave(drawn(1)), wave(drawn(2), outcomes=failing)))["rate"] == "worse"

    def test_a_run_of_which_all_failed_is_worse_in_what_it_still_has(self) -> None:
        base, new = wave(drawn(1)), wave(drawn(2), outcomes=["failed"] * 2000)
        reported = compare(base, new, limits("p50=10%", "success=1%"))
        assert (outcomes(reported)["success"], outcomes(reported)["rate"]) == ("worse", "worse")
        assert [check.broken for check in reported.checks] == [True, True]
        assert "p50=10%: response_time.p50 was not measured on both sides." in to_text(reported)
        assert outcomes(compare(new, base))["success"] == "cannot tell"

    def test_requests_that_never_came_back_are_slow(self) -> None:
        hung = ["ok"] * 2000
        hung[::10] = ["abandoned"] * 200
        latencies = drawn(2)
        latencies.ravel()[::10] = 60
        reported = compare(wave(drawn(1)), wave(latencies, outcomes=hung), limits("p95=10%"))
        row = next(row for row in reported.rows if row.name == "response_time.p95")
        assert (row.high, row.outcome, reported.checks[0].broken) == (math.inf, "worse", True)
        assert " or more " in to_text(reported)
        assert "≥60 s" in to_text(reported)
        json.dumps(encoded(result_of(reported)), allow_nan=False)


def row(change: float, low: float, high: float, metric: str = "latency", **more: Any) -> MetricChange:
    stat = metric if metric in ("rate", "success", "tokens") else "p50"
    return MetricChange(metric, stat, Ratio(1.0, 0, 20), Ratio(1 + change, 0, 20), low, high, **more)


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        (row(0.05, 0.01, 0.09), "worse"),
        (row(-0.05, -0.09, -0.01), "improved"),
        (row(-0.05, -0.09, -0.01, "rate"), "worse"),
        (row(0.05, 0.01, 0.09, "tokens"), "improved"),
        (row(0.02, 0.01, 0.03), "unchanged"),
        (row(0.05, -0.01, 0.09), "unchanged"),
        (row(0.05, -0.01, 0.11), "cannot tell"),
        (row(-0.05, -0.11, 0.01), "cannot tell"),
        (row(0.02, 0.01, 0.2), "cannot tell"),
        (row(0.02, 0.01, 0.03, least=0.01), "worse"),
        (row(-0.004, -0.006, -0.001, "success", least=0.003), "worse"),
        (row(-0.002, -0.006, 0.001, "success", least=0.003), "unchanged"),
        (row(-0.002, -0.02, 0.001, "success", least=0.003), "cannot tell"),
        (row(2, 0.5, math.inf), "worse"),
        (MetricChange("latency", "p50", None, Ratio(1, 0, 20)), "cannot tell"),
        (MetricChange("latency", "p50", Ratio(1, 0, 20), Ratio(1, 0, 20)), "cannot tell"),
    ],
    ids=str,
)
def test_the_outcome_follows_from_change_and_interval(expected: MetricChange, outcome: str) -> None:
    assert expected.outcome == outcome


class TestIntervalsOfChanges:
    @example(1.0, 1.0, 0.3685395365533582, 0.90625, 0.99)  # off by more than a thousandfold: unbounded at either end
    @given(
        *(st.floats(0.01, 100) for _ in range(2)),
        *(st.floats(0, 1) for _ in range(2)),
        st.sampled_from([0.95, 0.99, 0.999]),
    )
    def test_they_hold_the_change_and_turn_round_with_the_runs(
        self, base: float, new: float, base_error: float, new_error: float, confidence: float
    ) -> None:
        runs = Ratio(base, base * base_error, 20), Ratio(new, new * new_error, 30)
        there = with_interval(MetricChange("latency", "mean", *runs), confidence)
        back = with_interval(MetricChange("latency", "mean", *runs[::-1]), confidence)
        for one, other in ((there, back), (back, there)):
            assert one.low is not None
            assert one.high is not None
            assert other.high is not None
            assert one.change is not None
            assert one.low <= one.change + 1e-9
            assert one.change <= one.high + 1e-9
            assert 1 + one.low == pytest.approx(1 / (1 + other.high), rel=1e-9, abs=1e-12)

    def test_small_errors_add_as_squares(self) -> None:
        reported = with_interval(
            MetricChange("latency", "mean", Ratio(1, 0.003, 10_000), Ratio(1, 0.004, 10_000)), 0.95
        )
        assert reported.high == pytest.approx(1.96 * 0.005, rel=0.01)

    @pytest.mark.parametrize(
        ("base", "new", "low", "high"),
        [(0, 0, 0, 0), (1, 0, -1, -1), (0, 1, None, None), (-1, 1, None, None), (1, -1, -1, -1)],
    )
    def test_nothing_has_no_logarithm(self, base: float, new: float, low: float | None, high: float | None) -> None:
        (reported,) = with_intervals([MetricChange("lag", "p50", Ratio(base, 0, 20), Ratio(new, 0, 20))])
        assert (reported.low, reported.high) == (low, high)

    @pytest.mark.parametrize("blocks", [0, 1])  # of a rate that changes by plan, of a wave of one second
    def test_all_and_none_differ_although_no_blocks_show_an_error(self, blocks: int) -> None:
        everything, nothing = (Ratio(value, 0.0, blocks, most=1.0, unseen=0.1) for value in (1.0, 0.0))
        assert with_intervals([MetricChange("success", "", everything, nothing)])[0].significant
        assert with_intervals([MetricChange("success", "", nothing, everything)])[0].low is not None

    @settings(max_examples=30)
    @given(st.lists(st.floats(0, 0.05), min_size=1, max_size=8))
    def test_what_is_significant_is_what_holms_procedure_rejects(self, changes: list[float]) -> None:
        rows = [
            MetricChange("latency", f"p{number + 1}", Ratio(1, 0.01, 40), Ratio(1 + change, 0.01, 40))
            for number, change in enumerate(changes)
        ]
        values = sorted((p_value(row), row.name) for row in rows)
        rejected = set()
        for rank, (p, name) in enumerate(values):
            if p > 0.05 / (len(rows) - rank):
                break
            rejected.add(name)
        assert {row.name for row in with_intervals(rows) if row.significant} == rejected


def p_value(row: MetricChange) -> float:
    """The least level at which an interval excludes no change, by halving."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if with_interval(row, 1 - middle).significant else (middle, high)
    return high


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "expected", "broken", "undecided"),
        [
            ("p50=10%", row(0.12, 0.05, 0.2), True, False),
            ("p50=10%", row(0.08, 0.05, 0.11), False, True),
            ("p50=50%", row(0.08, -0.087, 0.254), False, False),
            ("p50=50%", row(0.08, -0.087, 0.5), False, False),
            ("p50=50%", row(0.6, -0.087, 1.5), False, True),
            ("rate=10%", row(-0.05, -0.09, 0.3, "rate"), False, False),
            ("rate=10%", row(0.05, -0.11, 0.3, "rate"), False, True),
            ("rate=10%", row(-0.2, -0.3, -0.1, "rate"), True, False),
            ("p50=10%", row(0.3, -0.1, 0.7), False, True),
            ("p50=10%", row(-0.3, -0.4, -0.2), False, False),
            ("p50=1%", row(0.02, 0.01, 0.03, least=0.01), True, False),
            ("p50=10%", MetricChange("latency", "p50", Ratio(1, 0, 20), None), True, False),
            ("success=1%", MetricChange("success", "success", Ratio(0, 0, 20), Ratio(0.9, 0.01, 20)), False, True),
            ("lag.p50=10%", MetricChange("lag", "p50", Ratio(0, 0, 20), Ratio(0.1, 0.01, 20)), True, False),
        ],
    )
    def test_one_is_broken_above_it_and_beyond_noise(
        self, limit: str, expected: MetricChange, *, broken: bool, undecided: bool
    ) -> None:
        check = Check(MaxRegression.parse(limit), expected)
        assert (check.broken, check.undecided) == (broken, undecided)

    @pytest.mark.parametrize(
        ("text", "metric", "stat", "most"),
        [
            ("p99=10%", "default", "p99", 0.1),
            (" ttft.p90 = 2.5 % ", "ttft", "p90", 0.025),
            ("latency.median=5%", "latency", "p50", 0.05),
            ("itl.p99.9=0%", "itl", "p99.9", 0),
            ("rate=3%", "rate", "rate", 0.03),
            ("success=0.1%", "success", "success", 0.001),
            ("session.success=1%", "session.success", "session.success", 0.01),
            ("session.p95=10%", "session", "p95", 0.1),
            (" session.median=10%", "session", "p50", 0.1),
            ("turn1.ttft.p95=10%", "turn1.ttft", "p95", 0.1),
            ("turn2+.p99=5%", "turn2+.default", "p99", 0.05),
            ("turn2+.latency.mean=5%", "turn2+.latency", "mean", 0.05),
        ],
    )
    def test_they_read_as_slos_do(self, text: str, metric: str, stat: str, most: float) -> None:
        limit = MaxRegression.parse(text)
        assert (limit.metric, limit.stat, limit.most) == (metric, stat, most)

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("p99<10%", ""),
            ("speed=10%", ""),
            ("p99=-3%", ""),
            ("p99=١٠%", ""),
            ("p99 10", ""),
            ("p50=10", "the % after the number is missing"),
            ("p0=3%", "percentiles start above 0"),
            ("max=3%", "max is one request's time, which has no interval"),
            ("goodput=3%", "each run's goodput has its own limits"),
            ("ttft.rate=3%", "rate belongs to the whole wave, not to ttft"),
            ("turn3.p99=3%", "the first turns are compared, and all later ones: turn1 or turn2+"),
            ("turn2+.success=3%", "turns have times, such as turn2+.ttft.p95 and turn2+.p99"),
            ("turn1.lag.p99=3%", "turns have times, such as turn1.ttft.p95 and turn1.p99"),
            ("turn1.p99=3", "the % after the number is missing"),
            ("turn1.session.p99=3%", "turns have times, such as turn1.ttft.p95 and turn1.p99"),
            ("session.ttft.p99=3%", "sessions have success and percentiles of their duration: session.p95"),
            ("session.mean=3%", "sessions have success and percentiles of their duration: session.p95"),
            ("session.turn1.p50=3%", "sessions have success and percentiles of their duration: session.p95"),
            ("session.session.p50=3%", "sessions have success and percentiles of their duration: session.p95"),
            ("session.p0=3%", "percentiles start above 0"),
            ("session.=3%", ""),
            ("turn.p99=3%", "the first turns are compared, and all later ones: turn1 or turn2+"),
        ],
    )
    def test_what_is_none_is_explained_in_a_line(self, text: str, why: str) -> None:
        with pytest.raises(BenchmarkError) as raised:
            MaxRegression.parse(text)
        said = str(raised.value)
        assert said.startswith(f"--max-regression {text!r} is not a limit{f' ({why})' if why else ''}. Write METRIC=")
        assert all(name in said for name in ("success", "rate", "ttft.p90", "p99=10%"))
        assert "\n" not in said

    def test_a_bare_percentile_is_of_response_time_where_both_have_one(self) -> None:
        open_loop, closed_loop = wave(drawn(1)), wave(drawn(2), concurrency=8)
        both = compare(open_loop, open_loop, limits("p50=5%"))
        one = compare(open_loop, closed_loop, limits("p50=5%"))
        assert [reported.checks[0].row.name for reported in (both, one)] == ["response_time.p50", "latency.p50"]

    def test_a_metric_that_the_table_lacks_joins_it(self) -> None:
        reported = compare(wave(drawn(1)), wave(drawn(2)), limits("latency.p75=5%"))
        assert "latency.p75" in outcomes(reported)

    def test_one_below_the_least_change_lowers_it(self) -> None:
        reported = compare(wave(drawn(1, cv=0.01)), wave(drawn(2, cv=0.01) * 1.02), limits("latency.p50=1%"))
        assert (outcomes(reported)["latency.p50"], outcomes(reported)["latency.mean"]) == ("worse", "unchanged")
        assert reported.outcome == "failed"


def metric(name: str, value: float | None, **more: Any) -> ServerMetric:
    return ServerMetric("cloudwatch", name, {"Average": value}, **more)


def with_metrics(run: Wave, *metrics: ServerMetric) -> Wave:
    return replace(run, server_metrics=metrics)


def test_server_metrics_are_written_as_in_the_report() -> None:
    before, after = (metric("ModelLatency", value, unit="Microseconds") for value in (11961.7, 0.5))
    plain = metric("CPUUtilization", 50, unit="Percent")
    reported = compare(with_metrics(wave(drawn(1)), before, plain), with_metrics(wave(drawn(2)), after, plain))
    lines = [" ".join(line.split()) for line in to_text(reported).splitlines()]
    assert "ModelLatency Average (microseconds) 11,962 0.5 -100%" in lines
    assert "CPUUtilization Average 50 50 +0.0%" in lines
    assert "| `ModelLatency Average` (microseconds) | 11,962 | 0.5 |" in to_markdown(reported)
    assert [row["unit"] for row in encoded(result_of(reported))["server_metrics"]] == ["Microseconds", "Percent"]


def test_server_metrics_of_both_runs_stand_beside_each_other_untested() -> None:
    base = with_metrics(wave(drawn(1)), metric("CPU", 50), metric("CPU", 10), metric("GPU", 3), metric("Gone", 1))
    new = with_metrics(
        wave(drawn(2)), metric("CPU", 60), metric("CPU", 0), metric("GPU", None), metric("Unasked", 3, asked=False)
    )
    reported = compare(base, new)
    found = [(row.name, row.base, row.new, row.change) for row in reported.server_rows]
    assert found == [("CPU Average", 50, 60, pytest.approx(0.2)), ("CPU Average (2)", 10, 0, -1)]
    assert "Server metrics (no interval)" in to_text(reported)
    assert "| `CPU Average` | 50 | 60 | +20.0% | no interval |  |" in to_markdown(reported)
    assert encoded(result_of(reported))["server_metrics"][0] == {
        "metric": "CPU Average",
        "unit": None,
        "base": 50,
        "new": 60,
        "signs": ["", ""],
        "change": pytest.approx(0.2),
    }


def test_between_bounds_there_is_no_change() -> None:
    before = metric("Queue", 0.3, bounds={"Average": "at_most"})
    reported = compare(with_metrics(wave(drawn(1)), before), with_metrics(wave(drawn(2)), metric("Queue", 0.4)))
    assert "Queue Average ≤0.3 0.4 -" in [" ".join(line.split()) for line in to_text(reported).splitlines()]
    assert encoded(result_of(reported))["server_metrics"][0]["signs"] == ["≤", ""]


def test_a_mean_with_the_warm_ups_requests_in_it_is_near_and_has_no_change() -> None:
    mean = ServerMetric("cloudwatch", "ModelLatency", {"Average": 1.5e6}, buckets={"Average": (0.0, 4.3e6)})
    interpolated = ServerMetric("prometheus", "wait", {"p99": 0.3}, buckets={"p99": (0.25, 0.5)})
    run = with_metrics(wave(drawn(1)), mean, interpolated)
    near, known = server_rows([run], [run])
    assert (near.signs, near.change) == (("≈", "≈"), None)
    assert (known.signs, known.change) == (("", ""), 0.0)
    assert [line.split(":")[1].split(" ")[1] for line in metric_lines([mean, interpolated])] == [
        "Average~1,500,000",
        "p99=0.3",
    ]
    assert (mean.exact("Average"), interpolated.exact("p99")) == (None, 0.3)


def test_a_value_of_a_part_of_the_window_has_no_change() -> None:
    part = metric("Queue", 0.3, complete=False)
    reported = compare(with_metrics(wave(drawn(1)), part), with_metrics(wave(drawn(2)), metric("Queue", 0.4)))
    (row,) = reported.server_rows
    assert (row.signs, row.change) == (("≈", ""), None)


@pytest.mark.parametrize(("seconds", "low"), [(1, "57"), (4, "9")])
def test_a_side_of_which_no_request_succeeds_is_worse_however_short_it_was(seconds: int, low: str) -> None:
    short = drawn(1)[:seconds, :10]
    ok, dead = (wave(short, outcomes=[word] * short.size) for word in ("ok", "failed"))
    found = compare(ok, dead, limits("success=1%"))
    assert (found.outcome, found.exit_code) == ("failed", 1)
    assert headline(found).startswith(f"FAILED: new is 100% lower in success, 95%: {low}")
    assert compare(ok, ok, limits("success=1%")).checks[0].state == "undecided"
    assert compare(dead, dead, limits("success=1%")).exit_code == 0
    half = wave(short, outcomes=["ok", "failed"] * (short.size // 2))
    assert "Success 100% in base, 50% in new." in headline(compare(ok, half))
    assert "uccess" not in headline(compare(ok, ok))


def test_a_gate_that_passes_says_in_its_first_line_what_was_measured_differently() -> None:
    base, new = wave(drawn(1)), replace(wave(drawn(2)), environment={"file_sha256": "b"})
    odd = replace(new, environment={"file_sha256": [{}]})  # what is stored may be anybody's
    assert "the content of the factories (or Locust) file" in headline(compare(base, odd, limits("rate=5%")))
    base.environment["file_sha256"] = "a"
    found = compare(base, new, limits("rate=5%"))
    assert headline(found).startswith("PASSED: ")
    assert "Measured differently: the content of the factories (or Locust) file." in headline(found)
    assert "Measured differently" not in headline(compare(base, new))


def test_what_passed_is_not_begun_by_what_nobody_can_tell() -> None:
    found = compare(wave(drawn(1)), wave(drawn(2)), limits("rate=5%"))
    assert not headline(found).startswith("PASSED: Cannot tell")


def test_unlike_plans_are_said() -> None:
    base = wave(drawn(1), workers=2)
    new = wave(drawn(2, rate=50), workers=4)
    base.environment["file_sha256"] = "a"
    reported = compare(base, new)
    said = "100/s constant and 50/s constant; 2 workers and 4 workers; the content of the factories (or Locust) file"
    assert f"! The sides were measured differently: {said}." in to_text(reported)
    assert encoded(result_of(reported))["unlike"] == said.split("; ")
    assert compare(base, base).unlike == ()


def test_what_only_one_of_two_loads_has_is_no_condition_of_both() -> None:
    """Users who think are the load itself; between sessions of a rate, thinking is a condition of its own."""
    base = replace(wave(drawn(1)), plan=open_plan("30", "12", 360))
    new = replace(base, plan=closed_plan(2, "12"))
    assert [said for said in compare(base, new).unlike if "between turns" in said or said.endswith(" and ")] == []


def test_other_recorded_conversations_are_said() -> None:
    talks = [Conversations(Path("t.jsonl"), Recorded("ShareGPT", size, 2, 9)) for size in (10, 12)]
    one, other = (wave(drawn(1), conversations=each) for each in talks)
    said = "the conversations of t.jsonl (2 in 10 bytes) and the conversations of t.jsonl (2 in 12 bytes)"
    assert compare(one, other).unlike == (said,)
    assert compare(one, one).unlike == ()
    assert compare(wave(drawn(1)), one).unlike == (
        "no recorded conversations and the conversations of t.jsonl (2 in 10 bytes)",
    )


def test_other_models_and_other_expected_answers_are_said() -> None:
    mix, expected = ModelMix.parse("a=3,b=1"), Expectation("json", "json")
    reported = compare(wave(drawn(1)), wave(drawn(2), model_mix=mix, expect=(expected,)))
    assert reported.unlike == (
        "no mix of models and the models a=3,b=1",
        "nothing expected of answers and answers as json",
    )


def test_settings_that_differ_are_said_but_for_the_address_which_is_compared() -> None:
    common = {"SERVER": "http://one", "PATH": "/a"}
    sides = [
        common | {"OUTPUT_TOKENS": "64", "SEED": "1", "SALT": "a"},
        common | {"SERVER": "http://two", "OUTPUT_TOKENS": "128", "BODY": "x", "SEED": "2", "SALT": "b"},
        common | {"OUTPUT_TOKENS": "64", "SEED": "3"},
    ]
    base, new, stale = (wave(drawn(number), factory_settings=each) for number, each in enumerate(sides))
    assert compare(base, new).unlike == ("the settings OUTPUT_TOKENS, BODY",)
    assert compare(base, stale).unlike == ("the settings SALT",)


def test_the_last_line_of_a_terminal_has_the_answer() -> None:
    found = compare(wave(drawn(1)), wave(drawn(2)))
    first, *_, last = to_text(found, 79).splitlines()
    assert last == first == headline(found)


def test_answers_that_hid_their_statuses_are_told_in_every_form_and_pass_no_limit() -> None:
    shed = WorkerUse(answers=Answers(hidden={"503": 7}))
    base, new = wave(drawn(1, seconds=60)), replace(wave(drawn(2, seconds=60)), workers=(shed,))
    good, bad = (compare(base, each, limits("success=50%")) for each in (wave(drawn(2, seconds=60)), new))
    told = "ok requests received a response with a status from 400 on (503: 7)"
    assert (good.passed, bad.passed) == (True, False)
    assert headline(good).startswith("PASSED")
    assert not headline(bad).startswith("PASSED")
    text = to_text(bad)
    assert told in headline(bad)
    assert f"   ! new: 7 of {new.ledger.ok:,} {told}" in text
    assert text.splitlines()[-1] == "UNDECIDED (doubtful answers)"
    assert told in to_markdown(bad)
    assert told in read_xml(to_junit(bad)).findall(".//skipped")[0].attrib["message"]
    assert "doubtful" not in to_text(good)


@pytest.mark.parametrize(
    ("limit", "word"), [("p50=50%", "PASSED: "), ("p99.9=1%", "UNDECIDED (1 of 1 limits undecided): ")]
)
def test_the_last_line_of_a_terminal_has_the_answer_behind_the_word_of_the_limits(limit: str, word: str) -> None:
    found = compare(wave(drawn(1)), wave(drawn(2)), limits(limit))
    assert " ".join(to_text(found, 79).split()).endswith(f" {word}{headline(found).removeprefix('PASSED: ')}")
    assert to_text(found).splitlines()[-1] == word.removesuffix(": ")


def test_a_run_against_itself_says_so(tmp_path: Path) -> None:
    path = stored(wave(drawn(1)), tmp_path).path
    once, again = Wave.load(path), Wave.load(path)
    assert "! A run is compared with itself" in to_text(compare(once, again))
    assert "with itself" not in to_text(compare(once, wave(drawn(2))))


def test_an_answer_where_there_was_none_is_no_regression() -> None:
    failing = wave(drawn(1), outcomes=["failed"] * 2000)
    reported = compare(failing, wave(drawn(2)), limits("success=1%"))
    assert reported.outcome == "undecided"
    assert "? success=1%: success 0% in base, 100% in new." in to_text(reported)


def late(run: Wave) -> Wave:
    """The same wave from a client that sent by chance some tens of microseconds late."""
    lags = np.random.default_rng(1).integers(50_000, 99_000, len(run.records))
    table = in_memory(run.records).table
    sent = pa.array(table.column("due").to_numpy() + lags)
    return replace(run, records=Records(table.set_column(table.schema.get_field_index("sent"), "sent", sent)))


class TestInWords:
    found = compare(late(wave(drawn(1))), late(wave(drawn(2) * 1.13)), limits("p50=10%", "p99.9=10%", "rate=5%"))

    def test_a_terminal_of_80_columns_holds_it(self) -> None:
        assert max(map(len, to_text(self.found).splitlines())) <= 80

    @pytest.mark.parametrize("width", [60, 79, 120])
    def test_it_fits_its_terminal_with_every_word(self, width: int) -> None:
        queue = metric("A rather long name of a metric of the server's own", 0.4)
        side = Side(
            "new", (with_metrics(self.found.new.waves[0], queue),), "http://some.host.of.ours:8080/invocations?q=bees"
        )
        reported = replace(self.found, new=side, server_rows=tuple(server_rows(self.found.base.waves, side.waves)))
        text = to_text(reported, width=width)
        longest = max(len(word) for line in to_text(reported).splitlines() for word in line.split())
        assert max(map(len, text.splitlines())) <= max(width, longest)
        answered = text.replace("undecided):", "undecided)")  # the answer behind the last line's word
        assert {*to_text(reported).split()} == {*answered.split()}

    def test_what_changed_has_a_colour_on_a_terminal(self) -> None:
        plain, shown = to_text(self.found), coloured(to_text(self.found))
        assert "\x1b" not in plain
        assert re.search(r"  \x1b\[31mworse\x1b\[0m$", shown, re.MULTILINE)
        assert coloured(to_text(self.found, 66)).count("\x1b[31mworse") == shown.count("\x1b[31mworse"), "a space apart"
        assert re.sub(r"\x1b\[[\d;]*m", "", shown) == plain

    def test_each_limit_and_the_word_of_the_exit_code_stand_last(self) -> None:
        *_, first, second, third, word = to_text(self.found).splitlines()
        assert first.startswith("   ✗ p50=10%: response_time.p50 +")
        assert second.startswith("   ? p99.9=10%: response_time.p99.9 +")
        assert third.startswith("   ✓ rate=5%: rate ")
        assert word == "FAILED (1 of 3 limits violated, 1 of 3 limits undecided)"

    def test_a_limit_that_cannot_be_known_does_not_pass_in_silence(self) -> None:
        reported = compare(wave(drawn(1)), wave(drawn(2)), limits("p99=10%"))
        assert to_text(reported).endswith("\nUNDECIDED (1 of 1 limits undecided)\n")
        assert headline(reported).startswith("Cannot tell ")
        assert (result_of(reported).outcome, reported.exit_code) == ("undecided", 0)
        assert result_of(replace(reported, strict=True)).outcome == "failed"
        assert result_of(compare(wave(drawn(1)), wave(drawn(2)), limits("rate=5%"))).outcome == "passed"

    def test_strict_fails_what_different_loads_or_doubtful_answers_leave_open(self) -> None:
        other = compare(wave(drawn(1)), wave(drawn(3)[:, ::2]), limits("p50=50%"))
        doubted = replace(wave(drawn(1)), workers=(WorkerUse(answers=Answers(hidden={"503": 7})),))
        for open_one in (other, compare(wave(drawn(1)), doubted, limits("rate=5%"))):
            assert (open_one.outcome, open_one.exit_code, to_junit(open_one).count("<failure")) == ("undecided", 0, 0)
            strict = replace(open_one, strict=True)
            assert (strict.outcome, strict.exit_code, to_junit(strict).count("<failure")) == ("failed", 1, 1)
            assert to_text(strict).splitlines()[-1].startswith("FAILED (")
            assert "<skipped" in to_junit(open_one)

    def test_limits_kept_by_different_loads_have_not_passed(self) -> None:
        reported = compare(wave(drawn(1)), wave(drawn(3)[:, ::2]), limits("p50=50%"))
        assert reported.checks[0].state == "kept"
        assert headline(reported).startswith("Different loads (")
        assert to_text(reported).endswith("\nUNDECIDED (different loads)\n")
        assert (result_of(reported).outcome, reported.exit_code) == ("undecided", 0)

    @pytest.mark.parametrize(("limit", "outcome"), [((), "asked for"), (("rate=5%",), "worse")])
    def test_a_rate_that_was_asked_for_is_no_verdict_unless_a_limit_names_it(
        self, limit: tuple[str, ...], outcome: str
    ) -> None:
        reported = compare(wave(drawn(1)), wave(drawn(3)[:, ::2]), limits(*limit))
        (rate,) = [row for row in reported.rows if row.name == "rate"]
        text = to_text(reported)
        assert (rate.outcome, encoded(result_of(reported))["metrics"][0]["metric"]) == (outcome, "rate")
        assert re.search(rf"^   rate .*  {outcome}$", text, re.MULTILINE)
        assert ("asked for: the loads differ in it" in " ".join(text.split())) == (outcome == "asked for")

    def test_a_rate_of_one_load_or_of_a_closed_loop_is_compared(self) -> None:
        for one, other in (
            (wave(drawn(1)), wave(drawn(3))),
            (wave(drawn(1), concurrency=4), wave(drawn(3)[:, ::2], concurrency=2)),
        ):
            assert all(row.outcome != "asked for" for row in compare(one, other).rows)

    def test_a_side_has_the_word_of_its_runs_first_lines(self) -> None:
        met, failed = Slo.parse("p99<60s"), Slo.parse("p99<1us")
        good, bad = (wave(drawn(1), slos=(slo,)) for slo in (met, failed))
        sides = {
            "PASSED": (good,),
            "LIMIT MISSED": (bad,),
            "LIMIT MISSED (1 of them)": (good, bad),
            "VALID": (wave(drawn(1)),),
        }
        for word, runs in sides.items():
            text = to_text(compare(runs, good))
            assert re.search(rf"^   base: .*: {re.escape(word)}, ", text, re.MULTILINE), word

    def test_markdown_is_a_table(self) -> None:
        lines = [line for line in to_markdown(self.found).splitlines() if line.startswith("|")]
        assert len(lines) == 2 + len(self.found.rows) + len(self.found.client)
        assert {line.count("|") for line in lines} == {7}
        assert any(line.startswith("| latency.p50 |") and line.endswith("| **worse** |") for line in lines)

    @pytest.mark.parametrize(
        ("name", "line", "cell"),
        [
            ("a<!-- @team | b", "`(a<!-- @team | b)`", "`a<!-- @team \\| b Average`"),
            ("``x`\ny", "``` (``x` y) ```", "``` ``x` y Average ```"),
        ],
    )
    def test_no_name_is_mark_up(self, name: str, line: str, cell: str) -> None:
        called = with_metrics(wave(drawn(1), name=name), metric(name, 3.0))
        reported = to_markdown(compare(called, called))
        assert f"- base: {line}: VALID" in reported
        assert f"| {cell} | 3 | 3 |" in reported

    def test_junit_has_a_case_for_each_limit_and_metric(self) -> None:
        suite = read_xml(to_junit(self.found))
        cases = {case.get("name"): [child.tag for child in case] for case in suite}
        assert cases["p50=10%"] == ["failure"]
        assert cases["p99.9=10%"] == ["skipped"]
        assert cases["rate=5%"] == []
        assert cases["latency.mean"] == ["system-out"]
        assert len(cases) == 2 + len(self.found.rows)
        assert {name: suite.get(name) for name in ("failures", "errors", "skipped")} == {
            "failures": "1",
            "errors": "0",
            "skipped": "1",
        }

    @settings(max_examples=50)
    @given(st.text())
    def test_whatever_a_run_is_called_the_xml_can_be_read(self, name: str) -> None:
        called = replace(dropping(), plan=replace(dropping().plan, name=name))
        assert read_xml(to_junit(compare(called, called))).get("errors") == "2"

    def test_json_has_every_number(self) -> None:
        found = encoded(result_of(self.found))
        row = next(row for row in found["metrics"] if row["metric"] == "latency.p50")
        assert row["base"]["low"] < row["base"]["value"] < row["base"]["high"]
        assert row["low"] < row["change"] < row["high"]
        assert (found["outcome"], [limit["outcome"] for limit in found["limits"]]) == (
            "failed",
            ["broken", "undecided", "kept"],
        )


def dropping() -> Wave:
    """An INVALID wave of two seconds."""
    good = wave(drawn(1, seconds=2, rate=5))
    return replace(good, ledgers=(Ledger(scheduled=20, sent=10, ok=10, dropped=10),))


def read_xml(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode())  # noqa: S314 - it is our own


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["--compare", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("runs")
    made = {"base": wave(drawn(1)), "slow": wave(drawn(2) * 1.2), "equal": wave(drawn(3)), "invalid": dropping()}
    return {name: stored(run, parent).path for name, run in made.items()}


class TestCommand:
    @pytest.mark.parametrize(
        ("new", "limit", "code", "last"),
        [
            ("equal", "p50=10%", 0, "PASSED"),
            ("slow", "p50=10%", 1, "FAILED (1 of 1 limits violated)"),
            ("slow", "p50=50%", 0, "PASSED"),
            ("invalid", "p50=10%", 3, "INVALID (new): these are not the endpoint's numbers"),
        ],
    )
    def test_the_exit_code_is_for_a_pipeline(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], *, new: str, limit: str, code: int, last: str
    ) -> None:
        found, out, _ = compared(capsys, runs["base"], runs[new], "--max-regression", limit)
        assert (found, out.splitlines()[-1]) == (code, last)
        assert out.startswith(f"{last.partition(' ')[0]}{': ' if code < 3 else ' '}"), "as it ends"

    def test_an_invalid_base_is_no_base(self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = compared(capsys, runs["invalid"], runs["equal"], "--json")
        assert (code, json.loads(out)["outcome"], json.loads(out)["base"]["verdict"]) == (3, "invalid", "INVALID")

    def test_without_a_limit_it_only_tells(self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
        code, out, _ = compared(capsys, runs["base"], runs["slow"])
        assert code == 0
        assert "worse" in out

    def test_files_are_written_beside(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        files = "--markdown", tmp_path / "a.md", "--junit", tmp_path / "a.xml"
        assert compared(capsys, runs["base"], runs["slow"], *files, "--max-regression", "p50=10%")[0] == 1
        assert "| latency.p50 |" in (tmp_path / "a.md").read_text()
        assert read_xml((tmp_path / "a.xml").read_text()).get("failures") == "1"

    def test_all_that_is_wrong_is_said_at_once(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        bad = "--max-regression", "speed=3%"
        code, out, err = compared(capsys, tmp_path / "nowhere", tmp_path, *bad)
        first, second, third = err.splitlines()
        assert (code, out) == (2, "")
        assert first.startswith("benchmark: --max-regression 'speed=3%' is not a limit.")
        assert second.startswith(f"benchmark: {tmp_path}/nowhere: does not exist.")
        assert third.startswith(f"benchmark: {tmp_path}: is not a run directory (it has no plan.json).")

    def test_flags_may_stand_between_the_runs(self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
        assert compared(capsys, runs["base"], "--max-regression", "p50=10%", runs["slow"])[0] == 1

    @pytest.mark.parametrize("count", [1, 3])
    def test_two_sides_are_compared_and_no_other_number(
        self, count: int, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        code, out, err = compared(capsys, *[runs["base"]] * count)
        assert (code, out) == (2, "")
        assert err.startswith("benchmark: compare takes BASE and NEW, each a run directory or a folder of runs, not ")

    def test_a_side_alone_is_none(self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
        assert compared(capsys, "--base", runs["base"])[0] == 2
        assert compared(capsys, runs["base"], "--base", runs["base"], "--new", runs["slow"])[0] == 2

    def test_without_any_it_takes_the_last_two(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        code, _, err = compared(capsys)
        assert (code, err) == (2, "benchmark: .tmp: has none of the 2 runs that this takes. Name run directories.\n")
        for number, name in enumerate(("slow", "base", "equal")):
            copytree(runs[name], tmp_path / ".tmp" / f"2026112{number}T000000Z_benchmark")
        code, out, err = compared(capsys)
        assert (code, err.count("_benchmark")) == (0, 2)
        assert "base: .tmp/20261121T000000Z_benchmark: VALID" in out
        assert "new: .tmp/20261122T000000Z_benchmark: VALID" in out

    def test_undecided_fails_where_that_is_asked_for(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        limit = "--max-regression", "p99=1%", "--junit", tmp_path / "a.xml"
        assert compared(capsys, runs["base"], runs["equal"], *limit)[0] == 0
        assert read_xml((tmp_path / "a.xml").read_text()).get("skipped") == "1"
        code, out, _ = compared(capsys, runs["base"], runs["equal"], *limit, "--strict")
        assert (code, out.splitlines()[-1]) == (1, "FAILED (1 of 1 limits undecided)")
        assert read_xml((tmp_path / "a.xml").read_text()).get("failures") == "1"

    def test_a_damaged_run_is_named(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        run_dir = stored(wave(drawn(1, seconds=2)), tmp_path)
        run_dir.requests.write_bytes(b"PAR1")
        code, _, err = compared(capsys, runs["base"], run_dir.path)
        assert code == 2
        assert err.startswith(f"benchmark: {run_dir.requests}: {FOREIGN} (")

    def test_one_that_was_cut_off_is_put_together(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        run_dir = spooled(tmp_path, ended=False)
        code, out, _ = compared(capsys, runs["base"], run_dir.path)
        assert (code, "INVALID, primary_lost" in out) == (3, True)

    def test_what_cannot_be_written_is_said_after_the_table(
        self, runs: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        nowhere = tmp_path / "no" / "a.md"
        code, out, err = compared(capsys, runs["base"], runs["equal"], "--markdown", nowhere)
        assert (code, err) == (
            2,
            f"benchmark: {nowhere}: cannot be written (No such file or directory). Give another file.\n",
        )
        assert "latency.p50" in out


def test_a_run_of_counted_requests_says_how_near_its_percentiles_are() -> None:
    base = wave(drawn(1))
    new = replace(base, records=base.records.between(0, 0), counts=counted(base.records))
    reported = compare(base, new)
    lines = to_text(reported).splitlines()
    assert [line for line in lines if line.endswith(" requests")] == [lines[4]]
    assert lines[5].endswith(" requests, percentiles ±1%")
    (latency,) = (row for row in encoded(result_of(reported))["metrics"] if row["metric"] == "latency.p50")
    assert "precision" not in latency["base"]
    assert latency["new"]["precision"] == PRECISION


@pytest.mark.process
def test_a_slower_endpoint_is_distinguished_from_its_waves(bench: Bench) -> None:
    """Two real waves, far too short for a word on noise: what they measured is what the table shows."""
    found = []
    for service_s in (0.02, 0.03):
        with bench.endpoint(service_s=service_s) as endpoint:
            found.append(bench.run("--client-rps", 20, "--obs-time", 2, target=endpoint))
    reported = bench.run("--compare", *(wave.run_dir for wave in found), "--json", factories=None)
    rows = {row["metric"]: row for row in json.loads(reported.out)["metrics"]}
    latency = rows["latency.p50"]
    assert latency["base"]["value"] >= 0.02
    assert latency["new"]["value"] >= 0.03
    assert latency["change"] == pytest.approx(latency["new"]["value"] / latency["base"]["value"] - 1)
    assert latency["outcome"] == "cannot tell"


def test_that_loads_differ_is_said_first() -> None:
    reported = compare(wave(drawn(1)), wave(drawn(2, rate=50)))
    assert to_text(reported).startswith("Different loads (100/s constant and 50/s constant): ")
    assert "Different loads" not in to_text(compare(wave(drawn(1)), wave(drawn(2))))


def test_one_time_has_one_verdict() -> None:
    worse = row(0.081, 0.05, 0.11, "response_time")
    open_ = row(0.080, -0.01, 0.15)
    assert (worse.outcome, open_.outcome) == ("worse", "cannot tell")
    assert same_time(open_, [open_, worse]) is worse
    assert cells(open_, [open_, worse])[-1] == "*"
    assert same_time(worse, [open_, worse]) is None
    far = row(0.2, -0.01, 0.5)
    assert same_time(far, [far, worse]) is None, "another change has its own verdict"
    found = replace(compare(wave(drawn(1)), wave(drawn(2))), rows=(open_, worse))
    note = "*: the same time as response_time.p50, whose verdict counts."
    assert note in " ".join(to_text(found).split())
    drawn_ = forest(found)
    assert drawn_ is not None
    assert drawn_.notes[1:] == (note,)
    assert [(each.cells[0], each.strong) for each in drawn_.rows] == [(open_.name, False), (worse.name, True)]
