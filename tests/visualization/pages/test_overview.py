"""Runs -> the table to read first, the limits that are drawn, and what is folded because all runs have it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference_benchmarker.facts.server_metric import ServerMetric
from tests.summaries import plan_with, summary_with, times_of
from visualization.figures.constant_charts import is_same, same_text
from visualization.figures.figures import Bar, Bars, Curves, Figures, Overview, Points
from visualization.figures.limits import limits_of_runs
from visualization.figures.runs import Run
from visualization.pages.html import page
from visualization.pages.series import make_figures

ABORTED = {"code": "aborted", "severity": "missed", "measured": "after 3 s", "limit": "success<50%"}


def run(number: int = 0, rate: float = 100, p99: float = 0.1, *slos: str, kind: str = "open", **more: Any) -> Run:
    times = {"mean": p99 / 3, "p50": p99 / 4, "p90": p99 / 2, "p95": p99 / 1.5, "p99": p99, "max": 2 * p99}
    facts = {"verdict": "VALID", "rates": {"completed": rate, "target": rate}, "latency": times, "success_rate": 1.0}
    facts |= {"response_time": None if kind == "closed" else times, "window": {"planned_s": 10.0, "duration_s": 10.02}}
    load: dict[str, Any] = {"kind": kind, "rate": f"{rate:g}", "arrivals": "poisson"}
    load = load if kind == "open" else {"kind": kind, "concurrency": 4}
    plan = {"load": load, "slos": list(slos), "workers": 2, "success_threshold": 0.95}
    tails: dict[str, Points] = dict.fromkeys(("latency", "response_time"), ((0.0, 0.01), (2.0, p99)))
    return Run(
        Path(f"/runs/{number}"),
        f"run {number}",
        summary=summary_with(**{**facts, **more}),
        plan=plan_with(**plan),
        tails=tails,
    )


def table(*runs: Run) -> Overview:
    found = make_figures(runs).overview
    assert found is not None
    return found


def column(found: Overview, title: str) -> list[str]:
    place = [each.title for each in found.columns].index(title)
    return [row[place].text for row in found.rows]


def chart(figures: Figures, section: str, title: str) -> Bars | Curves:
    return next(each for key in figures.sections if key.key == section for each in key.charts if each.title == title)


def test_a_row_has_the_verdict_and_the_numbers_to_know_first() -> None:
    found = table(run(0), run(1, 200, 0.5))
    assert [each.title for each in found.columns] == [
        "Verdict", "Load", "Completed", "Latency p50", "Latency p99", "Success",
    ]  # fmt: skip
    assert column(found, "Completed") == ["100/s", "200/s"]
    assert column(found, "Latency p99") == ["100 ms", "500 ms"]
    assert column(found, "Success") == ["100%", "100%"]


def test_a_stream_has_its_first_token_and_another_run_nothing_there() -> None:
    found = table(run(0, ttft={"p50": 0.02}), run(1))
    assert column(found, "TTFT p50") == ["20 ms", ""]


def test_a_verdict_is_reported_with_its_cause_and_its_kind() -> None:
    missed = {"code": "slo_missed", "severity": "missed", "measured": "p99 500 ms", "limit": "p99<200ms"}
    dropped = {"code": "dropped_arrivals", "severity": "invalid", "measured": "5 arrivals", "limit": "0"}
    found = table(
        replace(run(0), outcome="PASSED"),
        replace(run(1, findings=[{"code": "endpoint_stalled", "severity": "warning"}, missed]), outcome="LIMIT MISSED"),
        run(2, verdict="INVALID", findings=[missed, dropped]),
    )
    cells = [row[0] for row in found.rows]
    assert [cell.text for cell in cells] == ["✓ PASSED", "! LIMIT MISSED", "✗ INVALID"]
    assert [cell.tone for cell in cells] == ["good", "warn", "bad"]
    assert [cell.note for cell in cells] == ["", "slo missed: p99 500 ms", "dropped arrivals: 5 arrivals"]
    assert [cell.rank for cell in cells] == [0, 1, 2]


@pytest.mark.parametrize(("how", "findings"), [("interrupted", []), ("aborted", [ABORTED])])
def test_a_run_that_ended_early_is_marked(how: str, findings: list[dict[str, Any]]) -> None:
    aborted = {"condition": "", "measured": None, "requests": 1, "over_s": 3}
    ended: dict[str, Any] = {how: {"interrupted": True, "aborted": aborted}[how], "findings": findings}
    cell = table(run(0), run(1, **ended)).rows[1][0]
    assert (cell.text, cell.tone) == (f"! {how}", "warn")
    card = make_figures([run(1, **ended)]).runs[0]
    assert card.verdict == f"VALID ({how})", "it counts as no missed threshold"
    assert card.missed


def test_a_load_that_every_run_is_called_by_has_no_column() -> None:
    named = [replace(run(0, rate), label=f"{rate}/s") for rate in (100, 200)]
    assert [column.title for column in table(*named).columns][:2] == ["Verdict", "Completed"]
    assert column(table(run(0, 100), run(1, 200)), "Load") == ["100/s", "200/s"]


def test_what_all_runs_share_is_a_line_and_no_column() -> None:
    found = table(run(0, 100, 0.1, "p99<1s"), run(1, 100, 0.2, "p99<1s"))
    assert found.same == ("100/s", "Poisson arrivals", "2 workers", "10 s of load", "limit p99<1s")
    assert "Load" not in [each.title for each in found.columns]
    assert table(run(0)).same == ()


@pytest.mark.parametrize(
    ("slo", "kind", "title"),
    [
        ("p99<200ms", "open", "Response time p99"),
        ("p99<200ms", "closed", "Latency p99"),
        ("latency.p95<200ms", "open", "Latency p95"),
    ],
)
def test_a_limit_has_its_column_with_its_line_and_who_breaks_it(slo: str, kind: str, title: str) -> None:
    found = table(run(0, 100, 0.1, slo, kind=kind), run(1, 100, 0.5, slo, kind=kind))
    place = [each.title for each in found.columns].index(title)
    level = found.columns[place].level
    assert level is not None
    assert (level.value, level.text) == (200, slo)
    assert [row[place].tone for row in found.rows] == ["", "bad"]


@pytest.mark.parametrize(
    ("slos", "first"),
    [
        ((), "median"), (("p99<1s",), "p99"), (("p50<1s", "p99<1s"), "median"),
        (("success>99%", "latency.p95<1s"), "p95"),
        (("p99.9<1s",), "p99.9"), (("rate>99%",), "median"), (("spike:p99<1s",), "median"),
    ],
)  # fmt: skip
def test_the_first_statistic_is_what_a_limit_names(slos: tuple[str, ...], first: str) -> None:
    assert make_figures([run(0, 100, 0.1, *slos), run(1)]).statistic == first


def test_a_limit_is_a_line_wherever_its_metric_is() -> None:
    rates: dict[str, list[float | None]] = {
        "latency_p50_s": [0.1],
        "latency_p99_s": [0.2],
        "response_time_p99_s": [0.3],
        "ok": [10.0],
        "sent": [10.0],
    }
    runs = [
        run(number, rate, rate / 1000, "p99<200ms", "latency.p90<50ms", "success>99%")
        for number, rate in ((0, 100), (1, 200))
    ]
    figures = make_figures([replace(each, timeline=rates) for each in runs])
    drawn = {
        (key, title): [(level.value, level.statistic) for level in chart(figures, key, title).levels]
        for key, title in (
            ("times", "Response time"), ("times", "Latency"), ("capacity", "Response time against rate"),
            ("time", "Response time"), ("time", "Latency"), ("time", "Rate"),
        )
    }  # fmt: skip
    assert drawn == {
        ("times", "Response time"): [(200, "p99")],
        ("times", "Latency"): [(50, "p90")],
        ("capacity", "Response time against rate"): [(200, "p99")],
        ("time", "Response time"): [(200, "")],
        ("time", "Latency"): [],
        ("time", "Rate"): [],
    }
    (level,) = chart(figures, "distribution", "Response time").levels
    assert level.value == 200
    assert level.until == pytest.approx(2)


def test_a_limit_on_a_server_s_metric_is_a_line_in_its_unit() -> None:
    def reported(name: str, unit: str, **statistics: float | None) -> ServerMetric:
        series = ((5.0, 20_000.0), (65.0, 30_000.0))
        of = next(iter(statistics))
        return ServerMetric("cloudwatch", name, statistics, unit, series=series, series_of=of)

    rows = (reported("ModelLatency", "Microseconds", Average=2e4, p99=3e4), reported("Queue", "Count", Maximum=9.0))
    slos = ("server.ModelLatency.p99<25ms", "server.Queue<8", "server.Nothing<1", "p99<1s")
    runs = [replace(run(number, 100 + number, 0.1, *slos), server=rows) for number in range(3)]
    levels = {
        each.title: [(level.value, level.text) for level in each.levels]
        for section in make_figures(runs, {"server": ["ModelLatency", "Queue"]}).sections
        if section.key == "server"
        for each in section.charts
    }
    assert levels == {
        "ModelLatency, Average": [],
        "ModelLatency, p99": [(25, "server.ModelLatency.p99<25ms")],
        "Queue, Maximum": [(8, "server.Queue<8")],
        "ModelLatency": [],
        "Queue": [(8, "server.Queue<8")],
        "ModelLatency, Average against rate": [],
        "Queue, Maximum against rate": [(8, "server.Queue<8")],
    }


def test_a_limit_of_some_runs_says_whose_it_is() -> None:
    limits = limits_of_runs([run(0, 100, 0.1, "p99<1s"), run(1, 100, 0.1, "p90<1s"), run(2, 100, 0.1, "p90<1s")])
    assert [limit.text for limit in limits] == ["p99<1s (run 0)", "p90<1s (2 of 3 runs)"]


@pytest.mark.parametrize(
    ("values", "unit", "same"),
    [
        ((30.02, 30.07), "s", True), ((30.0, 31.0), "s", False), ((99.9, 100.0), "%", False),
        ((100.0, 100.0), "%", True),
        ((0.0, 0.0), "", True), ((5.0, None), "", False), ((5.0,), "", False),
    ],
)  # fmt: skip
def test_what_is_equal_in_all_runs_folds(values: tuple[float | None, ...], unit: str, same: bool) -> None:
    assert is_same(Bars("", "Duration", unit, "locust", {"": tuple(map(Bar, values))})) is same


def test_what_is_folded_is_reported_in_words() -> None:
    bars = Bars("", "Duration", "s", "locust", {"": (Bar(30.02), Bar(30.07))})
    assert same_text(bars) == ("Duration", "30.05 s")
    figures = make_figures([run(0), run(1, 200)])
    load = next(section for section in figures.sections if section.key == "load")
    assert ("Duration", "10.02 s") in load.same
    assert "Duration" not in {each.title for each in load.charts}
    chosen = make_figures([run(0), run(1, 200)], {"locust": ["Duration (s)"]})
    assert isinstance(chart(chosen, "load", "Duration"), Bars), "what was asked for is shown"


def test_labels_and_errors_have_bars_of_their_own_the_frequent_ones_first() -> None:
    def label(name: str, sent: int, p50: float) -> dict[str, Any]:
        return {"label": name, "sent": sent, "latency": {"p50": p50}}

    first = run(0, labels=[label("<hot>", 90, 0.02), label("cold", 10, 0.1)], errors=[{"key": "Timeout", "count": 3}])
    second = run(
        1, labels=[label("cold", 5, 0.2)], errors=[{"key": "HttpError 503", "count": 7, "texts": ["busy\x1b[1m"]}]
    )
    figures = make_figures([first, second])
    labels, errors = (next(each for each in figures.sections if each.key == key).charts for key in ("labels", "errors"))
    assert [each.title for each in labels] == ["<hot>", "cold"]
    assert [[bar.value for bar in each.statistics["median"]] for each in labels if isinstance(each, Bars)] == [
        [20, None],
        [100, 200],
    ]
    assert [each.title for each in errors] == ["HttpError 503", "Timeout"]
    counts = [each.statistics[""] for each in errors if isinstance(each, Bars)]
    assert [[bar.value for bar in bars] for bars in counts] == [[0, 7], [3, 0]]
    assert "\x1b" not in counts[0][1].note
    many = run(2, labels=[label(str(number), number, 0.1) for number in range(20)])
    (section,) = (each for each in make_figures([many]).sections if each.key == "labels")
    assert len(section.charts) == 12
    assert "8 more are left out" in section.text


def test_turns_have_bars_of_their_own_in_their_order() -> None:
    def turn(number: int, p50: float, ttft: float | None, **more: Any) -> dict[str, Any]:
        times = {
            "latency": times_of({"p50": p50, "p99": 9.0, "lower_bound_from": 5.0}),
            "ttft": times_of({"p50": ttft}),
        }
        nothing = dict.fromkeys(("context_tokens", "cached_share"))
        return {"turn": number, "and_later": False, "sent": 5, "ok": 5, "failed": 0, **times, **nothing, **more}

    def sessions(*turns: dict[str, Any]) -> dict[str, Any]:
        counts = dict.fromkeys(("started", "completed", "failed", "raised", "open"), 0)
        rates = {"target": None, "scheduled": None, "started": 1.0, "completed": 1.0}
        nothing = dict.fromkeys(("success", "good", "duration", "turns_a_session"))
        return {**counts, **nothing, "rates": rates, "by_turn": list(turns)}

    first = run(0, sessions=sessions(turn(1, 0.1, 0.01), turn(2, 0.2, 0.02), turn(3, 0.3, 0.03)))
    second = run(1, sessions=sessions(turn(1, 0.4, None), turn(2, 0.5, None, and_later=True)))
    (section,) = (each for each in make_figures([first, second, run(2)]).sections if each.key == "turns")
    bars = [each for each in section.charts if isinstance(each, Bars)]
    assert [each.title for each in bars] == [
        *("Turn 1, TTFT", "Turn 2, TTFT", "Turn 3, TTFT"),
        *("Turn 1, latency", "Turn 2, latency", "Turn 2+, latency", "Turn 3, latency"),
    ]
    fields = {each.title: [bar.value for bar in each.statistics["median"]] for each in bars}
    assert fields["Turn 2, TTFT"] == [20, None, None]
    assert fields["Turn 1, latency"] == [100, 400, None]
    assert [bar.sign for bar in bars[3].statistics["p99"]] == ["≥", "≥", ""]
    assert not [each for each in make_figures([run(2)]).sections if each.key == "turns"]
    many = run(3, sessions=sessions(*(turn(number, 0.1, None) for number in range(1, 31))))
    (section,) = (each for each in make_figures([many]).sections if each.key == "turns")
    assert len(section.charts) == 8
    assert "22 more are left out" in section.text


def test_a_page_of_twenty_long_runs_stays_light() -> None:
    names = ("ok", "sent", "scheduled", "failed", "in_flight", "latency_p50_s", "latency_p99_s", "response_time_p99_s")
    timeline: dict[str, list[float | None]] = {
        name: [1.234567 + second % 7 for second in range(3600)] for name in (*names, "lag_p99_s")
    }
    tail: Points = tuple((at / 50, 0.0123456 * at) for at in range(200))
    tails = dict.fromkeys(("latency", "response_time", "ttft"), tail)
    runs = [replace(run(number, 100 + number), timeline=timeline, tails=tails) for number in range(20)]
    figures = make_figures(runs)
    assert all(len(line.points) <= 120 for line in charts_of(figures, "time")["Rate"].lines)
    assert len(page(figures).encode()) < 1_000_000


def charts_of(figures: Figures, section: str) -> dict[str, Curves]:
    found = next(each for each in figures.sections if each.key == section).charts
    return {each.title: each for each in found if isinstance(each, Curves)}
