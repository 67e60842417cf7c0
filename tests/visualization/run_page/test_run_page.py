"""The page of a single run: what its figures hold, whatever happened in the wave, and nothing of others as markup."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from inference_benchmarker.facts.client_use import WorkerUse
from inference_benchmarker.facts.instances import Count, Followed
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.facts.wave_facts import WaveFacts
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.counts import slowest
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.counted import counted
from tests.situations import SITUATIONS
from tests.waves import (
    START,
    closed_plan,
    make_run,
    observe,
    on_time,
    open_plan,
    staged,
    streamed,
    talks,
    wave,
    without_digest,
)
from visualization.run_page import run_page, sections, timeline_figures, words
from visualization.run_page.distributions import distribution_figures
from visualization.run_page.drawing import framed, shown_levels
from visualization.run_page.markup import Markup, element
from visualization.run_page.requests import MOST_EXACT, WORST, request_figures
from visualization.run_page.timeline_figures import instance_figures, server_figures, wave_figures
from visualization.run_page.waterfall import steps

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.run_page.figure_types import Figure

HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)>"&\x1b[2J'


def as_wave(facts: WaveFacts) -> Wave:
    return Wave(**{each.name: getattr(facts, each.name) for each in fields(WaveFacts)})


class Page(HTMLParser):
    """The elements of a page that are open and closed as they must be, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.append(tag)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") for name, _ in attrs)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def data_of(text: str) -> list[dict[str, Any]]:
    """The figures that the page's script draws."""
    found = re.search('<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: list[dict[str, Any]] = json.loads(found[1])["figures"]
    return data


def by_title(figures: Any) -> dict[str, Figure]:
    return {figure.title: figure for figure in figures if figure.drawn}


@pytest.mark.parametrize("name", [name for name in SITUATIONS if "lag" not in name and "limit" not in name])
def test_every_wave_has_a_page_that_begins_with_its_verdict(name: str) -> None:
    found = as_wave(SITUATIONS[name][0])
    text = run_page(found)
    assert re.search(
        rf'</header><main id="main"><p class="verdict-line \w+"><b>({found.verdict.word}|FAILED|LIMIT MISSED|PASSED)',
        text,
    )
    page = Page(text)
    assert page.tags.count("h1") == 1
    of_limits = ("slo_missed", "success_below_threshold")  # which the list of limits tells, by their limits
    for finding in found.verdict.findings:
        assert (finding.limit if finding.code in of_limits else finding.code) in page.text
        assert finding.advice.partition("--")[0][:40] in page.text


def test_a_page_asks_nobody_for_anything() -> None:
    text = run_page(wave([[0.02] * 10] * 3)).replace("http://www.w3.org/2000/svg", "")  # the name of SVG, no address
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert set(Page(text).tags) & {"img", "iframe", "object", "form"} == set()


def test_nothing_of_others_becomes_markup() -> None:
    size = 20
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int32)), [HOSTILE])
    outcomes = ["ok", "failed"] * (size // 2)
    hostile = wave(
        [[0.02] * 10] * 2,
        outcomes=outcomes,
        label=names,
        error=names,
        name=HOSTILE,
        endpoint_name=HOSTILE,
        url=HOSTILE,
    )
    metric = ServerMetric(
        "cloudwatch", HOSTILE, {HOSTILE: 1.0}, HOSTILE, dimensions={"a": HOSTILE}, series_of=HOSTILE,
        series=((START + 0.5, 1.0),),
    )  # fmt: skip
    hostile = replace(
        hostile, error_texts={HOSTILE: [HOSTILE]}, server_metrics=(metric,), environment={HOSTILE: HOSTILE}
    )
    text = run_page(hostile)
    page = Page(text)
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert "alert(1)" in page.text
    assert "\x1b" not in text
    assert data_of(text)


def test_pictures_have_every_second_and_the_limits() -> None:
    found = wave([[0.02] * 10] * 30, slos=tuple(map(Slo.parse, ("p99<10ms", "p50<1s", "latency.p90<30ms"))))
    figures = by_title(wave_figures(found, found.summary))
    assert list(figures) == ["Rate", "Latency and response time", "In flight", "Schedule lag"]
    rate = {trace.name: trace.values for trace in figures["Rate"].traces}
    assert rate == {"target": [10.0] * 30, "sent": [10.0] * 30, "completed": [10.0] * 30}
    assert [x for x, _ in figures["Rate"].traces[0].points] == [second + 0.5 for second in range(30)]
    levels = {level.name: (level.value, level.missed) for level in figures["Latency and response time"].levels}
    assert levels == {"p99<10ms": (10.0, True), "p50<1s": (1000.0, False), "latency.p90<30ms": (30.0, False)}
    shown = [level.name for level in shown_levels(figures["Latency and response time"])]
    assert shown == ["p99<10ms", "latency.p90<30ms"]
    assert "p50&lt;1s." in framed(figures["Latency and response time"], 0)


def test_a_long_wave_has_bounded_pictures_and_keeps_its_worst_second() -> None:
    latencies = np.full((5_000, 1), 0.02)
    latencies[3_333] = 0.9
    found = wave(latencies)
    figure = by_title(wave_figures(found, found.summary))["Latency and response time"]
    assert all(len(trace.points) <= 600 for trace in figure.traces)
    assert max(figure.traces[1].values) == pytest.approx(900)


def test_the_closed_loop_has_no_response_time() -> None:
    found = wave([[0.02] * 10] * 3, concurrency=4)
    figures = by_title(wave_figures(found, found.summary))
    assert "Latency" in figures
    assert [trace.name for trace in figures["Rate"].traces] == ["sent", "completed"]
    assert "Response time" not in Page(run_page(found)).text


def test_streams_have_their_own_times(tmp_path: Path) -> None:
    found = make_run(tmp_path / "run", 300, stream=True)
    titles = {*by_title(wave_figures(found, found.summary)), *by_title(distribution_figures(found, found.summary))}
    assert {"TTFT", "Output tokens", "TTFT: percentiles", "ITL: percentiles"} <= titles
    parts = steps(found, found.summary, None)
    assert "network and endpoint, to the first token" in [part.name for part in parts]


def test_sessions_have_a_table_of_their_turns_and_it_is_said_how_many_it_leaves_out() -> None:
    found = as_wave(observe(open_plan("1", "2"), talks(30, 30), environment={"sessions": True}))
    text = Page(run_page(found)).text
    assert re.search(r"Turns/session:\s+mean 30", text)
    assert re.search(r"Turn\s+sent\s+failed\s+TTFT p50\s+p99\s+latency p50\s+p99\s+1\s+2\s+0\s+1 ms", text)
    assert "… and 20 more turns, in summary.json" in text
    few = as_wave(observe(open_plan("1", "2"), talks(3, 3), environment={"sessions": True}))
    assert "more turns" not in Page(run_page(few)).text


def test_stages_are_stretches_of_every_picture_over_time() -> None:
    plan = staged("10:5s, peak=20:5s")
    found = as_wave(observe(plan, on_time(plan)))
    for figure in by_title(wave_figures(found, found.summary)).values():
        assert figure.bands == (("stage 1", 0.0, 5.0), ("peak", 5.0, 10.0))


def test_the_percentiles_end_with_the_slowest_and_the_bars_count_everybody() -> None:
    found = wave(np.linspace(0.01, 0.1, 1000).reshape(10, 100))
    percentiles, histogram = by_title(distribution_figures(found, found.summary)).values()
    assert percentiles.traces[0].points[-1][1] == pytest.approx(100, rel=0.01)
    assert sum(histogram.traces[0].values) == 1000
    assert histogram.traces[0].points[0][0] == pytest.approx(10)


def test_a_small_wave_has_each_request_and_a_large_one_the_slowest_of_each_place() -> None:
    small = wave([[0.02] * 100] * 5)
    cloud = request_figures(small, small.summary).cloud
    assert cloud is not None
    assert len(cloud.traces[0].points) == 500
    latencies = np.random.default_rng(1).lognormal(-3, 0.5, (100, 1000))
    latencies[70, 500], latencies[20, 3] = 9.0, 8.0
    outcomes = np.full(latencies.size, "ok", "<U9")
    outcomes[[40_500, 90_000]] = "failed", "abandoned"
    large = wave(latencies, outcomes=outcomes.tolist())
    cloud = request_figures(large, large.summary).cloud
    assert cloud is not None
    points: dict[str, list[Any]] = {}
    for trace in cloud.traces:
        points.setdefault(trace.name, []).extend(trace.points)
    assert MOST_EXACT > len(points["ok"]) > 500
    assert (70.5, 9000.0) in points["ok"]  # the extremes are there, whatever lies beside them
    assert (20.003, 8000.0) in points["ok"]
    assert [x for x, _ in points["failed"]] == [40.5]
    assert [x for x, _ in points["abandoned"]] == [90.0]
    assert f"{sum(map(len, points.values())):,} of 100,000 requests" in cloud.note
    assert len(run_page(large)) < 500_000


def test_the_slowest_requests_are_named() -> None:
    latencies = np.full((10, 10), 0.02)
    latencies.ravel()[[13, 57, 99]] = 0.5, 0.9, 0.7
    outcomes = ["failed" if index == 57 else "ok" for index in range(100)]
    codes = pa.array(np.zeros(100, np.int32), mask=np.arange(100) != 57)
    found = wave(latencies, outcomes=outcomes, error=pa.DictionaryArray.from_arrays(codes, ["TimeoutError"]))
    worst = request_figures(found, found.summary).worst
    assert len(worst) == WORST
    assert [(record.index, record.outcome, record.error) for record in worst[:3]] == [
        (57, "failed", "TimeoutError"),
        (99, "ok", None),
        (13, "ok", None),
    ]
    page = Page(run_page(found)).text
    assert "900 ms" in page
    assert "failed: TimeoutError" in page


def test_the_payload_of_a_slow_request_is_reported_where_they_are_taken_in_turn() -> None:
    latencies = np.full((10, 10), 0.02)
    latencies.ravel()[57] = 0.9
    found = wave(latencies, first_payload=2)
    assert ">payload<" not in run_page(found)
    reported = run_page(replace(found, environment={"payloads": 7}))
    assert '<td data-of="payload">3</td>' in reported[reported.index('<td data-of="request">57</td>') :][:100]


def test_errors_are_counted_by_key_and_second() -> None:
    keys = ["A", "B"]
    outcomes = ["failed" if index % 2 else "ok" for index in range(100)]
    codes = pa.array((np.arange(100) // 50).astype(np.int32), mask=np.arange(100) % 2 == 0)
    found = wave([[0.02] * 10] * 10, outcomes=outcomes, error=pa.DictionaryArray.from_arrays(codes, keys))
    figure = request_figures(found, found.summary).errors
    assert figure is not None
    assert {trace.name: sum(trace.values) for trace in figure.traces} == {"A": 25, "B": 25}
    assert [y for _, y in figure.traces[0].points] == [5.0] * 5 + [0.0] * 5


def test_requests_that_were_counted_have_a_page_of_the_slowest() -> None:
    plan = open_plan("100", "5", records="none")
    records = [
        record._replace(outcome="failed", error="HttpError 503") if record.index % 10 == 0 else record
        for record in on_time(plan)
    ]
    facts = observe(plan, records)
    found = as_wave(replace(facts, records=slowest(facts.records, 20), counts=counted(records)))
    figures = request_figures(found, found.summary)
    assert figures.cloud is not None
    assert "no record was kept of the others" in figures.cloud.note
    assert figures.errors is not None
    assert sum(figures.errors.traces[0].values) == 50
    assert "HttpError 503" in Page(run_page(found)).text


def test_the_parts_of_the_time_are_the_whole_of_it() -> None:
    plan = open_plan("10", "5", workers=1)
    facts = observe(
        plan, [r._replace(sent=r.due + NS // 500, done=r.due + NS // 10) for r in on_time(plan)],
        workers=(WorkerUse(cpu_share=0.02),),
    )  # fmt: skip
    model = ServerMetric("cloudwatch", "ModelLatency", {"Average": 60_000.0}, "Microseconds", "AWS/SageMaker")
    overhead = ServerMetric("cloudwatch", "OverheadLatency", {"Average": 10_000.0}, "Microseconds", "AWS/SageMaker")
    found = as_wave(replace(facts, server_metrics=(model, overhead)))
    parts = {part.name: part.seconds for part in steps(found, found.summary, None)}
    assert parts == {
        "schedule lag": pytest.approx(0.002),
        "this client's CPU": pytest.approx(0.002),
        "network, and everything else on the way": pytest.approx(0.026),
        "OverheadLatency": pytest.approx(0.01),
        "ModelLatency": pytest.approx(0.06),
    }
    assert sum(parts.values()) == pytest.approx(0.1)
    reported = run_page(found)
    assert [f"{parts[name] / 0.1:.0%})</b>" in reported for name in parts] == [True] * 5
    assert "60 ms (60%)" in reported


def test_the_parts_of_the_time_of_clients_that_repeat_are_those_of_an_attempt() -> None:
    """Their response time has the attempts before it, too."""
    plan = replace(open_plan("10", "5"), retries=Retries(retries=1))
    rows = [
        row
        for first in on_time(plan, NS // 100)
        for row in (
            first._replace(outcome="failed", error="HttpError 503"),
            first._replace(attempt=1, due=first.done, sent=first.done, done=first.done + NS // 20),
        )
    ]
    found = as_wave(observe(plan, rows))
    assert found.summary.response_time is not None
    assert found.summary.response_time.mean == pytest.approx(0.06)
    assert sum(part.seconds for part in steps(found, found.summary, None)) == pytest.approx(0.05)
    assert "The mean time of successful attempts, " in Page(run_page(found)).text


def test_a_server_that_took_longer_than_the_client_saw_is_no_part_of_it() -> None:
    plan = open_plan("10", "5")
    metric = ServerMetric("cloudwatch", "ModelLatency", {"Average": 900_000.0}, "Microseconds", "AWS/SageMaker")
    found = as_wave(observe(plan, on_time(plan), server_metrics=(metric,)))
    assert [part.name for part in steps(found, found.summary, None)][-1] == "network and endpoint"


def test_buckets_of_the_server_hold_to_their_end() -> None:
    plan = open_plan("10", "120")
    series = ((START + 0.0, 10.0), (START + 60.0, 30.0))
    metric = ServerMetric(
        "cloudwatch", "CPUUtilization", {"Average": 20.0}, "Percent", start=START, end=START + 120, series=series,
        series_of="Average",
    )  # fmt: skip
    found = as_wave(observe(plan, on_time(plan), server_metrics=(metric,)))
    (figure,) = server_figures(found, found.summary)
    assert figure.traces[0].points == ((0.0, 10.0), (60.0, 10.0), (60.0, 30.0), (120.0, 30.0))


def test_instances_are_drawn_where_their_number_changed() -> None:
    plan = open_plan("10", "60")
    grown = Followed("e/v", "DescribeEndpoint", (Count(START, 1, 1), Count(START + 20, 1, 2), Count(START + 50, 2, 2)))
    steady = Followed("e/w", "DescribeEndpoint", (Count(START, 1, 1), Count(START + 20, 1, 1)))
    found = as_wave(observe(plan, on_time(plan), instances=(grown, steady)))
    (figure,) = instance_figures(found, found.summary)
    assert figure.title == "Instances of e/v"
    serve, asked = (trace.points for trace in figure.traces)
    assert serve[:-1] == ((0.0, 1), (20.0, 1), (20.0, 1), (50.0, 1), (50.0, 2))
    assert serve[-1][0] >= 59.9
    assert [y for _, y in asked] == [1, 1, 2, 2, 2, 2]
    assert "Instances of e/v" in Page(run_page(found)).text


def test_a_damaged_client_table_is_said(tmp_path: Path) -> None:
    found = make_run(tmp_path / "run", 100)
    (tmp_path / "run" / "client.csv").write_text("unix_s,process,cpu_percent\nx,host,y\n")
    without_digest(RunDir(tmp_path / "run"))
    assert "client.csv: cannot be read" in Page(run_page(found)).text


def test_what_aiperf_measured_stands_beside_the_wave(tmp_path: Path) -> None:
    found = make_run(tmp_path / "run", 100)
    assert "aiperf" not in Page(run_page(found)).text
    (tmp_path / "run" / "aiperf").mkdir()
    table = "Metric,avg,p50,p99\nTime to First Token (ms),12.5,11,40\n\nMetric,Value\nOutput Token Throughput,987.6\n"
    (tmp_path / "run" / "aiperf" / "profile_export_aiperf.csv").write_text(table)
    text = run_page(found)
    values = re.findall(r"<td data-of=[^>]*>([^<]*)</td>", text[text.index(">Time to First Token (ms)</th>") :])
    assert values[:5] == ["12.5", "11", "", "", "40"]
    values = re.findall(r"<td data-of=[^>]*>([^<]*)</td>", text[text.index(">Output Token Throughput</th>") :])
    assert values[0] == "987.6"


def test_a_wave_of_nothing_and_of_one_request() -> None:
    nothing = Page(run_page(as_wave(observe(closed_plan(), [], stopped_at=0))))
    assert "figure" not in nothing.tags
    one = Page(run_page(as_wave(observe(closed_plan(), [streamed(0, 10, (5,))]))))
    assert "figure" in one.tags


def test_an_element_escapes_what_is_no_markup() -> None:
    assert element("p", "<b>", Markup("<i></i>"), None, class_="a", data_x='"<') == (
        '<p class="a" data-x="&quot;&lt;">&lt;b&gt;<i></i></p>'
    )
    assert element("rect", hidden=True, title=None, x=1) == '<rect hidden x="1"/>'


def test_the_plan_stands_at_the_end_as_it_is_stored() -> None:
    text = run_page(wave([[0.02] * 10]))
    plan = text[text.index("The plan (plan.json)") :].partition("<pre>")[2].partition("</pre>")[0]
    assert json.loads(unescape(plan))["load"]["rate"] == "10"
    assert plan.count("\n") > 20


def test_all_times_share_one_axis() -> None:
    found = wave([[0.02] * 10] * 30)
    (span,) = {figure.span for figure in wave_figures(found, found.summary) if figure.drawn}
    assert span == pytest.approx((0.0, 30.0), abs=0.1)


def test_the_seconds_of_a_wave_of_months_are_not_drawn_and_this_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = wave(np.full((5, 4), 0.01), outcomes=["ok"] * 19 + ["failed"])
    assert "Failed requests" in run_page(found)
    monkeypatch.setattr(timeline_figures, "MOST_SECONDS", 4)
    monkeypatch.setattr(sections, "MOST_SECONDS", 4)
    page = run_page(found)
    assert "Seconds are not drawn for a wave longer than 4 s" in page
    assert 'id="seconds"' not in page
    assert 'data-title="Failed requests"' not in page


@pytest.mark.parametrize(("limit", "outcome"), [("p50<1s", "PASSED"), ("p99<1s", "VALID"), ("p99<5ms", "LIMIT MISSED")])
def test_the_first_words_say_whether_a_limit_was_missed(limit: str, outcome: str) -> None:
    found = wave(np.full((5, 4), 0.01), slos=(Slo.parse(limit),))
    (reported,) = re.findall(r'class="verdict-line \w+"><b>([^<]*)</b>', run_page(found))
    assert reported == outcome


def test_a_missed_limit_is_reported_once_with_what_to_do_before_those_that_were_met() -> None:
    outcomes = ["failed"] * 10 + ["ok"] * 10
    latencies = np.full((5, 4), 0.01)
    latencies[3, 0] = 0.001  # one that succeeds meets it, so that less load may help
    found = wave(latencies, outcomes=outcomes, slos=(Slo.parse("p50<1s"), Slo.parse("p99<5ms")))
    page = run_page(found)
    (listed,) = re.findall(r'<ul class="limits">.*?</ul>', page, re.DOTALL)
    assert re.findall(r'<li class="(\w+)">.*?<code>([^<]*)', listed) == [
        ("missed", "success&gt;=95%"),
        ("missed", "p99&lt;5ms"),
        ("kept", "p50&lt;1s"),
    ]
    assert "--client-rps" in listed  # the advice
    assert "slo_missed" not in page.partition('id="times"')[0]
    assert "success_below_threshold" not in page.partition('id="times"')[0]


def test_long_names_that_differ_at_their_end_are_told_apart() -> None:
    routes = [f"/v1/organisations/one/{'models/' * 20}versions/{number}" for number in range(2)]
    found = wave(np.full((5, 4), 0.01), label=pa.array(routes * 10).dictionary_encode())
    page = Page(run_page(found)).text
    assert all(f"versions/{number}" in page for number in range(2))


@pytest.mark.parametrize(("requests", "note"), [(999, "max 12 ms"), (1000, "p99.9 12 ms, max 12 ms")])
def test_the_p99_9_of_few_requests_is_not_told(requests: int, note: str) -> None:
    page = run_page(wave(np.full((1, requests), 0.012)))
    assert re.findall(r">([^<>]*max [^<>]*)<", page.partition('id="times"')[0]) == [note]


def test_a_percentile_says_what_it_is_of_where_its_column_stands_alone() -> None:
    head = ("Turn", "sent", "TTFT p50", "p99", "latency p50", "p99", "context", "p50")
    shown = str(words.table(head, [["1", "12", "8 ms", "19 ms", "24 ms", "28 ms", "200", "5 ms"]]))
    named = ["sent", "TTFT p50", "TTFT p99", "latency p50", "latency p99", "context", "p50"]
    assert re.findall(r'data-of="([^"]*)"', shown) == named
    assert re.findall(r"<th[^>]*>([^<]*)</th>", shown.partition("<tbody>")[0]) == [*head]
