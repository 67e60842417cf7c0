"""Limits while the wave runs: their marks and values are what the feed bears out, as those of --abort-on are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli.live.live_limits import LimitSoFar, limits_so_far
from inference_benchmarker.plan.slo import Slo
from tests.scenes import Scene, streamed
from tests.waves import closed_plan, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan


def limited(plan: WavePlan, *slos: str) -> WavePlan:
    return replace(plan, slos=tuple(map(Slo.parse, slos)))


def so_far(scene: Scene, *slos: str) -> list[LimitSoFar]:
    return list(limits_so_far(limited(scene.plan, *slos), scene.state))


def sent(plan: WavePlan, seconds: int, requests: int, ok: int, **more: Any) -> Scene:
    scene = Scene(plan)
    for _ in range(seconds):
        scene.second(requests, ok, **more)
    return scene


@pytest.mark.parametrize(
    ("slo", "mark", "value"),
    [
        ("p99<200ms", "✓", "5"),
        ("p99<10ms", "✗", "5"),
        ("latency.min>1s", "✗", "30 ms"),
        ("latency.max<1s", "✓", "5"),
        ("mean<1s", "✓", "4"),
        ("lag.p99<5ms", "✓", "0."),
        ("ttft.p90<1s", "…", ""),
        ("tpot.p90<1s", "…", ""),
        ("goodput>=90%", "…", ""),
        ("metric.cache_hit.mean>0.8", "…", ""),
        ("success>=99%", "✓", "100%"),
        ("rate>=50%", "✓", "100%"),
    ],
)
def test_a_limit_has_its_mark_and_its_value_so_far(slo: str, mark: str, value: str) -> None:
    (limit,) = so_far(sent(open_plan("200", "60"), 10, 200, 200), slo)
    assert (limit.expression, limit.mark) == (slo, mark)
    assert limit.value.startswith(value)
    assert bool(limit.value) is bool(value)


def test_nobody_can_tell_before_the_first_request_is_over() -> None:
    limits = so_far(Scene(open_plan("10", "60")), "p99<1s", "success>=0.5", "rate>=0.5")
    assert [limit.mark for limit in limits] == ["…"] * 3


def test_a_stream_has_limits_of_its_own() -> None:
    marks = [limit.mark for limit in so_far(streamed(), "ttft.p50<1s", "itl.p99<1ms", "tpot.p99<1ms")]
    assert marks == ["✓", "✗", "✗"]


def test_a_value_does_not_look_like_a_limit_that_it_is_not() -> None:
    (limit,) = so_far(Scene(open_plan("10", "60")).second(200, 200, ms=40), "p50<40ms")
    assert limit.value != "40 ms"


def test_requests_in_flight_that_are_older_than_the_limit_break_it() -> None:
    """As the report will count them: an endpoint that answers nobody is not within any limit."""
    hanging = sent(open_plan("100", "60"), 8, 100, 0)
    (limit,) = so_far(hanging, "p99<2s")
    assert (limit.mark, limit.value) == ("✗", "7.5 s")
    assert [limit.mark for limit in so_far(hanging, "p99<30s", "ttft.p99<2s")] == ["…", "…"]
    answered = sent(open_plan("100", "60"), 8, 100, 100)
    assert [limit.mark for limit in so_far(answered, "p99<2s")] == ["✓"]


def test_in_the_closed_loop_a_bare_percentile_is_of_latency() -> None:
    (limit,) = so_far(sent(closed_plan(4, "60"), 3, 20, 20, ms=100, lag_ms=900), "p50<0.5s")
    assert limit.mark == "✓"
    (limit,) = so_far(sent(open_plan("20", "60"), 3, 20, 20, ms=100, lag_ms=900), "p50<0.5s")
    assert limit.mark == "✗"


def test_the_success_threshold_is_shown_from_the_first_failure_on() -> None:
    plan = open_plan("100", "60")
    assert so_far(sent(plan, 3, 100, 100)) == []
    (limit,) = so_far(sent(plan, 3, 100, 90, failed=[1, 10]))
    assert (limit.expression, limit.mark, limit.value) == ("success>=0.95", "✗", "90%")
    (limit,) = so_far(sent(plan, 3, 100, 90, failed=[1, 10]), "success>=80%")
    assert (limit.expression, limit.mark) == ("success>=80%", "✓")


def test_a_stage_has_its_own_requests_alone() -> None:
    plan = staged("calm=50:20s,spike=400:10s")
    scene = Scene(plan).second(50, 50, ms=20).second(50, 50, ms=20)
    assert [limit.mark for limit in so_far(scene, "calm:p99<50ms", "spike:p99<50ms", "calm:rate>=0.9")] == [
        "✓",
        "…",
        "…",
    ]
    scene.second(400, 300, ms=900, n=1)
    assert [limit.mark for limit in so_far(scene, "calm:p99<50ms", "spike:p99<50ms")] == ["✓", "✗"]


def test_the_rate_is_held_against_what_was_due() -> None:
    (limit,) = so_far(sent(open_plan("100", "60"), 10, 100, 40), "rate>=99%")
    assert limit.mark == "✗"
    assert limit.value.startswith("40")
