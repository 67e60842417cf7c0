"""Run directories -> runs -> figures: the numbers that a comparison shows, and what it does without some."""

from __future__ import annotations

import csv
import json
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.replay import Replay
from inference_benchmarker.plan.stage import Stage
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from tests.summaries import plan_with, summary_with
from tests.waves import START, make_run, observe, on_time, stored, without_digest
from visualization.figures.bars import all_bars, server_bars
from visualization.figures.figures import STATISTICS, Bars, Curves, Figures
from visualization.figures.folding import folded
from visualization.figures.reading import read_runs, tell_apart
from visualization.figures.runs import Run
from visualization.pages.series import make_figures

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME, LATER = "20261120T144423Z_benchmark", "20261120T150000Z_benchmark"
TIMELINE = {"ok": [10.0, 20.0, 10.0], "sent": [10.0, 20.0, 10.0]}
AIPERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 46.2},
    "request_latency": {"unit": "ms", "avg": 250.5, "p50": 240.0, "p90": 300.0, "p95": 310.0, "p99": 320.0, "max": 400},
    "time_to_first_token": {"unit": "ms", "avg": 31.0, "p99": 40.0},
    "input_config": {"endpoint": {}},
}
AIPERF_TABLE = """\
Metric,avg,min,max,sum,p99,std
HTTP Duration (excl. conn) (ms),21.07,20.48,23.49,421.47,23.40,0.91
Effective Concurrency,0.21,0.00,1.00,,1.00,0.41

Metric,Value
Request Error Rate (%),2.50

Endpoint,GPU
here,GPU 0
"""


def silent(text: str) -> None:
    """For whoever says how it goes on."""


def read(*paths: Path, **metadata: dict[str, Any]) -> tuple[Run, ...]:
    return read_runs(paths, metadata, Wave.load, silent)


def server_row(name: str = "CPUUtilization", **more: Any) -> ServerMetric:
    row = ServerMetric("prometheus", name, {"Average": 50.0, "Maximum": None}, "Percent", series_of="Average")
    return replace(row, **{"series": ((START + 5.0, 40.0), (START + 65.0, 60.0)), **more})


LOADS = (20, 40, 60, 80, 100, 120, 140, 160)


def run(
    number: int = 0, rate: float = 0, latency: float | None = None, completed: float | None = None, **more: Any
) -> Run:
    """A run of which little is known."""
    rates = {"completed": rate if completed is None else completed, "target": rate, "scheduled": rate}
    facts: dict[str, Any] = {"verdict": "VALID", "rates": rates, "latency": {"p50": latency}}
    facts["environment"] = {"file_sha256": "one"}
    facts["ledger"] = {"sent": 10_000}
    facts = more.pop("facts", facts)
    plan = plan_with(**more.pop("plan", {"load": {"kind": "open", "rate": str(rate)}}))
    return Run(Path(f"/runs/{number}"), f"run {number}", summary=summary_with(**facts), plan=plan, **more)


def with_another_verdict(of: Run, **changes: Any) -> Run:
    """The same run with another summary."""
    assert of.summary is not None
    return replace(of, summary=replace(of.summary, **changes))


def bars_of(runs: tuple[Run, ...] | list[Run], field: str, source: str = "locust") -> Bars:
    return next(bars for bars in all_bars(runs) if (bars.source, bars.field) == (source, field))


def curves(figures: Figures, section: str) -> dict[str, Curves]:
    charts = next((each.charts for each in figures.sections if each.key == section), ())
    return {chart.title: chart for chart in charts if isinstance(chart, Curves)}


class TestBars:
    def test_they_hold_the_numbers_of_the_report(self, tmp_path: Path) -> None:
        wave = make_run(tmp_path / "a", failed=30)
        runs = read(tmp_path / "a")
        for choice, stat in STATISTICS.items():
            (bar,) = bars_of(runs, "Latency (ms)").statistics[choice]
            assert wave.summary.latency is not None
            assert bar.value == pytest.approx(1e3 * wave.summary.latency.statistic(stat.replace("_", ".")))
        for field, value in {
            "Requests fired": 3000,
            "Requests completed": 3000,
            "Success (%)": 99,
            "Client RPS": 100,
            "Completed rate": wave.summary.rates.completed,
            "Server RPS": wave.summary.rates.server_rps,
            "Duration (s)": wave.summary.duration_s,
        }.items():
            assert bars_of(runs, field).statistics[""][0].value == pytest.approx(value), field

    def test_an_interval_holds_its_value(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a")
        bars = bars_of(read(tmp_path / "a"), "Latency (ms)").statistics
        for choice in ("mean", "median", "p99"):
            (bar,) = bars[choice]
            assert bar.value is not None
            assert bar.low is not None
            assert bar.high is not None
            assert 0.8 * bar.value < bar.low <= bar.value <= bar.high < 1.2 * bar.value
        assert bars["max"][0].low is None

    def test_of_3000_requests_without_a_failure_one_in_1000_may_fail(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", 3000)
        (bar,) = bars_of(read(tmp_path / "a"), "Success (%)").statistics[""]
        assert (bar.value, bar.high) == (100, 100)
        assert bar.low == pytest.approx(99.9)

    def test_abandoned_requests_make_lower_bounds(self) -> None:
        facts = {"latency": {"mean": 1.0, "p50": 0.5, "p99": 3.0, "lower_bound_from": 2.0}}
        bars = bars_of([run(facts=facts)], "Latency (ms)").statistics
        assert [bars[name][0].sign for name in ("mean", "median", "p99")] == ["≥", "", "≥"]

    def test_what_a_server_bounds_is_shown_as_a_bound(self) -> None:
        values: dict[str, float | None] = {"p50": 0.3, "p99": 9.0, "Average": 0.1}
        row = ServerMetric("prometheus", "queue_time", values, bounds={"p50": "at_most", "p99": "at_least"})
        drawn = {bars.title: bars.statistics[""][0].sign for bars in server_bars([run(server=(row,))])}
        assert drawn == {"queue_time, p50": "≤", "queue_time, p99": "≥", "queue_time, Average": ""}

    def test_streams_have_token_times(self, tmp_path: Path) -> None:
        make_run(tmp_path / "stream", stream=True)
        make_run(tmp_path / "plain")
        runs = read(tmp_path / "stream", tmp_path / "plain")
        ttft, plain = bars_of(runs, "TTFT (ms)").statistics["median"]
        assert ttft.value == pytest.approx(5, rel=0.1)
        assert plain.value is None
        assert bars_of(runs, "Output tokens/s").statistics[""][0].value == pytest.approx(400, rel=0.01)

    def test_a_closed_loop_has_no_response_time(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", closed=True)
        figures = make_figures(read(tmp_path / "a"))
        titles = {chart.title for section in figures.sections for chart in section.charts}
        assert "Latency" in titles
        assert "Response time" not in titles
        assert "4 in flight" in figures.runs[0].facts

    def test_the_servers_metrics_are_a_source(self) -> None:
        runs = [run(0, server=(server_row(),)), run(1)]
        bars = [each for each in all_bars(runs) if each.source == "server"]
        assert [(each.title, each.unit) for each in bars] == [
            ("CPUUtilization, Average", "%"),
            ("CPUUtilization, Maximum", "%"),
        ]
        assert [bar.value for bar in bars[0].statistics[""]] == [50, None]

    def test_a_servers_microseconds_are_shown_in_ms_like_all_times(self) -> None:
        row = server_row("ModelLatency", unit="Microseconds", statistics={"Average": 20_500.0, "p99": None})
        figures = make_figures([run(at, 100 + 50 * at, server=(row,)) for at in range(3)])
        mean, _ = (each for each in all_bars([run(server=(row,)), run()]) if each.source == "server")
        assert (mean.unit, [bar.value for bar in mean.statistics[""]]) == ("ms", [20.5, None])
        against_rate = curves(figures, "server")["ModelLatency, Average against rate"]
        assert (against_rate.y.unit, against_rate.lines[0].points) == ("ms", ((100, 20.5), (150, 20.5), (200, 20.5)))
        over_time = curves(figures, "server")["ModelLatency"]
        assert (over_time.y.unit, [y for _, y in over_time.lines[0].points]) == ("ms", [0.04, 0.06])

    def test_stages_are_bands_of_the_time_where_all_waves_have_the_same(self) -> None:
        stages = [{"name": "calm", "start_s": 0.0, "end_s": 2.0}, {"name": "<spike>", "start_s": 2.0, "end_s": 3.0}]
        alike = [run(number, 100, facts={"stages": stages}, timeline=TIMELINE) for number in range(2)]
        for picture in curves(make_figures(alike), "time").values():
            assert picture.bands == (("calm", 0.0, 2.0), ("<spike>", 2.0, 3.0))
        other = run(1, 100, facts={"stages": stages[:1]}, timeline=TIMELINE)
        damaged = replace(other, summary=None)
        for more in (other, damaged):
            assert {picture.bands for picture in curves(make_figures([alike[0], more]), "time").values()} == {()}

    def test_a_wave_whose_rate_changes_is_no_point_of_a_capacity_curve(self) -> None:
        def stage(rate: str) -> dict[str, str]:
            return {"from_rps": rate, "to_rps": rate, "duration_s": "1", "name": ""}

        even = [run(0, 100, 20), run(1, 200, 30)]
        one_rate = run(2, 300, 40, plan={"load": {"kind": "open", "rate": "300", "stages": [stage("300")] * 2}})
        staged = run(3, 400, 9, plan={"load": {"kind": "open", "rate": "400", "stages": [stage("1"), stage("799")]}})
        again = WavePlan(OpenLoop(Decimal(500), replay=Replay(Path("t.csv"))), Bounds(Decimal(1)))
        replayed = replace(run(4, 500, 9), plan=again)
        found = curves(make_figures([*even, one_rate, staged, replayed]), "capacity")
        assert {line.over for line in found["Latency against rate"].lines} == {(0, 1, 2)}
        ideal, measured = found["Completed against target rate"].lines
        assert ideal.points[-1] == (300, 300)
        assert measured.over == (0, 1, 2)
        assert not curves(make_figures([even[0], staged]), "capacity")

    def test_an_invalid_run_below_a_valid_one_bends_no_curve(self) -> None:
        runs = [run(at, 100 + 50 * at, 0.02 * 2**at) for at in range(5)]
        for at, latency in ((1, 0.9), (4, 0.5)):
            runs[at] = with_another_verdict(runs[at], verdict="INVALID", latency=run(at, 1, latency).times("latency"))

        def lines(of: list[Run]) -> list[tuple[int, ...]]:
            found = curves(make_figures(of), "capacity")["Latency against rate"].lines
            return [line.over for line in found if line.statistic == "median"]

        assert lines(runs) == [(0, 2, 3, 4), (1,)]
        alone = [with_another_verdict(each, verdict="INVALID") for each in runs]
        assert lines(alone) == [(0, 1, 2, 3, 4)], "where none is VALID they are all there is"

    def test_a_rate_that_changes_by_plan_is_named_and_has_no_intervals(self, tmp_path: Path) -> None:
        load = OpenLoop(stages=(Stage.parse("20:15s"), Stage.parse("20..60:15s")))
        plan = WavePlan(load, Bounds(), seed=1)
        facts = observe(plan, on_time(plan))
        stored(Wave(**{each.name: getattr(facts, each.name) for each in fields(facts)}), tmp_path)
        (found,) = read(next(tmp_path.iterdir()))
        assert found.intervals == {}
        (card,) = make_figures([found]).runs
        assert card.facts[0] == "2 stages, 20 to 60/s"

    @pytest.mark.parametrize(
        ("share", "expected"), [(1 / 128, "percentiles ±1%"), (6e-5, "percentiles ±0.01%"), (-1, ""), (1e29, "")]
    )
    def test_percentiles_that_were_counted_are_marked(self, share: float, expected: str) -> None:
        (card,) = make_figures([run(0, facts={"latency": {"p99": 0.1, "precision": share}})]).runs
        assert card.precision == expected
        assert (expected in card.facts) is bool(expected)

    def test_a_servers_number_keeps_its_reservation(self) -> None:
        reported = server_row(reason="Average is of the buckets around the wave, idle time too")
        bars = [each for each in all_bars([run(0, server=(reported,)), run(1)]) if each.source == "server"]
        assert [[bar.note for bar in each.statistics[""]] for each in bars] == [[reported.reason, ""]] * 2

    def test_a_metric_of_two_endpoints_stands_under_their_names(self) -> None:
        rows = tuple(server_row(dimensions={"EndpointName": name}) for name in ("a", "b"))
        titles = [bars.title for bars in all_bars([run(server=rows)]) if bars.source == "server"]
        assert "CPUUtilization (EndpointName=a), Average" in titles
        assert "CPUUtilization (EndpointName=b), Average" in titles

    def test_aiperfs_rate_is_that_of_its_block_and_its_warm_up_is_not_taken_for_the_run(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a")
        folder = tmp_path / "a" / "aiperf"
        warm_up = folder / "phases" / "a_warm_up"
        warm_up.mkdir(parents=True)
        (warm_up / "profile_export_aiperf.json").write_text(json.dumps({"request_latency": {"avg": 1.0}}))
        (folder / "profile_export_aiperf.json").write_text(json.dumps(AIPERF))
        (folder / "summary.json").write_text(json.dumps({"server_rps": 50.4}))
        runs = read(tmp_path / "a")
        assert bars_of(runs, "Server RPS", "aiperf").statistics[""][0].value == 50.4
        assert bars_of(runs, "Latency (ms)", "aiperf").statistics["mean"][0].value == 250.5

    @pytest.mark.parametrize("export", [AIPERF, {"records": AIPERF}], ids=["flat", "records"])
    def test_aiperfs_export_is_a_source(self, tmp_path: Path, export: dict[str, Any]) -> None:
        make_run(tmp_path / "a")
        folder = tmp_path / "a" / "aiperf" / "artifacts"
        folder.mkdir(parents=True)
        (folder / "profile_export_aiperf.json").write_text(json.dumps(export))
        runs = read(tmp_path / "a")
        assert bars_of(runs, "Server RPS", "aiperf").statistics[""][0].value == 46.2
        latency = bars_of(runs, "Latency (ms)", "aiperf").statistics
        assert {name: bars[0].value for name, bars in latency.items()} == {
            "mean": 250.5,
            "median": 240,
            "p90": 300,
            "p95": 310,
            "p99": 320,
            "max": 400,
        }
        assert not bars_of(runs, "ITL (ms)", "aiperf").measured

    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            ("Metric,avg\n" + "x" * 200_000 + ",1\n", True),
            ("Metric\n\x00,,\n", False),
            ("\n,\n1,2\n", False),
            ('"\n' * 9, False),
        ],
    )
    def test_a_table_of_aiperf_that_is_none_costs_itself_alone(
        self, table: str, expected: bool, tmp_path: Path
    ) -> None:
        make_run(tmp_path / "a", 300)
        folder = tmp_path / "a" / "aiperf"
        folder.mkdir()
        (folder / "profile_export_aiperf.json").write_text(json.dumps(AIPERF))
        (folder / "profile_export_aiperf.csv").write_text(table)
        before = csv.field_size_limit(131_072)  # a recording that was read before raises it
        (found,) = read(tmp_path / "a")
        csv.field_size_limit(before)
        assert bars_of((found,), "Latency (ms)", "aiperf").statistics["mean"][0].value == 250.5
        assert [problem.split(":")[0] for problem in found.problems] == ["profile_export_aiperf.csv"] * expected

    def test_every_metric_of_aiperfs_table_is_a_field_under_its_own_name(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a")
        make_run(tmp_path / "b")
        folder = tmp_path / "a" / "aiperf"
        folder.mkdir()
        (folder / "profile_export_aiperf.json").write_text(json.dumps(AIPERF))
        (folder / "profile_export_aiperf.csv").write_text(AIPERF_TABLE)
        runs = read(tmp_path / "a", tmp_path / "b")
        bars = bars_of(runs, "HTTP Duration (excl. conn) (ms)", "aiperf")
        assert (bars.title, bars.unit) == ("HTTP Duration (excl. conn)", "ms")
        measured = {name: each[0].value for name, each in bars.statistics.items()}
        assert measured == {"mean": 21.07, "min": 20.48, "max": 23.49, "p99": 23.4, "std": 0.91}
        assert bars.statistics["mean"][1].value is None
        count = bars_of(runs, "Request Error Rate (%)", "aiperf")
        assert (count.unit, count.statistics[""][0].value) == ("%", 2.5)
        fields = [each.field for each in all_bars(runs) if each.source == "aiperf"]
        assert "GPU 0" not in fields
        sections = {each.key: each for each in make_figures(runs).sections}
        assert len(sections["aiperf_all"].charts) == 3
        assert not sections["aiperf_all"].pictured
        chosen = make_figures(runs, {"aiperf": ["Effective Concurrency", "Total Requests"]}).sections
        pictured = {each.key for each in chosen if each.pictured}
        assert {"aiperf", "aiperf_all"} <= pictured


class TestFields:
    def test_the_wanted_ones_in_their_order_measured_or_not(self) -> None:
        wanted = {"locust": ["Latency (ms)", "Duration (s)"], "aiperf": ["Server RPS"]}
        figures = make_figures([run(latency=0.02)], wanted)
        bars = [each for section in figures.sections for each in section.charts if isinstance(each, Bars)]
        assert {(each.source, each.field) for each in bars} == {
            (source, field) for source, fields in wanted.items() for field in fields
        }

    @pytest.mark.parametrize(
        ("wanted", "said"),
        [
            ({"locust": ["Latency"]}, "locust has no field 'Latency'. Its fields are Duration (s), Client RPS,"),
            ({"server": ["GPUUtilization"]}, "server has no field 'GPUUtilization'. Its fields are CPUUtilization."),
            ({"jmeter": []}, "there is no source 'jmeter'. Sources are locust, server, aiperf, client."),
        ],
    )
    def test_an_unknown_one_names_those_there_are(self, wanted: dict[str, list[str]], said: str) -> None:
        with pytest.raises(BenchmarkError) as raised:
            make_figures([run(server=(server_row(),))], wanted)
        assert said in str(raised.value)


class TestCapacity:
    def test_points_lie_in_the_order_of_the_load(self) -> None:
        runs = [run(0, 300, 0.05), run(1, 100, 0.02), run(2, 200, 0.03)]
        chart = curves(make_figures(runs), "capacity")["Latency against rate"]
        (line,) = (line for line in chart.lines if line.statistic == "median")
        assert line.over == (1, 2, 0)
        assert line.points == ((100, 20), (200, 30), (300, 50))

    def test_another_endpoint_has_a_curve_of_its_own(self) -> None:
        other = run(2, 150, 0.04)
        runs = [run(0, 100, 0.02), run(1, 200, 0.03), replace(other, plan=plan_with(url="http://x"))]
        chart = curves(make_figures(runs), "capacity")["Latency against rate"]
        assert [line.over for line in chart.lines if line.statistic == "median"] == [(0, 1), (2,)]

    def test_a_closed_loop_has_a_curve_of_its_own(self) -> None:
        closed = [run(number, 190, 0.04, plan={"load": {"kind": "closed", "concurrency": 4}}) for number in (2, 3)]
        chart = curves(make_figures([run(0, 100, 0.02), run(1, 200, 0.03), *closed]), "capacity")[
            "Latency against rate"
        ]
        assert [line.over for line in chart.lines if line.statistic == "median"] == [(0, 1), (2, 3)]

    def test_the_knee_is_where_completed_falls_behind(self) -> None:
        def knees(served: float) -> set[Any]:
            runs = [run(at, rate, 0.01 * (at + 1), completed=min(rate, served)) for at, rate in enumerate(LOADS)]
            return {line.knee for line in curves(make_figures(runs), "capacity")["Latency against rate"].lines}

        assert knees(130) == {120}
        assert knees(200) == {None}

    def test_sessions_have_no_knee(self) -> None:
        runs = [
            with_another_verdict(each, rates=replace(each.summary.rates, scheduled=None))
            for each in (run(at, rate, 0.01, completed=min(rate, 130)) for at, rate in enumerate(LOADS))
            if each.summary is not None and each.summary.rates is not None
        ]
        lines = curves(make_figures(runs), "capacity")["Latency against rate"].lines
        assert {line.knee for line in lines} == {None}

    @pytest.mark.parametrize("numbers", [1, 3])
    def test_a_single_load_has_no_capacity_curve(self, numbers: int) -> None:
        runs = [
            run(number, 100 - number, 0.02, plan={"load": {"kind": "open", "rate": "100"}}) for number in range(numbers)
        ]
        sent_nothing = run(9, plan={"load": {"kind": "open", "rate": "200"}}, facts={})
        assert "capacity" not in [section.key for section in make_figures([*runs, sent_nothing]).sections]


class TestTimeAndDistribution:
    def test_rates_end_with_the_last_whole_second_and_failures_do_not(self) -> None:
        timeline: Any = {"ok": [10.0, 11.0, 1.0], "sent": [10.0, 10.0, 0.0], "failed": [0.0, 0.0, 2.0]}
        timeline["in_flight"] = [0.5, 0.5, 0.1]
        for duration, planned, length in ((2.9, None, 2), (3.0, None, 3), (0.5, None, 1), (1.97, 2, 2), (2.9, 2, 2)):
            facts = {"window": {"duration_s": duration, "planned_s": planned, "start_unix_ns": 0}}
            charts = curves(make_figures([run(facts=facts, timeline=timeline)]), "time")
            assert [len(line.points) for line in charts["Rate"].lines] == [length, length], duration
            assert len(charts["In flight"].lines[0].points) == length
            assert charts["Failed requests"].lines[0].points[-1] == (2.5 if duration > 2.5 else 2, 2)

    def test_repeats_are_drawn_beside_the_arrivals_where_anything_was_tried_again(self) -> None:
        facts = {"window": {"duration_s": 2.0, "planned_s": 2}, "repeats": {"success_by_user": 0.9}}
        timeline: Any = {"ok": [10.0, 9.0], "sent": [10.0, 14.0], "scheduled": [10.0, 10.0]}
        reported = run(facts=facts, timeline={**timeline, "repeated": [0.0, 4.0]})
        arrivals, repeats = curves(make_figures([reported]), "time")["Arrivals and repeats"].lines
        assert (arrivals.points, repeats.points) == (((0.5, 10), (1.5, 10)), ((0.5, 0), (1.5, 4)))
        assert bars_of([reported], "Success by user (%)").statistics[""][0].value == 90
        for once in ({**timeline, "repeated": [0.0, 0.0]}, timeline):
            assert "Arrivals and repeats" not in curves(make_figures([run(facts=facts, timeline=once)]), "time")

    def test_long_waves_are_folded_and_lose_no_request(self) -> None:
        points = [(float(second), float(second % 7)) for second in range(5000)]
        fewer = folded(points, lambda known: sum(known) / len(known))
        assert len(fewer) <= 600
        assert fewer[0][0] == 0
        width = fewer[1][0] - fewer[0][0]
        sums = [(y or 0) * min(width, 5000 - x) for x, y in fewer]
        assert sum(sums) == pytest.approx(sum(y for _, y in points))

    def test_server_metrics_lie_on_the_waves_clock(self) -> None:
        facts = {"window": {"duration_s": 90, "start_unix_ns": START * 10**9}}
        chart = curves(make_figures([run(facts=facts, server=(server_row(),))]), "server")["CPUUtilization"]
        assert chart.lines[0].points == ((5, 40), (65, 60))

    @pytest.mark.parametrize(
        ("series", "points"),
        [
            ([[-35, 40], [25, 60]], ((-35, 40), (25, 60), (85, 60))),
            ([[0, 1], [60, 2], [180, 3]], ((0, 1), (60, 2), (120, None), (180, 3), (240, 3))),
            ([[-35, 40]], ((-35, 40), (25, 40))),
        ],
        ids=["from before the wave", "with a gap", "alone"],
    )
    def test_a_bucket_of_cloudwatch_holds_to_its_end(self, series: list[list[float]], points: Any) -> None:
        row = server_row(stream="cloudwatch", series=tuple((START + at, value) for at, value in series))
        row = replace(row, start=START - 35.0, end=START + 25.0)
        facts = {"window": {"duration_s": 90, "start_unix_ns": START * 10**9}}
        (line,) = curves(make_figures([run(facts=facts, server=(row,))]), "server")["CPUUtilization"].lines
        assert (line.points, line.stepped) == (points, True)

    def test_the_clients_cpu_lies_on_the_waves_clock(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", 300)
        rows = [f"{START + 1.5},host,150.0", f"{START + 1.5},worker_0,90.0", f"{START + 1.5},worker_1,20.0"]
        (tmp_path / "a" / "client.csv").write_text("\n".join(["unix_s,process,cpu_percent", *rows]))
        without_digest(RunDir(tmp_path / "a"))
        charts = curves(make_figures(read(tmp_path / "a")), "client")
        assert charts["CPU of the client's host"].lines[0].points == ((1.5, 150),)
        lines = charts["CPU of each worker"].lines
        assert [(line.name, line.points, line.dashed) for line in lines] == [
            ("worker 0", ((1.5, 90),), False),
            ("worker 1", ((1.5, 20),), True),
        ]

    def test_the_distribution_is_that_of_the_records(self, tmp_path: Path) -> None:
        wave = make_run(tmp_path / "a")
        (tail,) = curves(make_figures(read(tmp_path / "a")), "distribution")["Latency"].lines
        values = dict(tail.points)
        assert wave.summary.latency is not None
        for nines, percent in ((0.0, 0), (1.0, 90), (2.0, 99), (3.0, 99.9)):
            assert values[nines] == pytest.approx(1e3 * wave.summary.latency.percentile(percent))
        assert max(values) == pytest.approx(3.477, abs=1e-3), "3,000 requests have no p99.99"


class TestLabels:
    @pytest.mark.parametrize(
        ("names", "paths", "labels"),
        [
            (["", ""], ["/x/a", "/x/b"], ["a", "b"]),
            (["base", ""], ["/x/a", "/x/b"], ["base", "b"]),
            (["", ""], ["/x/20261120T144423Z_benchmark", "/x/b"], ["20261120T144423Z", "b"]),
            (["", ""], ["/x/a", "/y/a"], ["x/a", "y/a"]),
            (["same", "same"], ["/x/a", "/x/b"], ["same (a)", "same (b)"]),
            (["same", "same"], ["/x/a", "/y/a"], ["same (x/a)", "same (y/a)"]),
            (["", ""], ["/x/a", "/x/a"], ["x/a #1", "x/a #2"]),
            (["", ""], [f"/runs/base/{TIME}", f"/runs/new/{LATER}"], ["base", "new"]),
            (["", ""], [f"/runs/base/{TIME}", f"/runs/new/{TIME}"], ["base", "new"]),
            (["", "", ""], [f"/base/{TIME}", f"/base/{LATER}-2", f"/new/{TIME}"], ["base 1", "base 2", "new"]),
            (["same", "same"], [f"/base/{TIME}", f"/new/{LATER}"], ["same (base)", "same (new)"]),
            (["", ""], [f"/runs/{TIME}", f"/runs/{LATER}"], ["20261120T144423Z", "20261120T150000Z"]),
            (["", ""], [f"/x/base/{TIME}", f"/y/base/{LATER}"], ["20261120T144423Z", "20261120T150000Z"]),
            (["", "", ""], [f"/base/{TIME}", f"/new/{LATER}", "/x/mine"], ["base", "new", "mine"]),
        ],
    )
    def test_two_runs_stay_two(self, names: list[str], paths: list[str], labels: list[str]) -> None:
        assert tell_apart(names, [Path(path) for path in paths]) == labels

    def test_legend_renames_and_the_rest_is_shown_on_hover(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", name="from the plan")
        (plain,) = read(tmp_path / "a")
        (named,) = read(tmp_path / "a", a={"legend": "base", "instance": "g5", "gpus": 2, "spot": True})
        assert plain.label == "from the plan"
        assert named.label == "base"
        assert named.hover == ("instance: g5", "gpus: 2", "spot: true")


def damages() -> Iterator[tuple[str, str | None, str]]:
    yield "summary.json", "{", "summary.json: cannot be read"
    yield "summary.json", '{"schema_version": 1}', ""
    yield "summary.json", '{"schema_version": 99}', "summary.json: has schema version 99"
    yield "requests.parquet", "PAR1", "requests.parquet: cannot be read"
    yield "timeline.csv", None, "timeline.csv: cannot be read"
    yield "timeline.csv", "second,ok\n0,many\n", "timeline.csv: cannot be read"
    yield "timeline.csv", "second,ok\n0,nan\n", "timeline.csv: cannot be read"
    yield "plan.json", '{"schema_version": 1, "load": {"kind": "open", "rate": "many"}}', "plan.json: "
    yield "server_metrics.json", '{"schema_version": 1, "metrics": [{"statistics": {"Sum": 1}}]}', "server_metrics.json"
    yield "plan.json", "[]", "plan.json: cannot be read"
    yield "client.csv", "unix_s\n1\n", "client.csv: cannot be read"
    yield "server_metrics.json", '{"schema_version": 1, "metrics": 3}', "server_metrics.json: cannot be read"
    yield "aiperf/profile_export_aiperf.json", "[1", "profile_export_aiperf.json: cannot be read"


class TestDamagedRuns:
    @pytest.mark.parametrize(("file", "content", "said"), list(damages()))
    def test_they_are_shown_as_far_as_they_go_and_named(
        self, tmp_path: Path, file: str, content: str | None, said: str
    ) -> None:
        make_run(tmp_path / "a", 500)
        make_run(tmp_path / "b", 500)
        path = tmp_path / "a" / file
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        runs = read(tmp_path / "a", tmp_path / "b")
        damaged, whole = make_figures(runs).runs
        assert any(problem.startswith(said) for problem in damaged.problems)
        assert len(damaged.problems) == len(set(damaged.problems)) <= 2
        assert not whole.problems
        values = bars_of(runs, "Latency (ms)").statistics["median"]
        assert (values[0].value is None) == (file in ("summary.json", "requests.parquet", "plan.json"))
        assert values[1].value is not None

    def test_a_clients_last_line_may_be_cut_off(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", 300)
        (tmp_path / "a" / "client.csv").write_text(f"unix_s,process,cpu_percent\n{START + 1},host,50\n{START + 2},ho")
        without_digest(RunDir(tmp_path / "a"))
        (damaged,) = read(tmp_path / "a")
        assert (damaged.client, damaged.problems) == ({"host": {"second": [1], "cpu_percent": [50]}}, ())

    @pytest.mark.parametrize(("requests", "has_it"), [(999, False), (1000, True)])
    def test_the_p99_9_of_too_few_requests_has_no_bar_and_no_button(
        self, tmp_path: Path, requests: int, *, has_it: bool
    ) -> None:
        make_run(tmp_path / "a", requests)
        make_run(tmp_path / "b", 300)
        found = make_figures(read(tmp_path / "a", tmp_path / "b"))
        bars = next(chart for part in found.sections for chart in part.charts if chart.title == "Latency")
        assert isinstance(bars, Bars)
        assert ("p99.9" in bars.statistics) == has_it
        assert [bar.value is None for bar in bars.statistics.get("p99.9", ())] == [False, True][: 2 * has_it]
        assert all(bar.value is not None for bar in bars.statistics["p99"])
        lines = (
            line
            for part in found.sections
            for chart in part.charts
            if isinstance(chart, Curves)
            for line in chart.lines
        )
        assert has_it or not any(line.statistic == "p99.9" for line in lines)

    def test_a_wave_without_an_answer_is_fine(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", 200, failed=200)
        (card,) = make_figures(read(tmp_path / "a")).runs
        assert (card.verdict, card.missed) == ("FAILED (1 threshold missed)", True)
        assert card.problems == ()

    def test_a_wave_that_sent_nothing_is_fine(self, tmp_path: Path) -> None:
        make_run(tmp_path / "a", 0, dropped=10)
        (card,) = make_figures(read(tmp_path / "a")).runs
        assert card.verdict.startswith("INVALID")
        assert card.problems == ()

    def test_what_is_no_run_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        for path in (tmp_path / "empty", tmp_path / "missing"):
            with pytest.raises(BenchmarkError, match=path.name):
                read(path)


def _fields(made: Run) -> dict[str, Any]:
    return {name: getattr(made, name) for name in Run.__slots__}


def test_made_runs_are_what_the_tool_reads(tmp_path: Path) -> None:
    make_run(tmp_path / "a", 100, stream=True, failed=1)
    assert len(Wave.load(tmp_path / "a").records) == 100
