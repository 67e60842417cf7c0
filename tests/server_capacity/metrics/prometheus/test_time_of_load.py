"""What a Prometheus server is asked of the time of load alone, where an idle rest follows."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

import pytest

from inference_benchmarker.facts.server_metric import Interval
from server_capacity.metrics.prometheus.block import ServerBlock
from server_capacity.metrics.prometheus.promql.api import Api
from server_capacity.metrics.prometheus.promql.quantities import counters, gauges
from server_capacity.metrics.prometheus.promql.server import PrometheusServer
from server_capacity.metrics.prometheus.web import Reply

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.web import Web

IDLE_REST = Interval(100, 100, 132, 0, loaded=108)
ADDRESS = "http://127.0.0.1:1"


class LengthOfWindow:
    """Answers each query with the length of the window that it names, in seconds."""

    def get(self, url: str, *_: object) -> Reply:
        length = re.search(r"%5B(\d+)ms", url)
        value = [132, str(int(length[1]) / 1_000 if length else 0)]
        data = {"resultType": "vector", "result": [{"metric": {}, "value": value}]}
        if "query_range" in url:
            data = {"resultType": "matrix", "result": []}
        return Reply(200, json.dumps({"status": "success", "data": data}), "application/json", None)


WEB = cast("Web", LengthOfWindow())


def test_a_total_is_of_the_window_and_a_rate_or_a_gauge_of_the_load() -> None:
    api = Api(ADDRESS, WEB, None)
    found, _ = counters(api, ("tokens", ()), IDLE_REST)
    assert found[()].values == {"Total": 32, "Rate": 8 / 8}
    found, _ = gauges(api, ("gpu_use", ()), IDLE_REST)
    assert found[()].values["Average"] == 8


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("rate(tokens_total[{window}])", 8),
        ("avg_over_time(gpu_use[{window}])", 8),
        ("rate(tokens_sum[{window}])", 8),
        ("rate(wait_count[{window}])", 8),
        ("sum(increase(tokens_total[{window}]))", 32),
        ("rate(wait_sum[{window}])\n/ rate(wait_count[{window}])", 32),
        ('rate(wait_bucket{le="1"}[{window}]) / on () rate(wait_count[{window}])', 32),
        ("histogram_quantile(0.9, sum by (le) (rate(wait_bucket[{window}])))", 32),
    ],
)
def test_a_query_of_what_was_done_is_of_the_window_and_others_of_the_load(query: str, seconds: float) -> None:
    (row,) = PrometheusServer(ServerBlock(url=ADDRESS, queries=((query, query),)), WEB).read(IDLE_REST)
    assert row.statistics == {"Value": seconds}
    assert (row.start, row.end) == (100, 100 + seconds)


@pytest.mark.parametrize(
    ("query", "near"),
    [
        ("1000 * histogram_quantile(0.99, rate(wait_bucket[{window}]))", True),
        ("max(histogram_quantile (0.99, rate(wait_bucket[{window}])))", True),
        ("histogram_quantile(0.99, rate(wait_bucket[{window}]))", False),
        ("rate(tokens_total[{window}])", False),
    ],
)
def test_a_quantile_within_another_expression_proves_no_limit(query: str, near: bool) -> None:
    (row,) = PrometheusServer(ServerBlock(url=ADDRESS, queries=(("q", query),)), WEB).read(IDLE_REST)
    assert row.bounds == ({"Value": "about"} if near else {})
    assert ("one histogram_quantile and nothing else" in str(row.reason)) == near
