"""The stream "prometheus" without a network: what may stand in a block, how rounds are read, presets, the thread."""

from __future__ import annotations

import json
import math
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, ClassVar, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.server_metric import Interval, ServerMetric
from inference_benchmarker.report.server_metrics import metric_lines
from server_capacity.metrics.prometheus import check_block, exposition, make_source, read_block
from server_capacity.metrics.prometheus.block import Credentials
from server_capacity.metrics.prometheus.derived import derived
from server_capacity.metrics.prometheus.exposition import (
    TOO_LARGE,
    ExpositionError,
    Page,
    Sample,
    held_by,
    parse,
    parse_selector,
    render_selector,
)
from server_capacity.metrics.prometheus.presets import DEFAULTS, PRESETS
from server_capacity.metrics.prometheus.promql.answers import over_time, quantile_of
from server_capacity.metrics.prometheus.scraping import history as kept
from server_capacity.metrics.prometheus.scraping.history import FULL, TOO_MANY, History, Round
from server_capacity.metrics.prometheus.scraping.reading import MOST_SERIES, read, window_of
from server_capacity.metrics.prometheus.scraping.scraper import SKIPPED, PageFetcher, Scraper, instants
from server_capacity.metrics.prometheus.scraping.series import MOST_POINTS
from server_capacity.metrics.prometheus.web import Web, WebError
from tests.case import case
from tests.mentions import mentions
from tests.metrics_page import wanted_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

PAGE = {"stream": "prometheus", "scrape_url": "http://127.0.0.1:1/metrics"}
SERVER = {"stream": "prometheus", "url": "http://127.0.0.1:1"}


# What is wrong with a block


@pytest.mark.parametrize(
    "block",
    [
        {**PAGE, "metrics": ["up"]},
        {**PAGE, "metrics": {'up{a="1"}': ["Last", "p99", "p99.9", "Rate"]}, "interval": 0.5},
        {**PAGE, "preset": "vllm", "labels": {"model_name": "m"}, "bearer_token_env": "TOKEN"},
        {**PAGE, "preset": ["triton", "dcgm"], "username": "me", "password_env": "PASSWORD"},
        {**SERVER, "queries": {"a": "rate(x[{window}])"}, "step": 5, "lag": 10, "preset": "sglang"},
        {**SERVER, "url": "https://example.org:9090/prometheus/", "queries": {"a": "up"}},
        {**SERVER, "replicas": 'count(up{job="a"} == 1)'},
        {**SERVER, "preset": "vllm", "sigv4": True, "region": "eu-west-3", "service": "aps"},
    ],
)
def test_a_block_that_is_right(block: dict[str, Any]) -> None:
    assert check_block(block, "block 1") == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"stream": "prometheus", "metrics": ["a"]}, "neither is here"),
    ({**PAGE, "url": "http://a", "metrics": ["a"]}, "both are here"),
    ({**PAGE, "metrics": ["a"], "Interval": 1}, "Did you mean 'interval'?"),
    ({**PAGE, "metrics": ["a"], "zzz": 1}, "Keys are stream, preset"),
    ({**PAGE, "scrape_url": "localhost:8000/metrics", "metrics": ["a"]}, "begins with http:// or https://"),
    ({**PAGE, "scrape_url": "ftp://a/metrics", "metrics": ["a"]}, "begins with http:// or https://"),
    ({**PAGE, "scrape_url": "http://a:99999/", "metrics": ["a"]}, "begins with http:// or https://"),
    ({**PAGE, "scrape_url": 7, "metrics": ["a"]}, "begins with http:// or https://"),
    ({**PAGE, "scrape_url": "http://me:secret@a/", "metrics": ["a"]}, "holds credentials"),
    ({**SERVER, "url": "http://a/api/v1/query", "queries": {"a": "b"}}, "without /api/v1"),
    ({**SERVER, "queries": ["up"]}, "must be an object of names and PromQL"),
    ({**SERVER, "queries": {}}, "must be an object of names and PromQL"),
    ({**SERVER, "queries": {"a": 1}}, "must be an object of names and PromQL"),
    ({**SERVER, "replicas": ["up"]}, '"replicas" must be the PromQL that counts'),
    ({**SERVER, "replicas": " "}, '"replicas" must be the PromQL that counts'),
    ({**SERVER, "replicas": "count(rate(up[$__range]))"}, "write {window} for a minute"),
    ({**PAGE, "metrics": ["a"], "replicas": "count(up)"}, '"replicas" goes with "url"'),
    ({**SERVER, "queries": {"a": " "}}, "'a' is empty"),
    ({**SERVER, "queries": {"a": "rate(x[$__range])"}}, "write {window}"),
    ({**SERVER, "metrics": ["a"]}, 'goes with "scrape_url"'),
    ({**PAGE, "queries": {"a": "b"}}, "does not answer queries"),
    (dict(SERVER), "requests nothing"),
    (dict(PAGE), "requests nothing"),
    (
        {**PAGE, "preset": "vlm"},
        "presets are vllm, vllm_detailed, triton, dcgm, node, tgi, sglang, torchserve. Did you mean 'vllm'?",
    ),
    ({**PAGE, "preset": []}, "is empty"),
    ({**PAGE, "preset": ["tgi", "tgi"]}, "names one twice"),
    ({**PAGE, "preset": 3}, "is 3"),
    ({**PAGE, "metrics": "a"}, "must be a list of names"),
    ({**PAGE, "metrics": []}, "must be a list of names"),
    ({**PAGE, "metrics": ["a", "a"]}, "names 'a' twice"),
    ({**PAGE, "metrics": ["a{b"]}, "must be a metric's name"),
    ({**PAGE, "metrics": {"a": "Rate"}}, "must have a list of statistics"),
    ({**PAGE, "metrics": {"a": ["Maxmum"]}}, "Did you mean 'Maximum'?"),
    ({**PAGE, "metrics": {"a": ["p101"]}}, "percentiles as p99"),
    ({**PAGE, "metrics": {"a": ["Rate", "Rate"]}}, "has a statistic twice"),
    ({**PAGE, "metrics": ["a"], "interval": 0}, "from 0.1 to 60"),
    ({**PAGE, "metrics": ["a"], "interval": True}, "from 0.1 to 60"),
    ({**SERVER, "queries": {"a": "b"}, "lag": "1"}, "from 0 to 3600"),
    ({**SERVER, "queries": {"a": "b"}, "labels": {"a": "b"}}, "write them into the PromQL"),
    ({**PAGE, "preset": "tgi", "labels": ["a"]}, "must be an object of label names"),
    ({**PAGE, "metrics": ["a"], "bearer_token_env": "Bearer abc"}, "the secret itself stays out"),
    ({**PAGE, "metrics": ["a"], "username": "me"}, '"username" and "password_env" together'),
    ({**PAGE, "metrics": ["a"], "username": "a:b", "password_env": "P"}, "without a colon"),
    ({**PAGE, "metrics": ["a"], "username": "a", "password_env": "P", "bearer_token_env": "T"}, "not both"),
    ({**SERVER, "preset": "vllm", "sigv4": "yes"}, "must be true or false"),
    ({**SERVER, "preset": "vllm", "sigv4": True, "bearer_token_env": "T"}, "not both"),
    ({**SERVER, "preset": "vllm", "sigv4": True, "region": "Europe (Paris)"}, "such as us-east-1"),
    ({**SERVER, "preset": "vllm", "region": "eu-west-3"}, 'goes with "sigv4": true'),
    ({**PAGE, "preset": "vllm", "sigv4": True}, '"sigv4" goes with "url"'),
]


def test_what_is_wrong_with_a_block_is_said() -> None:
    for block, said in WRONG:
        problems = check_block(block, "block 7")
        with case(block, problems):
            assert said in "\n".join(problems)
            assert all(problem.startswith("block 7: ") for problem in problems)
            assert "secret" not in json.dumps(problems) or "secret itself" in json.dumps(problems)


def test_everything_wrong_is_said_at_once() -> None:
    block = {"stream": "prometheus", "url": "x", "queries": 1, "preset": "x", "step": -1, "foo": 1, "username": 1}
    assert len(check_block(block, "block 1")) >= 6


def test_variables_that_are_not_set_are_named_before_the_wave() -> None:
    blocks = [
        {**PAGE, "metrics": ["a"], "bearer_token_env": "TOKEN_A"},
        {**PAGE, "metrics": ["a"], "username": "me", "password_env": "PASSWORD_B"},
        {**PAGE, "metrics": ["a"], "bearer_token_env": "TOKEN_C"},
    ]
    with pytest.raises(BenchmarkError) as caught:
        make_source(list(map(read_block, blocks)), {"TOKEN_C": "line\nbreak"})
    assert all(name in str(caught.value) for name in ("TOKEN_A", "PASSWORD_B", "TOKEN_C"))
    assert "break" not in str(caught.value)


# Reading what was scraped, on a made-up clock


def seen(pages: dict[float, str | None], interval_s: float = 1.0) -> History:
    """A history of pages by the second at which each was asked for; None: the round brought nothing."""
    history = History()
    for at, text in pages.items():
        round_ = Round(at, at, at + 0.01, "cannot be reached" if text is None else None)
        history.add(round_, None if text is None else parse(text))
    return history


def rows(
    metrics: list[str] | dict[str, list[str]],
    pages: dict[float, str | None],
    window: tuple[float, float],
    begin: float | None = None,
    loaded: float | None = None,
) -> list[ServerMetric]:
    history = seen(pages)
    interval = Interval(window[0] if begin is None else begin, *window, 0, loaded=loaded)
    seen_window = window_of(history, interval, 1.0)
    wanted = wanted_of(metrics=metrics)
    return [row for each in wanted for row in read(each, seen_window, "host:1")]


def each_second(values: list[float], first: float = 100.0, kind: str = "counter") -> dict[float, str | None]:
    return {first + i: f"# TYPE m {kind}\nm {value}\n" for i, value in enumerate(values)}


def test_a_counter_has_its_gain_over_the_covering_rounds_and_its_rate_inside() -> None:
    (row,) = rows(["m"], each_second([5, 5, 15, 25, 30, 30]), (101.5, 103.9))
    assert row.statistics == {"Rate": pytest.approx(10.0), "Total": 25}
    assert (row.start, row.end, row.complete, row.reason) == (101.0, 104.0, True, None)
    assert row.series_of == "Rate"
    assert row.series == ((101.0, 10.0), (102.0, 10.0), (103.0, 5.0))


def test_a_total_leaves_the_warm_up_out() -> None:
    """What was counted by the window's start lies between the samples around it."""
    pages = each_second([0, 10, 20, 30, 40, 40])
    (warmed,) = rows(["m"], pages, (101.9, 104.0), begin=100.0)
    assert warmed.statistics["Total"] == pytest.approx(21)
    assert warmed.reason == "without the warm-up: what was counted by its end is interpolated between scrapes 1 s apart"
    (cold,) = rows(["m"], pages, (101.9, 104.0))
    assert cold.statistics["Total"] == 30, "of what came before nothing is the warm-up's"
    assert cold.reason is None


@pytest.mark.parametrize(("start", "known"), [(105.0, False), (101.0, True), (109.5, True)])
@pytest.mark.parametrize("kind", ["counter", "summary"])
def test_scrapes_far_apart_do_not_tell_the_warm_up_from_the_window(start: float, known: bool, kind: str) -> None:
    """Of ten seconds with quick requests and then slow ones one scrape tells the mean of both alone."""
    seconds = {100.0: (0, 0.0), 110.0: (200, 65.0), 114.0: (280, 113.0)}
    text = "# TYPE m summary\nm_count {}\nm_sum {}\n" if kind == "summary" else "# TYPE m counter\nm {}\n"
    (row,) = rows(["m"], {at: text.format(*values) for at, values in seconds.items()}, (start, 113.5), begin=100.0)
    assert row.statistics["Total"]
    assert {row.side(statistic) for statistic in row.statistics} == {None if known else "about"}
    assert ("scrapes 10 s apart, which says too little" in str(row.reason)) != known


def test_a_histogram_leaves_the_warm_up_out() -> None:
    pages: dict[float, str | None] = {
        100.0: histogram([0, 0, 0], 0.0), 101.0: histogram([10, 0, 0], 1.0), 102.0: histogram([10, 40, 0], 7.0)
    }  # fmt: skip
    (row,) = rows({"h_seconds": ["Total", "Average"]}, pages, (100.5, 101.9), begin=99.0)
    assert row.statistics == {"Total": pytest.approx(45), "Average": pytest.approx(6.5 / 45)}
    assert "without the warm-up" in str(row.reason)


def test_an_idle_rest_is_in_totals_and_dilutes_no_gauge_or_rate() -> None:
    """20 tokens a second for 8 s, then 100 of a late answer at the end of 32 s."""
    times = range(34)
    busy = {100.0 + at: f"# TYPE g gauge\ng {90 if at <= 8 else 2}\n" for at in times}
    done = [20 * min(at, 8) + 100 * (at > 31) for at in times]
    pages: dict[float, str | None] = {
        at: f"{text}# TYPE m counter\nm {total}\n# TYPE h histogram\n"
        f'h_bucket{{le="1"}} {total}\nh_bucket{{le="+Inf"}} {total}\nh_sum 0\nh_count {total}\n'
        for (at, text), total in zip(busy.items(), done, strict=True)
    }
    asked = {"g": ["Average"], "m": ["Rate", "Total"], "h": ["Rate", "Total"]}
    found = {row.name: row for row in rows(asked, pages, (100.0, 132.5), loaded=108.5)}
    assert found["g"].statistics == {"Average": 90}
    assert found["m"].statistics == {"Rate": 20, "Total": 260}
    assert found["h"].statistics == {"Rate": pytest.approx(160 / 9), "Total": 260}  # to the scrape after the load
    undivided = {row.name: row for row in rows(asked, pages, (100.0, 132.5))}
    assert undivided["m"].statistics["Total"] == 260


def test_a_counter_that_fell_once_has_no_gain_where_the_page_does_not_say_that_it_restarted() -> None:
    (row,) = rows(["m"], each_second([50, 60, 3, 7]), (100.5, 102.5))
    assert row.statistics["Total"] is None
    assert "the server restarted, or several servers answer" in str(row.reason)


def by_turns(values: list[float], started: list[float | None] | None) -> dict[float, str | None]:
    """A page of a counter, a histogram and a gauge; each sample may be of another server."""
    text = "# TYPE m counter\nm {0}\n# TYPE g gauge\ng {0}\n# TYPE h histogram\n" + "".join(
        f'h_bucket{{{{le="{bound}"}}}} {{0}}\n' for bound in ("1", "+Inf")
    )
    starts = ["" if at is None else f"process_start_time_seconds {at}\n" for at in started or [None] * len(values)]
    return {100.0 + i: text.format(value) + starts[i] for i, value in enumerate(values)}


@pytest.mark.parametrize(
    ("values", "started", "said"),
    [
        ([50, 9000, 70, 52, 9002, 72], None, "it fell 3 times"),
        ([50, 9000, 70, 52, 9002, 72], [7, 8, 9, 7, 8, 9], "changed 5 times"),
        ([50, 9000, 70, 52, 9002, 72], [7] * 6, "it fell 3 times"),  # all began with one container
        ([50, 9000, 70, 52, 9002, 72], [7, None, None, 7, None, None], "it fell 3 times"),
        ([50, 60, 3, 7, 2, 4], [7, 7, 101.5, 101.5, 101.5, 101.5], "it fell once in the window"),  # after its restart
        ([50, 52, 9000, 9002, 9004, 9006], [7, 7, 8, 8, 8, 8], "changed once"),  # no counter fell
        ([50, 52, 1, 3, 1, 3], None, "it fell 2 times"),
        ([1000, 1200, 52000, 52200, 52400, 1800], None, "it fell once in the window"),
    ],
)
def test_an_address_with_several_servers_behind_it_has_no_gain(
    values: list[float], started: list[float | None] | None, said: str
) -> None:
    found = rows({"m": ["Total", "Rate"], "h": ["Total", "p50"]}, by_turns(values, started), (100.5, 104.5))
    for row in found:
        assert set(row.statistics.values()) == {None}
        assert not row.complete
        assert said in str(row.reason)
    (gauge,) = rows({"g": ["Maximum"]}, by_turns(values, started), (100.5, 104.5))
    assert (gauge.statistics["Maximum"] is None) == ("changed" in said)
    assert gauge.bounds == ({"Maximum": "about"} if "fell" in said else {}), "each sample is of one of several servers"
    assert "one of several servers" in str(gauge.reason) or "several servers answer" in str(gauge.reason)


def test_another_counter_of_the_page_that_falls_says_that_several_servers_answer() -> None:
    """The wanted one rises by turns as that of one server does."""
    counts, others = [1000, 1100, 1200, 1300, 1400, 1500], [7, 3, 8, 4, 9, 5]
    pages: dict[float, str | None] = {
        100.0 + i: f"# TYPE m counter\nm {count}\n# TYPE w counter\nw_total {other}\n# TYPE g gauge\ng 1\n"
        for i, (count, other) in enumerate(zip(counts, others, strict=True))
    }
    for row in rows({"m": ["Total", "Rate"], "g": ["Average"]}, pages, (100.5, 104.5)):
        assert all(row.is_near(each) for each in row.statistics)
        assert "w_total fell 3 times" in str(row.reason)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['m{pod="a"} 1', 'm{pod="b"} 2'] * 3, "the label pod changed 5 times"),
        (['m{pod="a"} 1\nm{pod="b"} 2'] * 6, None),
        (['m{code="a"} 1', 'm{code="b"} 2'] * 3, None),
    ],
)
def test_a_label_that_names_the_server_changes_where_another_one_answers(lines: list[str], said: str | None) -> None:
    pages: dict[float, str | None] = {100.0 + i: f"# TYPE m counter\n{line}\n" for i, line in enumerate(lines)}
    found = rows(["m"], pages, (100.5, 104.5))
    assert all((said in str(row.reason)) if said else "several" not in str(row.reason) for row in found)


@pytest.mark.parametrize(
    ("servers", "peers", "said"),
    [
        ("ababab", "xxxxxx", "a header that names the server changed 5 times"),
        ("aaaaaa", "xyxyxy", "2 addresses answered (x, y), maybe of several servers"),
        ("aaaaaa", "xxxxxx", "None"),
    ],
)
def test_headers_and_addresses_tell_servers_apart(servers: str, peers: str, said: str) -> None:
    history = History()
    for index, (server, peer) in enumerate(zip(servers, peers, strict=True)):
        at = 100.0 + index
        history.add(Round(at, at, at + 0.01, None, server, peer), parse(f"# TYPE g gauge\ng {index}\n"))
    window = window_of(history, Interval(100.5, 100.5, 104.5, 0), 1.0)
    (row,) = read(wanted_of(metrics={"g": ["Average"]})[0], window, "host")
    assert said in str(row.reason)
    assert (row.statistics["Average"] is None) == ("header" in said)
    assert row.bounds == ({"Average": "about"} if "addresses" in said else {})


class Replica(BaseHTTPRequestHandler):
    """A page that each time another server gives; ``pages`` are taken in order."""

    pages: ClassVar[list[str]] = []

    def version_string(self) -> str:
        """The header "Server"."""
        return "replica"

    def do_GET(self) -> None:
        """Answer with the next page."""
        content = self.pages.pop(0).encode()
        self.send_response(200)
        self.send_header("X-Pod", f"pod-{len(self.pages)}")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def test_a_page_is_fetched_with_a_few_counters_and_the_name_of_its_server() -> None:
    many = "".join(f'many_total{{path="{number}"}} 1\n' for number in range(9))
    text = f"# TYPE few counter\nfew_total 3\n# TYPE many_total counter\n{many}# TYPE g gauge\ng 1\n"
    Replica.pages = [text, text]
    server = HTTPServer(("127.0.0.1", 0), Replica)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    fetch = PageFetcher(Web(Credentials(), {}), f"http://127.0.0.1:{server.server_port}/metrics", {"g"})
    first, second = fetch(), fetch()
    server.shutdown()
    server.server_close()
    assert [sample.name for sample in second.samples] == ["few_total", "g"]
    assert first.peer == "127.0.0.1"
    assert [first.server, second.server] == [f"server: replica, x-pod: pod-{number}" for number in (1, 0)]


@pytest.mark.parametrize(
    ("values", "started", "near"),
    [
        ([1000, 1200, 52400, 52600, 52800, 53000], None, True),  # the other server's counter from the third scrape on
        ([1000, 1200, 52400, 52600, 52800, 53000], [7] * 6, False),
        ([1000, 1200, 52400, 52600, 52800, 53000], [7, 7, None, None, None, None], True),
        ([0, 0, 0, 500, 500, 500], None, False),  # all that there was, counted when it was done
        ([0, 200, 400, 3000, 3200, 3400], None, False),
    ],
)
def test_a_counter_that_jumps_is_only_about_what_it_gained(
    values: list[float], started: list[float | None] | None, near: bool
) -> None:
    pages = by_turns(values, started)
    for row in rows({"m": ["Total", "Rate"], "h": ["Total", "p50", "Rate"]}, pages, (100.5, 104.5)):
        assert row.statistics["Total"] == values[-1] - values[0]
        assert [row.is_near(each) for each in row.statistics] == [near] * len(row.statistics)
        assert ("several servers answer" in str(row.reason)) is near


@pytest.mark.parametrize(
    ("values", "started"),
    [
        ([50, 60, 3, 7, 1, 4], [7, 7, 101.5, 101.5, 103.5, 103.5]),  # it crashes again and again, and says so
        ([50, 60, 70, 80, 3, 7], [7, 7, 7, 7, 103.5, 103.5]),
    ],
)
def test_a_server_that_says_when_it_restarted_loses_nothing(values: list[float], started: list[float | None]) -> None:
    gained = sum(now if now < before else now - before for before, now in pairwise(values))
    for row in rows({"m": ["Total"], "h": ["Total"]}, by_turns(values, started), (100.5, 104.5)):
        assert (row.statistics["Total"], row.complete) == (gained, True)


def test_a_counter_that_appears_during_the_wave_began_at_zero() -> None:
    pages: dict[float, str | None] = {100.0: "x 1\n", 101.0: "x 1\n", 102.0: "m_total 4\n", 103.0: "m_total 9\n"}
    (row,) = rows(["m_total"], pages, (100.5, 102.5))
    assert row.statistics["Total"] == 9


def test_a_counter_that_stood_before_the_first_page_gained_only_what_was_seen() -> None:
    (row,) = rows(["m"], {100.0: None, **each_second([1000, 1003, 1004], 101.0)}, (100.5, 102.5))
    assert row.statistics["Total"] == 4


def test_a_gauge_is_of_the_samples_inside() -> None:
    (row,) = rows(
        {"m": ["Average", "Maximum", "Minimum", "Last"]}, each_second([99, 1, 5, 3, 99], kind="gauge"), (100.5, 103.5)
    )
    assert row.statistics == {"Average": 3.0, "Maximum": 5.0, "Minimum": 1.0, "Last": 3.0}
    assert (row.start, row.end) == (101.0, 103.0)
    assert row.series == ((101.0, 1.0), (102.0, 5.0), (103.0, 3.0))


RATE, BUSY, WINDOW_S = 10, 0.6, 120
"""Requests a second, the share of the time between two that each takes, and how long it goes on."""


def busy(at: float) -> float:
    """The gauge of requests at work, of arrivals so even that whole seconds always find the same."""
    return float((at * RATE) % 1 < BUSY)


def scraped_mean(moments: list[float]) -> ServerMetric:
    pages: dict[float, str | None] = {at: f"# TYPE m gauge\nm {busy(at)}\n" for at in moments}
    (row,) = rows({"m": ["Average"]}, pages, (0.0, float(WINDOW_S)))
    return row


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_of_a_gauge_is_true_whatever_the_rate_of_arrivals(seed: int) -> None:
    drawn = takewhile(lambda pair: pair[0] <= WINDOW_S, instants(0.0, 1.0, random.Random(seed)))
    row = scraped_mean([at for at, _ in drawn])
    error = math.sqrt(BUSY * (1 - BUSY) / WINDOW_S)
    assert row.statistics["Average"] == pytest.approx(BUSY, abs=4 * error)
    assert row.samples == WINDOW_S
    even = scraped_mean([second + 0.01 + seed * 0.02 for second in range(WINDOW_S)])
    assert abs(cast("float", even.statistics["Average"]) - BUSY) >= 0.4 - 1e-9, "this is what it is for"


def test_each_interval_has_one_scrape_and_none_follows_from_another() -> None:
    generator = random.Random(11)
    drawn = [pair for pair, _ in zip(instants(50.0, 0.5, generator), range(4000), strict=False)]
    places = [(at - 50.0) / 0.5 for at, _ in drawn]
    assert [math.floor(place) for place in places] == list(range(4000))
    assert [end for _, end in drawn] == pytest.approx([50.0 + 0.5 * (number + 1) for number in range(4000)])
    inside = [place % 1 for place in places]
    assert sum(inside) / 4000 == pytest.approx(0.5, abs=4 / math.sqrt(12 * 4000))
    pairs = zip(inside[1:], inside[:-1], strict=True)
    together = sum((a - 0.5) * (b - 0.5) for a, b in pairs) / 4000 * 12
    assert abs(together) < 4 / math.sqrt(4000), "no correlation"


@pytest.mark.parametrize("warmup_s", [0.0, 7.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_total_is_right_wherever_the_scrapes_lie(seed: int, warmup_s: float) -> None:
    """A request every 100 ms from the first of the warm-up on; nothing before and after."""
    start, end, begin = 20.0, 80.0, 20.0 - warmup_s

    def counted(at: float) -> int:
        return math.floor((min(max(at, begin), end) - begin) * 10)

    drawn = takewhile(lambda pair: pair[0] <= 90.0, instants(0.0, 1.0, random.Random(seed)))
    pages: dict[float, str | None] = {at: f"# TYPE m counter\nm {counted(at)}\n" for at, _ in drawn}
    (row,) = rows(["m"], pages, (start, end), begin=begin)
    assert row.complete
    assert row.statistics["Total"] == pytest.approx(600, abs=2 if warmup_s else 0)
    assert row.statistics["Rate"] == pytest.approx(10, rel=0.01)
    assert row.start is not None
    assert row.end is not None
    assert row.start <= start
    assert row.end >= end, "both ends are covered"


def test_a_gauge_without_numbers_says_so() -> None:
    (row,) = rows(["m"], each_second([math.nan] * 4, kind="gauge"), (100.5, 102.5))
    assert set(row.statistics.values()) == {None}
    assert row.reason == "the value is NaN"
    assert not row.complete
    (row,) = rows(["m"], each_second([math.nan, 3, math.nan, 3, 3], kind="gauge"), (100.5, 103.5))
    assert row.statistics["Average"] == 3
    assert row.reason == "1 of 3 samples are not numbers"


@pytest.mark.parametrize(("value", "said"), [(math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")])
def test_a_counter_and_a_sum_without_numbers_say_so(value: float, said: str) -> None:
    (row,) = rows(["m"], each_second([value] * 4), (100.5, 102.5))
    assert (row.reason, row.complete) == (f"the value is {said}", False)
    pages: dict[float, str | None] = {100.0 + i: histogram([i, i, i], value) for i in range(3)}
    (row,) = rows({"h_seconds": ["Average", "p50"]}, pages, (100.5, 101.9))
    assert row.statistics["Average"] is None
    assert row.statistics["p50"] is not None
    assert row.reason == "the sum of what was observed is missing, or is not a number"


def test_a_window_between_two_rounds_has_no_gauge_but_its_gain() -> None:
    (row,) = rows(["m"], each_second([1, 1], kind="gauge"), (100.2, 100.8))
    assert row.reason == "no sample lies inside so short a window"
    (row,) = rows(["m"], each_second([1, 9]), (100.2, 100.8))
    assert row.statistics == {"Rate": pytest.approx(8 / 0.6), "Total": 8}


def histogram(counts: list[int], total: float) -> str:
    a, b, c = counts
    return (
        f'# TYPE h_seconds histogram\nh_seconds_bucket{{le="0.1"}} {a}\nh_seconds_bucket{{le="0.2"}} {a + b}\n'
        f'h_seconds_bucket{{le="+Inf"}} {a + b + c}\nh_seconds_sum {total}\nh_seconds_count {a + b + c}\n'
    )


def test_a_histogram_has_the_quantiles_of_what_was_added() -> None:
    pages: dict[float, str | None] = {
        100.0: histogram([100, 0, 0], 1.0), 101.0: histogram([110, 0, 0], 2.0), 102.0: histogram([110, 10, 0], 4.0)
    }  # fmt: skip
    (row,) = rows({"h_seconds": ["p50", "p75", "Average", "Total", "Rate"]}, pages, (100.5, 101.9))
    assert row.statistics == {
        "p50": pytest.approx(0.1), "p75": pytest.approx(0.15), "Average": pytest.approx(0.15), "Total": 20, "Rate": 10.0
    }  # fmt: skip
    assert (row.bounds, row.buckets) == ({"p50": "at_most"}, {"p75": (0.1, 0.2)})
    assert decoded(json.loads(json.dumps(encoded(row))), ServerMetric) == row
    assert row.unit == "Seconds"
    assert [at for at, _ in row.series] == [101.0], "where a bound is all that is known there is no point"
    assert row.series[0][1] == pytest.approx(0.15)
    (row,) = rows(["h_seconds"], pages, (100.5, 101.9))
    assert [value for _, value in row.series] == pytest.approx([0.1, 0.2]), "the mean of each piece"


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([20, 0, 0], "Average=0.15, p50<=0.1, p90<=0.1, p99<=0.1, Minimum<=0.1, Maximum<=0.1"),
        ([0, 20, 0], "Average=0.15, p50=0.15, p90=0.19, p99=0.199, Minimum>=0.1, Maximum<=0.2"),
        ([0, 10, 10], "Average=0.15, p50=0.2, p90>=0.2, p99>=0.2, Minimum>=0.1, Maximum>=0.2"),
    ],
)
def test_what_lies_in_the_first_or_last_bucket_is_a_bound_in_report_and_file(counts: list[int], expected: str) -> None:
    pages: dict[float, str | None] = {100.0: histogram([0, 0, 0], 0.0), 101.0: histogram(counts, 3.0)}
    (row,) = rows(["h_seconds"], pages, (100.5, 100.9))
    assert list(metric_lines([row])) == [f"   h_seconds: {expected} (seconds; 20 samples)"]
    assert decoded(json.loads(json.dumps(encoded(row))), ServerMetric) == row
    assert row.complete


def test_a_histogram_without_observations_says_so() -> None:
    pages: dict[float, str | None] = {100.0: histogram([1, 2, 3], 1.0), 101.0: histogram([1, 2, 3], 1.0)}
    (row,) = rows(["h_seconds"], pages, (100.5, 100.9))
    assert set(row.statistics.values()) == {None}
    assert row.reason == "nothing was observed within the window"


def test_a_summary_has_an_average_but_no_quantiles_of_the_window() -> None:
    text = '# TYPE s summary\ns{{quantile="0.5"}} 7\ns_sum {0}\ns_count {1}\n'
    pages: dict[float, str | None] = {100.0: text.format(10, 1), 101.0: text.format(40, 4)}
    (row,) = rows({"s": ["p50", "Average", "Total"]}, pages, (100.5, 100.9))
    assert row.statistics == {"p50": None, "Average": 10.0, "Total": 3}
    assert "quantiles are of times the server chose" in str(row.reason)


def test_a_statistic_that_does_not_fit_is_none_with_its_reason() -> None:
    (row,) = rows({"m": ["p99", "Rate"]}, each_second([1, 2, 3], kind="gauge"), (100.5, 101.9))
    assert row.statistics == {"p99": None, "Rate": None}
    assert row.reason == "a gauge has no p99, Rate"


def test_parts_of_a_histogram_and_untyped_names_are_read_by_their_name() -> None:
    pages: dict[float, str | None] = {100.0: histogram([1, 0, 0], 1.0), 101.0: histogram([5, 0, 0], 3.0)}
    names = ["h_seconds_count", "h_seconds_sum"]
    assert [row.statistics["Total"] for row in rows(names, pages, (100.5, 100.9))] == [4, 2]
    untyped: dict[float, str | None] = {100.0 + i: f"a {i}\nb_total {i}\n" for i in range(4)}
    found = rows(["a", "b_total"], untyped, (100.5, 102.9))
    assert [tuple(row.statistics) for row in found] == [DEFAULTS["gauge"], DEFAULTS["counter"]]


def test_an_openmetrics_counter_is_found_under_its_family() -> None:
    text = "# TYPE m counter\nm_total {0}\nm_created 1.5\n# EOF\n"
    pages: dict[float, str | None] = {100.0 + i: text.format(i * 10) for i in range(4)}
    (row,) = rows(["m"], pages, (100.5, 102.9))
    assert row.statistics["Total"] == 30


def test_every_label_set_is_a_row_and_labels_select() -> None:
    pages: dict[float, str | None] = {100.0 + i: f'm{{gpu="0",a="x"}} 1\nm{{gpu="1",a="x"}} {i}\n' for i in range(4)}
    found = rows(["m", 'm{gpu="1"}', 'm{gpu="2"}'], pages, (100.5, 102.5))
    assert [row.dimensions.get("gpu") for row in found] == ["0", "1", "1", None]
    assert found[0].dimensions == {"instance": "host:1", "gpu": "0", "a": "x"}
    assert found[3].reason == 'the page has no m{gpu="2"}'


def test_a_line_that_cannot_be_read_costs_no_other_metric() -> None:
    names = {"a", "b", "c"}
    page = parse('a 1\nb{x="1"} 2\nb{x=2} 3\nc one\nd{ 4\n', names)
    history = History()
    for at in (100.0, 101.0, 102.0, 103.0):
        history.add(Round(at, at, at + 0.01), page)
    window = window_of(history, Interval(100.5, 100.5, 102.5, 0), 1.0)
    found = {row.name: row for each in wanted_of(metrics=sorted(names)) for row in read(each, window, "h")}
    assert (found["a"].statistics["Average"], found["a"].reason) == (1.0, None)
    assert found["b"].statistics["Average"] == 2.0
    assert "line 3 is not in Prometheus' text format (labels are broken): b{x=2} 3" in str(found["b"].reason)
    assert str(found["c"].reason).startswith("line 4 is not in Prometheus' text format")
    with pytest.raises(ExpositionError):
        parse("c one\n", names)


def test_a_metric_with_many_series_keeps_the_largest_and_says_so() -> None:
    text = "".join(f'm{{i="{i:03}"}} {i}\n' for i in range(MOST_SERIES + 30))
    pages: dict[float, str | None] = {100.0 + i: text for i in range(4)}
    found = rows(["m"], pages, (100.5, 102.5))
    assert len(found) == MOST_SERIES
    assert [row.dimensions["i"] for row in found] == [f"{i:03}" for i in range(30, MOST_SERIES + 30)]
    assert found[-1].reason == "30 more series with smaller values left out"


def test_a_page_with_new_series_each_time_is_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of 16 kB: 31 fit once, and what else the page says is bounded too."""
    most = 1 << 20
    monkeypatch.setattr(kept, "MOST_BYTES", most)
    history = History()
    for at in range(100):
        page = parse(f'# TYPE t{at} {"y" * (1 << 14)}\nm{{id="{at:03}{"x" * (1 << 14)}"}} 1\nup 1\n')
        history.add(Round(at, at, at + 0.01), page)
    texts = [*history.types.values(), *(value for _, labels in history.tracks for _, value in labels)]
    assert most * 0.9 < sum(map(len, texts)) < most
    window = window_of(history, Interval(0.5, 0.5, 98.5, 0), 1.0)
    found = {row.name: row for each in wanted_of(metrics=["m", "up"]) for row in read(each, window, "h")}
    assert str(found["m"].reason).endswith(FULL)
    assert (found["up"].statistics["Average"], found["up"].reason) == (1.0, None)
    assert [found[name].complete for name in ("m", "up")] == [False, True]


def test_of_a_page_that_is_too_large_the_samples_that_stand_last_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "up 1\n" + "".join(f'm{{id="{number}"}} 1\n' for number in range(1000)) + "last 1\n"
    monkeypatch.setattr(exposition, "MOST_BYTES", 100_000)
    page = parse(text, {"up", "m", "last"})
    assert 100 < len(page.samples) <= 100_000 // held_by()
    assert page.left_out == {"m", "last"}
    assert parse(text, {"up", "last"}) == Page((Sample("up", (), 1.0), Sample("last", (), 1.0)))
    history = History()
    for at in (100.0, 101.0, 102.0, 103.0):
        history.add(Round(at, at, at + 0.01), page)
    window = window_of(history, Interval(100.5, 100.5, 102.5, 0), 1.0)
    found = {row.name: row for each in wanted_of(metrics=["m", "up", "last"]) for row in read(each, window, "h")}
    assert [found[name].complete for name in ("up", "m", "last")] == [True, False, False]
    assert {str(found[name].reason) for name in ("m", "last")} == {TOO_LARGE}


def test_of_a_page_that_is_too_large_and_mixes_its_families_each_is_left_out_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "up 1\n" + "".join(f'm{{id="{number}"}} 1\nn{{id="{number}"}} 1\n' for number in range(1000))
    monkeypatch.setattr(exposition, "MOST_BYTES", 100_000)
    page = parse(text, {"up", "m", "n", "absent"})
    assert {each.name for each in page.samples} == {"up", "m", "n"}
    assert page.left_out == {"m", "n"}


def test_the_values_of_a_page_that_is_read_for_long_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_VALUES", 1000)
    page, history = parse("up 1\n" + "".join(f'm{{id="{number}"}} 1\n' for number in range(20))), History()
    for at in range(200):
        history.add(Round(at, at, at + 0.01), page)
    assert sum(len(track.values) for track in history.tracks.values()) <= 1000
    window = window_of(history, Interval(0.5, 0.5, 198.5, 0), 1.0)
    found = {row.name: row for each in wanted_of(metrics=["m", "up"]) for row in read(each, window, "h")}
    assert (found["up"].samples, found["up"].complete) == (198, True)
    assert (found["m"].complete, found["m"].reason) == (False, TOO_MANY)
    assert found["m"].samples == 198, "a series is kept whole, or not at all"


def test_a_page_missed_too_often_is_not_complete() -> None:
    pages = each_second([float(i) for i in range(20)])
    (row,) = rows(["m"], {**pages, 105.0: None}, (100.5, 118.5))
    assert row.complete
    (row,) = rows(["m"], {**pages, 105.0: None, 106.0: None}, (100.5, 118.5))
    assert not row.complete
    assert row.statistics["Total"] == 19
    assert mentions(str(row.reason), "2", "18 rounds")


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (range(3), "it is not on the last 9 of the 12 pages of the window"),
        (range(9), "it is not on the last 3 of the 12 pages of the window"),
        (range(11), None),
        (range(12), None),
        ((0, 1, 10, 11), "it stood on 4 of the 12 pages of the window alone"),
    ],
)
def test_a_series_that_leaves_the_page_proves_no_limit(there: Collection[int], said: str | None) -> None:
    text = "# TYPE m counter\nm {0}\n# TYPE h histogram\n" + "".join(
        f'h_bucket{{{{le="{bound}"}}}} {{0}}\n' for bound in ("1", "+Inf")
    )
    pages: dict[float, str | None] = {
        100.0 + i: text.format(i * 10) if i in there else "# TYPE other gauge\nother 1\n" for i in range(12)
    }
    for row in rows({"m": ["Total"], "h": ["Total"]}, pages, (100.0, 111.0)):
        assert row.complete == (said is None)
        assert row.bounds == ({} if said is None else {"Total": "about"})
        assert (said or "None") in str(row.reason)


@pytest.mark.parametrize(("there", "near"), [(range(3), True), (range(9), False), (range(8), True)])
def test_a_gauge_that_leaves_the_page_is_only_about_what_it_was(there: Collection[int], near: bool) -> None:
    pages: dict[float, str | None] = {
        100.0 + i: "# TYPE g gauge\ng 1\n" if i in there else "# TYPE other gauge\nother 1\n" for i in range(12)
    }
    (row,) = rows({"g": ["Average"]}, pages, (99.5, 112.0))
    assert row.bounds == ({"Average": "about"} if near else {})


def test_a_page_that_was_watched_late_is_not_complete() -> None:
    pages = each_second([float(i) for i in range(5)])
    (row,) = rows(["m"], pages, (90.0, 103.5))
    assert not row.complete
    assert "the first sample is 10.0 s after the start" in str(row.reason)
    (row,) = rows(["m"], pages, (100.5, 113.0))
    assert "the last sample is 9.0 s before the end" in str(row.reason)


def test_a_day_of_samples_keeps_a_course_of_bounded_length() -> None:
    pages = each_second([float(i) for i in range(5000)])
    (row,) = rows(["m"], pages, (100.5, 5090.5))
    assert MOST_POINTS / 2 < len(row.series) <= MOST_POINTS + 1
    assert all(rate == pytest.approx(1.0) for _, rate in row.series)


# Presets


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_hold_what_can_be_asked(preset: str) -> None:
    items = PRESETS[preset]
    assert len({item.name for item in items}) == len(items)
    assert any(not item.optional for item in items)
    for item in items:
        for source in item.sources:
            name, labels = parse_selector(source)
            assert render_selector(name, labels) == source


def test_promql_of_gauges() -> None:
    selector = parse_selector('m{a="b"}')
    assert over_time("avg", selector) == 'avg_over_time(m{a="b"}[{window}])'


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("histogram_quantile(0.99, sum by (le) (rate(x_bucket[{window}])))", " sum by (le) (rate(x_bucket[{window}]))"),
        (" histogram_quantile( 0.5,rate(x[5m]) ) ", "rate(x[5m]) "),
        ("histogram_quantile(0.5, a) + histogram_quantile(0.9, b)", None),
        ("sum(histogram_quantile(0.5, a))", None),
        ("histogram_quantile(scalar(x), a)", None),
        *((f"histogram_quantile({share}, a)", None) for share in ("0.5.5", ".", "", "NaN", "1e-1")),
        ("up", None),
    ],
)
def test_the_buckets_below_a_quantile_are_found(query: str, expected: str | None) -> None:
    found = quantile_of(query)
    assert (found and found[1]) == expected


VLLM = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="m"}} 2.0
# TYPE vllm:{cache} gauge
vllm:{cache}{{engine="0",model_name="m"}} 0.25
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="m"}} {tokens}
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0",model_name="m"}} 10.0
"""


@pytest.mark.parametrize("expected", ["", "# TYPE {name} untyped\n"])
def test_a_preset_knows_what_its_metrics_are_where_the_page_does_not_say(expected: str) -> None:
    """A queue called ..._count is no counter, and a counter need not be called ..._total."""
    queue, requests = "nv_inference_pending_request_count", "nv_inference_request_success"
    page = f"{expected.format(name=queue)}{queue} 3\n{expected.format(name=requests)}{requests} "
    window = window_of(seen({100.0 + i: f"{page}{i * 10}\n" for i in range(6)}), Interval(101, 101, 104, 0), 1.0)
    found = {row.name: row for each in wanted_of(preset="triton") for row in read(each, window, "h")}
    assert found["queue_length"].statistics == {"Average": 3, "Maximum": 3, "Last": 3}
    assert found["requests"].statistics["Rate"] == pytest.approx(10)
    assert not {name for name in found if name.startswith("gpu")}, "Triton runs without a GPU, too"


@pytest.mark.parametrize("cache", ["kv_cache_usage_perc", "gpu_cache_usage_perc"])
def test_a_preset_takes_the_name_that_is_there(cache: str) -> None:
    history = seen({100.0 + i: VLLM.format(cache=cache, tokens=i * 50) for i in range(4)})
    window = window_of(history, Interval(100.5, 100.5, 102.9, 0), 1.0)
    found = {row.name: row for each in wanted_of(preset="vllm") for row in read(each, window, "h")}
    assert set(found) == {"queue_length", "running_requests", "kv_cache_use", "output_tokens", "input_tokens"}
    assert found["kv_cache_use"].statistics["Average"] == 0.25
    assert found["kv_cache_use"].dimensions["__name__"] == f"vllm:{cache}"
    assert found["kv_cache_use"].namespace == "vllm"
    assert found["kv_cache_use"].unit == "Ratio"
    assert found["output_tokens"].statistics == {"Rate": pytest.approx(50.0), "Total": 150.0}


def test_what_follows_from_counters_has_its_row() -> None:
    page = 'vllm:prefix_cache_hits_total{{engine="0"}} {0}\nvllm:prefix_cache_queries_total{{engine="0"}} {1}\n'
    window = window_of(
        seen({100.0 + i: page.format(30 * i, 40 * i) for i in range(4)}), Interval(100.5, 100.5, 102.9, 0), 1.0
    )
    found = [row for each in wanted_of(preset="vllm") for row in read(each, window, "h")]
    (rate,) = derived(found)
    assert (rate.name, rate.statistics, rate.unit) == ("prefix_cache_hit_rate", {"Average": 0.75}, "Ratio")
    assert rate.dimensions == {"instance": "h", "engine": "0"}
    still = window_of(seen({100.0 + i: page.format(1, 2) for i in range(4)}), Interval(100.5, 100.5, 102.9, 0), 1.0)
    nothing = [row for each in wanted_of(preset="vllm") for row in read(each, still, "h")]
    assert list(derived(nothing)) == [], "no queries, no share of them"


def test_a_preset_of_another_server_says_what_it_looked_for() -> None:
    history = seen({100.0 + i: "x 1\n" for i in range(4)})
    window = window_of(history, Interval(100.5, 100.5, 102.9, 0), 1.0)
    found = [row for each in wanted_of(preset=["sglang", "dcgm"]) for row in read(each, window, "h")]
    assert found[0].reason == "the page has no sglang:num_queue_reqs"
    assert {row.name for row in found}.isdisjoint({"queue_time", "prefix_cache_hit_rate"})
    assert "the page has neither DCGM_FI_DEV_GPU_UTIL nor dcgm_gpu_utilization" in {row.reason for row in found}


# The thread


class Countdown:
    """A page that counts its scrapes."""

    def __init__(self, fails: Callable[[int], bool] = lambda _: False, slow_s: float = 0.0) -> None:
        self.scrapes = 0
        self._fails = fails
        self._slow_s = slow_s
        self.enough = threading.Event()

    def __call__(self) -> Page:
        self.scrapes += 1
        time.sleep(self._slow_s)
        if self.scrapes >= 4:
            self.enough.set()
        if self._fails(self.scrapes):
            raise WebError("no")
        return parse(f"m {self.scrapes}\n")


def test_the_scraper_scrapes_until_it_is_told_to_end_and_once_after() -> None:
    page = Countdown()
    scraper = Scraper(page, 0.05)
    scraper.begin()
    assert page.enough.wait(30)
    end = time.time()
    scraper.end(end)
    rounds = scraper.history.rounds
    assert rounds[-1].began >= end
    assert page.scrapes == sum(1 for each in rounds if each.error is None)
    assert [each.due for each in rounds] == sorted(each.due for each in rounds)
    before = page.scrapes
    time.sleep(0.15)
    assert page.scrapes == before


def test_rounds_that_a_slow_page_leaves_no_time_for_are_missed() -> None:
    page = Countdown(slow_s=0.2)
    scraper = Scraper(page, 0.05)
    scraper.begin()
    assert page.enough.wait(30)
    scraper.end(time.time())
    assert any(each.error == SKIPPED for each in scraper.history.rounds)


def test_a_page_that_fails_meanwhile_is_asked_on() -> None:
    page = Countdown(fails=lambda scrape: scrape < 3)
    scraper = Scraper(page, 0.05)
    scraper.begin()
    assert page.enough.wait(30)
    scraper.end(time.time())
    assert scraper.history.rounds[0].error == "no"
    assert scraper.history.rounds[-1].error is None


HUGE = [1e308, -1e308, 1.7e308, 1e200, 1e100, -1e100, 5e-324, math.inf, -math.inf, math.nan, 0.0, 3.0]


@given(st.lists(st.tuples(*[st.sampled_from(HUGE)] * 4), min_size=4, max_size=4))
@example([(1e308,) * 4, (1e308,) * 4, (1e308, 1e308, -1e100, 1e100), (1e308, 1e308, 5e-324, -1e100)])
def test_no_value_of_a_page_leads_beyond_what_can_be_stored(values: list[tuple[float, ...]]) -> None:
    pages: dict[float, str | None] = {
        100.0 + at: (
            f"# TYPE g gauge\ng {gauge!r}\n# TYPE c counter\nc {counter!r}\n# TYPE h histogram\n"
            f'h_bucket{{le="{gauge!r}"}} {bucket!r}\nh_bucket{{le="+Inf"}} {total!r}\n'
            f"h_sum {bucket!r}\nh_count {total!r}\n"
        )
        for at, (gauge, counter, bucket, total) in enumerate(values)
    }
    asked = {
        "g": ["Average", "Minimum", "Maximum", "p90", "Last"],
        "c": ["Total", "Rate", "Average"],
        "h": ["p50", "p99", "Average", "Total", "Rate", "Maximum"],
    }
    for row in rows(asked, pages, (100.5, 102.5)):
        json.dumps(encoded(row), allow_nan=False)
