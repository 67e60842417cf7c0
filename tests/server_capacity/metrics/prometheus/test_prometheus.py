"""The stream "prometheus" against the embedded endpoint's page, a real Prometheus server, and what misbehaves."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.embedded.running import EndpointConfig, RunningEndpoint, listen, start
from inference_benchmarker.facts.instances import CannotCountError, gathered
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from inference_benchmarker.report.server_metrics import metric_lines
from server_capacity.metrics.follower import Follower
from server_capacity.metrics.prometheus import make_source, read_block
from server_capacity.metrics.prometheus.block import PageBlock, ServerBlock
from server_capacity.metrics.prometheus.exposition import parse
from server_capacity.metrics.prometheus.items import Item
from server_capacity.metrics.prometheus.presets import PRESETS
from server_capacity.metrics.prometheus.promql.answers import fill
from server_capacity.metrics.prometheus.scraping.history import History, Round
from server_capacity.metrics.prometheus.scraping.reading import MOST_SERIES, read, window_of
from server_capacity.metrics.prometheus.source import Page, Prometheus
from server_capacity.metrics.prometheus.web import Web
from tests.fake_prometheus import Asked, fake
from tests.real_prometheus import free_address, reading
from tests.scripted_server import CLOSE, Script, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PAGE = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics"}
SERVER = {"stream": "prometheus", "url": "http://127.0.0.1:1"}
PREFIX = "demo_endpoint_"
PATIENCE_S = 60


def silent(text: str) -> None:
    """For whoever must say something."""


def collect(
    block: dict[str, Any], interval: Interval | None = None, environment: dict[str, str] | None = None
) -> list[ServerMetric]:
    """Begin and collect over a window that ended now."""
    source = make_source([read_block(block)], environment)
    begun = time.time()
    source.begin()
    now = time.time()
    return source.collect(interval or Interval(begun, begun, now, 0), silent)


# The embedded endpoint's page


@pytest.fixture(scope="module")
def endpoint() -> Iterator[RunningEndpoint]:
    with start(EndpointConfig(servers=4, service_s=0.004)) as running:
        yield running


def load(endpoint: RunningEndpoint, requests: int) -> None:
    """That many requests, one after the other."""
    connection = HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
    for _ in range(requests):
        connection.request("POST", "/invocations", b"{}")
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    connection.close()


def await_rounds(source: Prometheus, more: int) -> None:
    """Until the page was scraped so many times from now on."""
    (page,) = source._parts
    assert isinstance(page, Page)
    rounds = page._scraper.history.rounds
    least, deadline = len(rounds) + more, time.monotonic() + PATIENCE_S
    while len(rounds) < least and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(rounds) >= least


@pytest.mark.process
def test_every_request_is_found_on_the_page(endpoint: RunningEndpoint) -> None:
    selector = PREFIX + 'requests_total{route="/invocations",status="200"}'
    names = {
        selector: ["Total", "Rate"],
        PREFIX + "service_seconds": ["p50", "p99", "Average", "Total"],
        PREFIX + "busy_seconds_total": ["Total"],
        PREFIX + "servers": ["Average", "Last"],
    }
    source = make_source(
        [PageBlock(f"{endpoint.url}/metrics", tuple((name, tuple(each)) for name, each in names.items()), interval=0.2)]
    )
    source.begin()
    await_rounds(source, 2)
    begin = time.time()
    load(endpoint, 150)
    await_rounds(source, 3)
    said: list[str] = []
    found = {row.name: row for row in source.collect(Interval(begin, begin, time.time(), 150), said.append)}
    requests, service = found[selector], found[PREFIX + "service_seconds"]
    assert requests.statistics["Total"] == 150
    assert requests.dimensions["route"] == "/invocations"
    assert service.statistics["Total"] == 150
    assert service.statistics["Average"] == pytest.approx(0.004, rel=1e-6)
    assert 0.0025 < cast("float", service.statistics["p50"]) <= 0.005
    assert found[PREFIX + "busy_seconds_total"].statistics["Total"] == pytest.approx(0.6, rel=1e-6)
    assert found[PREFIX + "servers"].statistics == {"Average": 4.0, "Last": 4.0}
    assert requests.start is not None
    assert requests.end is not None
    assert requests.start <= begin <= requests.end
    assert len(said) == 1
    assert all(decoded(json.loads(json.dumps(encoded(row))), ServerMetric) == row for row in found.values())


@pytest.mark.process
def test_a_source_serves_a_second_wave_anew(endpoint: RunningEndpoint) -> None:
    name = PREFIX + "service_seconds"
    block = {**PAGE, "scrape_url": f"{endpoint.url}/metrics", "metrics": {name: ["Total"]}, "interval": 0.2}
    source = make_source([read_block(block)])
    for requests in (20, 30):
        source.begin()
        await_rounds(source, 2)
        begin = time.time()
        load(endpoint, requests)
        (row,) = source.collect(Interval(begin, begin, time.time(), requests), silent)
        assert row.statistics == {"Total": requests}


# A real Prometheus server


@pytest.fixture(scope="module")
def prometheus(endpoint: RunningEndpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus server that scrapes the endpoint four times a second."""
    with reading(f"127.0.0.1:{endpoint.port}", tmp_path_factory.mktemp("prometheus"), "250ms") as url:
        await_scrapes(url)
        yield url


def await_scrapes(url: str) -> None:
    """Until the server has scraped for two seconds."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        now = time.time()
        row = ask(url, Interval(now - 60, now - 60, now, 0), n=f"count_over_time({PREFIX}servers[1m])")["n"]
        if (row.statistics["Value"] or 0) >= 8:
            return
        time.sleep(0.2)
    raise AssertionError("Prometheus has not scraped")


def ask(url: str, interval: Interval, **queries: str) -> dict[str, ServerMetric]:
    return {row.name: row for row in collect({**SERVER, "url": url, "queries": queries}, interval)}


@pytest.fixture(scope="module")
def wave(endpoint: RunningEndpoint, prometheus: str) -> Interval:
    """200 requests, and the window at whose end the server has seen them all; it has scraped since then."""
    begin = time.time()
    load(endpoint, 200)
    counted = PREFIX + "service_seconds_count"
    (truth,) = parse(endpoint.metrics(), {counted}).samples
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        window = Interval(begin, begin, time.time(), 200)
        if ask(prometheus, window, n=counted)["n"].statistics["Value"] == truth.value:
            break
        time.sleep(0.2)
    while time.monotonic() < deadline:
        later = Interval(begin, begin, time.time(), 200)
        if (ask(prometheus, later, at=f"timestamp({counted})")["at"].statistics["Value"] or 0) > window.end:
            return window
        time.sleep(0.2)
    raise AssertionError("the requests were not scraped")


@pytest.mark.process
def test_a_real_server_counts_replicas(prometheus: str, endpoint: RunningEndpoint) -> None:
    block = {**SERVER, "url": prometheus, "replicas": 'count(up{job="benchmark"} == 1)'}
    (replicas,) = make_source([read_block(block)]).instances()
    lines: list[dict[str, Any]] = []
    follower = Follower([replicas], 1)
    with follower.following(lines.append):
        deadline = time.monotonic() + PATIENCE_S
        while not follower.latest() and time.monotonic() < deadline:
            time.sleep(0.01)
    (followed,) = follower.followed(Interval.past(0, 1))
    assert [count.current for count in followed.counts] == [1, 1]
    assert followed.of == f"replicas at {prometheus.removeprefix('http://')}"
    assert list(gathered(lines)) == [followed]
    assert endpoint.metrics().count("demo_endpoint_instances 1") == 1, "as the endpoint itself says"


@pytest.mark.process
@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("demo_endpoint_instances", None),
        ("up * {window}", "parse error"),
        ("nothing_like_that", "the query found no series"),
        ("count by (le) (demo_endpoint_service_seconds_bucket)", "series: put sum"),
        ("-up", "the query gives -1"),
    ],
)
def test_what_counts_no_replicas_is_said(query: str, reason: str | None, prometheus: str) -> None:
    (replicas,) = make_source([ServerBlock(prometheus, replicas=query)]).instances()
    if reason is None:
        assert replicas.count().current == 1
        return
    with pytest.raises(CannotCountError, match=reason) as raised:
        replicas.count()
    assert not raised.value.final, "it may be there later"


@pytest.mark.process
def test_a_real_server_counts_every_request(prometheus: str, endpoint: RunningEndpoint, wave: Interval) -> None:
    count = PREFIX + "service_seconds_count"
    found = ask(
        prometheus,
        wave,
        gained=f"{count} - ({count} offset {{window}})",
        servers=PREFIX + "servers",
        two="1 + 1",
    )
    assert found["gained"].statistics == {"Value": 200.0}
    assert found["gained"].dimensions == {"instance": f"127.0.0.1:{endpoint.port}", "job": "benchmark"}
    assert (found["gained"].start, found["gained"].end) == (wave.start, wave.end)
    assert found["servers"].statistics == {"Value": 4.0}
    assert found["servers"].start == found["servers"].end == wave.end
    assert found["servers"].series
    assert all(wave.start - 0.001 <= at <= wave.end + 0.001 for at, _ in found["servers"].series)
    assert found["two"].statistics == {"Value": 2.0}
    assert all(row.complete for row in found.values())


@pytest.mark.process
def test_a_real_server_and_the_page_agree_on_quantiles(
    prometheus: str, endpoint: RunningEndpoint, wave: Interval
) -> None:
    """The same buckets, read by us and by histogram_quantile."""
    name = PREFIX + "service_seconds"
    history = History()
    history.add(Round(0.0, 0.0, 0.0), parse("x 1\n"))
    history.add(Round(9.0, 9.0, 9.0), parse(endpoint.metrics()))
    window = window_of(history, Interval(1.0, 1.0, 8.0, 0), 100.0)
    statistics = ["p10", "p50", "p90", "p99"]
    (ours,) = read(PageBlock("http://h/metrics", ((name, tuple(statistics)),)).wanted[0], window, "h")
    queries = {each: f"histogram_quantile({int(each[1:]) / 100}, {name}_bucket)" for each in statistics}
    theirs = ask(prometheus, wave, **queries)
    for each in statistics:
        assert ours.statistics[each] == pytest.approx(theirs[each].statistics["Value"], rel=1e-9)


@pytest.mark.process
def test_a_real_servers_words_are_the_reason(prometheus: str, wave: Interval) -> None:
    found = ask(
        prometheus,
        wave,
        broken="rate(",
        none="no_such_metric",
        nan="0 / 0 * vector(1)",
        infinite="vector(1) / 0",
        ranged="up[1m]",
        text='"a"',
        good="up",
    )
    assert "bad_data: " in str(found["broken"].reason)
    assert "parse error" in str(found["broken"].reason)
    assert found["none"].reason == "the query found no series"
    assert found["nan"].reason == "the value is NaN"
    assert found["infinite"].reason == "the value is +Inf"
    assert "put rate(" in str(found["ranged"].reason)
    assert "a text, not a number" in str(found["text"].reason)
    assert found["good"].statistics == {"Value": 1.0}
    assert [name for name, row in found.items() if row.complete] == ["good"]


@pytest.mark.process
def test_presets_are_promql_that_a_real_server_takes(prometheus: str, wave: Interval) -> None:
    found = collect({**SERVER, "url": prometheus, "preset": list(PRESETS), "labels": {"job": "benchmark"}}, wave)
    required = [(preset, item.name) for preset, items in PRESETS.items() for item in items if not item.optional]
    assert [(row.namespace, row.name) for row in found] == required
    assert all("the server has n" in str(row.reason) for row in found)


@pytest.mark.process
@pytest.mark.parametrize("step", [1, 60])
def test_a_preset_reads_a_real_server(
    step: float, prometheus: str, wave: Interval, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A course ends with its window, whatever its step: what came in the last step of a short load is in it."""
    items = (
        Item("servers", "gauge", ("no_such_metric", PREFIX + "servers")),
        Item("busy", "counter", ("no_such_metric", PREFIX + "busy_seconds_total")),
        Item("time", "histogram", ("no_such_metric", PREFIX + "service_seconds")),
    )
    monkeypatch.setitem(PRESETS, "vllm", items)
    wave = Interval(wave.begin - 1, wave.start - 1, wave.end, 200)  # rate() wants a scrape before the load, too
    found = {row.name: row for row in collect({**SERVER, "url": prometheus, "preset": "vllm", "step": step}, wave)}
    assert found["servers"].statistics == {"Average": 4.0, "Maximum": 4.0, "Last": 4.0}
    assert found["servers"].dimensions["__name__"] == PREFIX + "servers"
    assert found["busy"].statistics == pytest.approx({"Rate": 0.8 / (wave.end - wave.start), "Total": 0.8})
    assert found["busy"].bounds == {}, "between the samples around the window lies all of it, and nothing else"
    assert found["servers"].samples
    assert found["time"].samples == 200
    assert 0.0025 < cast("float", found["time"].statistics["p50"]) <= 0.005
    assert found["time"].statistics["Average"] == pytest.approx(0.004, rel=1e-6)
    assert found["time"].bounds == {"Minimum": "at_least", "Maximum": "at_most"}
    assert (found["time"].statistics["Minimum"], found["time"].statistics["Maximum"]) == (0.0025, 0.005)
    fields = {name: (row.complete, row.reason, len(row.series)) for name, row in found.items()}
    assert all(complete and points for complete, _, points in fields.values()), fields


@pytest.mark.process
def test_a_real_servers_quantiles_are_bounds_where_they_are_no_more(prometheus: str, wave: Interval) -> None:
    """The service takes 4 ms: in the bucket of 5 ms, and in the first of two where those below are left out."""
    name = PREFIX + "service_seconds_bucket"
    gained = f"{name} - {name} offset {{window}}"
    coarse = gained.replace(name, f'{name}{{le=~"0.005|0.01|.Inf"}}')
    beyond = gained.replace(name, f'{name}{{le=~"0.001|0.0025|.Inf"}}')
    queries = {each: f"histogram_quantile(0.9, {text})" for each, text in (("in", gained), ("in_first", coarse))}
    before = f'increase({name}{{le=~"0.005|0.01|.Inf"}}[1h])'
    queries["before"] = f"histogram_quantile(0.9, {before})"
    found = ask(prometheus, wave, **queries, in_last=f"histogram_quantile(0.9, {beyond})")
    assert (found["in"].bounds, 0.0025 < cast("float", found["in"].statistics["Value"]) < 0.005) == ({}, True)
    assert found["in"].buckets == {"Value": (0.0025, 0.005)}
    assert (found["in_first"].statistics, found["in_first"].bounds) == ({"Value": 0.005}, {"Value": "at_most"})
    assert (found["in_last"].statistics, found["in_last"].bounds) == ({"Value": 0.0025}, {"Value": "at_least"})
    assert next(metric_lines([found["in_first"]])).startswith("   in_first: Value<=0.005")
    assert (found["before"].bounds, found["before"].complete) == ({"Value": "about"}, False)
    assert "its range of 3600 s begins before the window" in str(found["before"].reason)


@pytest.mark.process
def test_a_past_window_is_read_without_a_wave(
    prometheus: str, endpoint: RunningEndpoint, wave: Interval, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = PREFIX + "service_seconds_count"
    queries = {"gained": f"{counted} - ({counted} offset {{window}})", "none": "no_such_metric"}
    page = {**PAGE, "scrape_url": f"{endpoint.url}/metrics", "metrics": [counted]}
    config = tmp_path / "metrics.json"
    config.write_text(json.dumps([{**SERVER, "url": prometheus, "queries": queries}, page]))
    window = f"{wave.start}..{wave.end}"
    assert main(["metrics", "--endpoint-config", str(config), "--window", window, "--json"]) == 1, "two have no value"
    fields = json.loads(capsys.readouterr().out)
    found = {row["name"]: decoded(row, ServerMetric) for row in fields["server_metrics"]}
    assert fields["window"] == {"start_unix_s": wave.start, "end_unix_s": wave.end}
    assert found["gained"].statistics == {"Value": 200.0}
    assert found["none"].reason == "the query found no series"
    assert "a metrics page keeps no history" in str(found[counted].reason)


# Servers that misbehave


@pytest.mark.parametrize(
    ("status", "text", "kind", "said"),
    [
        (404, "nothing here", "text/plain", "HTTP 404 Not Found: nothing here"),
        (500, "", "text/plain", "HTTP 500 Internal Server Error"),
        (401, "who are you?", "text/plain", "bearer_token_env"),
        (302, "", "text/plain", "redirects are not followed"),
        (200, "<html></html>", "text/html; charset=utf-8", "an HTML page"),
        (200, "m{ 1", "text/plain", "line 1 is not in Prometheus' text format"),
        (200, "m 1\n", "application/openmetrics-text; version=1.0.0", "cut off"),
        (200, "x 1\n", "text/plain", "the page has no m"),
    ],
)
def test_a_page_that_is_none_is_the_reason(status: int, text: str, kind: str, said: str) -> None:
    with fake(status, text, kind) as server:
        (row,) = collect({**PAGE, "scrape_url": server.url, "metrics": ["m"]})
    assert set(row.statistics.values()) == {None}
    assert not row.complete
    assert said in str(row.reason)


def test_a_page_that_ends_too_soon_is_the_reason() -> None:
    with fake(200, "m 1\n") as server:
        server.withheld = 10
        (row,) = collect({**PAGE, "scrape_url": server.url, "metrics": ["m"]})
    assert "did not speak HTTP to the end" in str(row.reason)


def test_what_cannot_be_reached_is_the_reason() -> None:
    url = f"http://{free_address()}"
    (row,) = collect({**PAGE, "scrape_url": url, "metrics": ["m"]})
    assert "cannot be reached (Connection refused)" in str(row.reason)
    found = collect({**SERVER, "url": url, "queries": {"a": "up", "b": "up"}, "preset": "tgi"})
    assert {row.name for row in found} >= {"a", "b", "queue_length"}
    assert all("cannot be reached" in str(row.reason) and not row.complete for row in found)


def test_a_server_that_hangs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_capacity.metrics.prometheus.promql.api.TIMEOUT_S", 0.3)
    with listen() as sock:
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        found = collect({**SERVER, "url": url, "queries": {str(i): "up" for i in range(500)}})
    assert len(found) == 500
    assert all("did not answer within 0.3 s" in str(row.reason) for row in found)


def test_a_page_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_capacity.metrics.prometheus.scraping.scraper.TIMEOUT_S", 0.3)
    with listen() as sock:
        (row,) = collect({**PAGE, "scrape_url": f"http://127.0.0.1:{sock.getsockname()[1]}", "metrics": ["m"]})
    assert "did not answer within 0.3 s" in str(row.reason)


def test_a_head_that_comes_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_capacity.metrics.prometheus.scraping.scraper.TIMEOUT_S", 0.3)
    begun = time.monotonic()
    with ScriptedServer(
        [[b"HTTP/1.1 200 OK\r\nX: ", *cast("Script", [b"x", 0.1] * 300), b"\r\n\r\nm 1\n", CLOSE]]
    ) as server:
        (row,) = collect({**PAGE, "scrape_url": server.url, "metrics": ["m"]})
    assert time.monotonic() - begun < 20, "the head, which takes 30 s, was not waited for"
    assert "did not answer within 0.3 s" in str(row.reason)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, "<html>", "not Prometheus' JSON"),
        (200, "[]", "not Prometheus' JSON"),
        (200, '{"status":"success","data":null}', "not Prometheus' JSON"),
        (200, '{"status":"success","data":{"resultType":"vector","result":{"a":1}}}', "not Prometheus' JSON"),
        (200, '{"status":"success","data":{"resultType":"vector","result":[{"value":[1]}]}}', "not Prometheus' JSON"),
        (200, '{"status":"success","data":{"resultType":"vector","result":[{"histogram":[]}]}}', "native histograms"),
        (422, '{"status":"error","errorType":"execution","error":"too many samples"}', "execution: too many samples"),
        (503, '{"status":"error","errorType":"timeout","error":"query timed out"}', "timeout: query timed out"),
        (403, "forbidden", "HTTP 403 Forbidden; name the variable"),
        (502, "", "HTTP 502 Bad Gateway"),
    ],
)
def test_a_server_that_answers_otherwise_is_the_reason(status: int, body: str, said: str) -> None:
    with fake(status, body, "application/json") as server:
        (row,) = collect({**SERVER, "url": server.url, "queries": {"a": "up"}})
    assert row.statistics == {"Value": None}
    assert not row.complete
    assert said in str(row.reason)


def vector_of(*values: str, warnings: list[str] | None = None) -> str:
    result = [{"metric": {"i": f"{i:03}"}, "value": [1.0, value]} for i, value in enumerate(values)]
    data = {"resultType": "vector", "result": result}
    return json.dumps({"status": "success", "data": data, "warnings": warnings or []})


def test_the_window_is_filled_in_and_the_end_is_asked_for() -> None:
    with fake(200, vector_of("1"), "application/json") as server:
        block = {**SERVER, "url": server.url + "/prefix/", "queries": {"a": "rate(x[{window}])"}, "step": 2}
        (row,) = collect(block, Interval(90.0, 100.0, 160.5, 1))
    instant = next(each for each in server.parameters if "time" in each)
    assert instant == {"query": "rate(x[60500ms])", "time": "160.500"}
    courses = [each for each in server.parameters if "step" in each]
    assert courses[0] == {"query": "rate(x[5000ms])", "start": "100.500", "end": "160.502", "step": "2"}
    assert courses[-1]["query"] == "rate(x[60500ms])"
    assert set(server.asked) == {"/prefix/api/v1/query", "/prefix/api/v1/query_range"}
    assert (row.start, row.end) == (100.0, 160.5)
    assert fill("a[{window}] b[{window}]", 0.0) == "a[1ms] b[1ms]"


def test_a_query_that_is_too_heavy_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server_capacity.metrics.prometheus.promql.api.TIMEOUT_S", 1.5)
    enough = threading.Event()

    def answer(asked: Asked) -> tuple[int, str] | None:
        if "heavy" in asked.parameters["query"]:
            enough.wait(PATIENCE_S)
        return None

    with fake(200, vector_of("1"), "application/json") as server:
        server.answer = answer
        found = collect(
            {
                **SERVER,
                "url": server.url,
                "queries": {name: f"rate({name}[{{window}}])" for name in ("a", "heavy", "c")},
            }
        )
        enough.set()
    assert [row.statistics["Value"] for row in found] == [1.0, None, 1.0]
    assert "did not answer within 1.5 s" in str(found[1].reason)


def test_a_statistic_that_is_refused_takes_no_other_with_it() -> None:
    def answer(asked: Asked) -> tuple[int, str] | None:
        refused = "max_over_time" in asked.parameters["query"]
        return (422, '{"status":"error","errorType":"execution","error":"too many samples"}') if refused else None

    with fake(200, vector_of("3"), "application/json") as server:
        server.answer = answer
        found = collect({**SERVER, "url": server.url, "preset": "sglang"})
    (queue,) = (row for row in found if row.name == "queue_length")
    assert queue.statistics == {"Average": 3.0, "Maximum": None, "Last": 3.0}
    assert "Maximum: execution: too many samples" in str(queue.reason)
    assert queue.samples == 3


@pytest.mark.parametrize(
    ("gained", "sampled", "said"),
    [
        ("120", (97.0, 151.0), "too few lie inside"),
        ("120", (70.0, 159.0), "are 89 s apart, which says too little of 60 s"),
        ("120", (99.0, 129.0), "are 30 s apart, which says too little of 60 s"),
        ("0", (99.0, 99.0), "the server has no sample within the window of 60 s"),
        ("-500", (97.0, 157.0), "it began again from zero"),
    ],
)
def test_where_too_few_samples_lie_inside_the_last_ones_before_the_ends_are_compared_if_these_are_close(
    gained: str, sampled: tuple[float, float], said: str
) -> None:
    """Else what came before the window counts, or what came last does not, or there is nothing to compare."""

    def answer(asked: Asked) -> tuple[int, str] | None:
        query = asked.parameters["query"]
        values = [[sampled[0], "500"], [sampled[1], str(500 + int(gained))]]
        labels: list[dict[str, str]] = [{"le": "1"}, {"le": "+Inf"}] if "_bucket" in query else [{}]
        result = [{"metric": each, "values": values} for each in labels if query.endswith("[180000ms]")]
        return 200, json.dumps(
            {"status": "success", "data": {"resultType": "matrix" if result else "vector", "result": result}}
        )

    with fake(200, "") as server:
        server.kind, server.answer = "application/json", answer
        found = collect({**SERVER, "url": server.url, "preset": "sglang"}, Interval(100.0, 100.0, 160.0, 1))
    known = said == "too few lie inside"
    for name, values in (
        ("output_tokens", {"Rate": 2.0, "Total": 120.0}),
        ("queue_time", {"Average": 1.0, "p50": 1.0, "p99": 1.0}),
    ):
        (row,) = (each for each in found if each.name == name)
        assert said in str(row.reason)
        assert row.complete == known
        assert row.statistics.items() >= (values if known else dict.fromkeys(values)).items()
        assert row.bounds == (dict.fromkeys(row.statistics, "about") if known else {})


@pytest.mark.parametrize(
    ("query", "sampled", "reason"),
    [
        ("sum(rate(x[{window}]))", (100.5, 107.9), None),
        ("sum(rate(x[{window}]))", (102.5, 107.5), "leave out 3 s of 8 s"),
        ("increase(x[{window}])", (102.5, 107.5), "leave out 3 s of 8 s"),
        ("avg_over_time(x[{window}])", (102.5, 107.5), None),
        ("increase(x[{window}])", (), "the server does not show the samples"),
    ],
)
def test_what_a_query_extrapolates_to_a_window_of_which_it_has_few_samples_is_about_so_much(
    query: str, sampled: tuple[float, ...], reason: str | None
) -> None:
    def answer(asked: Asked) -> tuple[int, str] | None:
        if not asked.parameters["query"].startswith("x["):
            return None
        result = [
            {"metric": {}, "values": [[at, "1"] for at in (90, *sampled)]},
            {"metric": {"old": "1"}, "values": [[90, "1"]]},
        ]
        data = {"resultType": "matrix", "result": result}
        return 200 if sampled else 422, json.dumps({"status": "success" if sampled else "error", "data": data})

    with fake(200, vector_of("1"), "application/json") as server:
        server.answer = answer
        (row,) = collect({**SERVER, "url": server.url, "queries": {"a": query}}, Interval(100.0, 100.0, 108.0, 1))
    assert row.statistics == {"Value": 1.0}
    assert row.bounds == ({} if reason is None else {"Value": "about"})
    assert (reason or "None") in str(row.reason)


def test_many_series_and_warnings_are_reported() -> None:
    with fake(
        200, vector_of(*map(str, range(MOST_SERIES + 30)), warnings=["a store is down"]), "application/json"
    ) as server:
        found = collect({**SERVER, "url": server.url, "queries": {"a": "rate(x[{window}])"}})
    assert [row.dimensions["i"] for row in found] == [f"{i:03}" for i in range(30, MOST_SERIES + 30)]
    assert "a store is down" in str(found[0].reason)
    assert "30 more series" in str(found[-1].reason)


def test_the_window_is_that_of_the_servers_clock_and_the_row_is_by_ours() -> None:
    now = float(round(time.time()))
    window = Interval(now - 60, now - 60, now, 1)
    with fake(200, vector_of("1"), "application/json") as server:
        server.date = formatdate(now - 40, usegmt=True)
        (row,) = collect({**SERVER, "url": server.url, "queries": {"a": "rate(x[{window}])"}}, window)
    ends = [float(each["time"]) for each in server.parameters if "rate" in each["query"] and "time" in each]
    assert ends == [pytest.approx(now - 40, abs=2)]
    assert "s ahead of the server's: the window is corrected for that" in str(row.reason)
    assert row.statistics == {"Value": 1.0}
    assert [row.start, row.end] == pytest.approx([now - 60, now])


@pytest.mark.parametrize(
    ("query", "last", "value"),
    [
        ("x", 101.0, 1.0),
        ("x", 100.0, None),
        ("max(x) - y", 99.0, None),
        ("max(x offset 5s)", 99.0, 1.0),
        ("rate(x[{window}])", 99.0, 1.0),
    ],
)
def test_a_sample_of_before_the_window_is_not_its_value(query: str, last: float, value: float | None) -> None:
    """Of an instant selector a server gives a sample of up to five minutes before."""

    def answer(asked: Asked) -> tuple[int, str] | None:
        return (200, vector_of(str(last))) if "timestamp(" in asked.parameters["query"] else None

    with fake(200, vector_of("1"), "application/json") as server:
        server.answer = answer
        (row,) = collect({**SERVER, "url": server.url, "queries": {"a": query}}, Interval(100.0, 100.0, 108.0, 1))
    assert row.statistics == {"Value": value}
    assert row.complete == (value is not None)
    assert ("no sample within the window of 8 s" in str(row.reason)) == (value is None)


@pytest.mark.parametrize(
    ("query", "seconds", "reason"),
    [
        ("rate(x[1m])", 48.0, None),
        ("rate(x[1m])", 40.0, "its range of 60 s begins before the window of 40 s"),
        ("max_over_time(rate(x[10s])[{window}:1s])", 40.0, "its range of 50 s begins before the window of 40 s"),
        ("avg_over_time(rate(x[10s])[{window}:1s])", 40.0, None),
        ("max_over_time(x[{window}])", 40.0, None),
        ("max_over_time(sum(rate(x[{window}]))[{window}:1s])", 40.0, "its range of 80 s begins before the window"),
        ("x offset 5m", 40.0, "its range of 300 s begins before the window"),
        ("rate(x[5i])", 40.0, "a range, offset or @ in it may begin before the window"),
    ],
)
def test_a_range_that_begins_before_the_window_is_about_so_much(query: str, seconds: float, reason: str | None) -> None:
    with fake(200, vector_of("1"), "application/json") as server:
        window = Interval(100.0, 100.0, 100.0 + seconds, 1)
        (row,) = collect({**SERVER, "url": server.url, "queries": {"a": query}}, window)
    assert row.complete == (reason is None)
    assert row.bounds == ({} if reason is None else {"Value": "about"})
    assert next(metric_lines([row])).startswith(f"   a: Value{'=' if reason is None else '~'}1")
    assert (reason or "None") in str(row.reason)


def test_secrets_are_sent_and_hidden() -> None:
    environment = {"TOKEN": "s3cr3t-token\n", "PASSWORD": "pa:ss"}
    bearer, basic = {"bearer_token_env": "TOKEN"}, {"username": "me", "password_env": "PASSWORD"}
    with fake(200, "m 1\n") as server:
        for credentials in (bearer, basic):
            collect({**PAGE, "scrape_url": server.url, "metrics": ["m"], **credentials}, None, environment)
    assert set(server.authorizations) == {"Bearer s3cr3t-token", "Basic " + base64.b64encode(b"me:pa:ss").decode()}
    with fake(401, "I do not know s3cr3t-token") as server:
        (row,) = collect({**PAGE, "scrape_url": server.url, "metrics": ["m"], **bearer}, None, environment)
    assert "I do not know [hidden]" in str(row.reason)
    sent = base64.b64encode(b"me:pass/word+123").decode()
    with fake(401, f"I do not know {sent} nor pass%2Fword%2B123") as server:
        environment = {"PASSWORD": "pass/word+123"}
        (row,) = collect({**PAGE, "scrape_url": server.url, "metrics": ["m"], **basic}, None, environment)
    assert sent[6:] not in str(row.reason)
    assert "%2Fword" not in str(row.reason)


@pytest.mark.parametrize("after", [0, 4])
def test_ctrl_c_ends_the_waiting_with_what_there_is(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[str]()

    def interrupting(callable_: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            asked["requests"] += 1
            if asked["requests"] > after:
                raise KeyboardInterrupt
            return callable_(*arguments)

        return call

    with fake(200, vector_of("1"), "application/json") as server:
        queries = dict.fromkeys(("a", "b"), "rate(x[{window}])")
        page = {**PAGE, "scrape_url": server.url, "metrics": ["m"]}
        source = make_source([ServerBlock(server.url, tuple(queries.items())), read_block(page)])
        monkeypatch.setattr("server_capacity.metrics.prometheus.web.Web.get", interrupting(Web.get))
        now = time.time()
        found = source.collect(Interval(now - 1, now - 1, now, 0), silent)
    assert [row.name for row in found] == ["a", "b", "m"]
    assert found[0].statistics == {"Value": 1.0 if after else None}
    assert found[1].reason == "interrupted before it was read"
    assert not found[2].complete
