"""Stretches that count for nothing since the server was another one: instances that changed, requests of others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.facts.instances import Count, Followed
from inference_benchmarker.facts.server_metric import LiveMetric, ServerMetric
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.completions import Span
from server_capacity.experiments.server_side.disturbance import Disturbance, Standing, disturbances, voids
from tests.mentions import mentions
from tests.waves import observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts


def wave(seconds: int = 10) -> WaveFacts:
    plan = open_plan("100", str(seconds))
    return observe(plan, on_time(plan))


def start_of(facts: WaveFacts) -> float:
    return facts.window.start_unix_ns / NS


def counted(facts: WaveFacts, *counts: tuple[float, float]) -> WaveFacts:
    """The wave with (seconds after its start, instances) as they were followed."""
    reported = tuple(Count(start_of(facts) + at, current) for at, current in counts)
    return replace(facts, instances=(Followed("endpoint/AllTraffic", "DescribeEndpoint", reported),))


def invocations(facts: WaveFacts, *sums: float, period: float = 1.0) -> WaveFacts:
    series = tuple((start_of(facts) + place * period, value) for place, value in enumerate(sums))
    row = ServerMetric(
        "cloudwatch",
        "Invocations",
        {"Sum": sum(sums)},
        namespace="AWS/SageMaker",
        dimensions={"EndpointName": "e", "VariantName": "v"},
        series_of="Sum",
        series=series,
    )
    return replace(facts, server_metrics=(row,))


def disturbed(*facts: WaveFacts) -> list[tuple[float, float]]:
    start = start_of(facts[0])
    return [(round(each.span.start - start, 1), round(each.span.end - start, 1)) for each in disturbances(facts)]


def test_instances_that_stand_still_disturb_nothing() -> None:
    assert disturbed(counted(wave(), (-1, 2), (3, 2), (9, 2))) == []
    assert disturbed(wave()) == []


@pytest.mark.parametrize(
    ("counts", "spans"),
    [
        ([(0, 1), (4, 1), (8, 2)], [(4, 10)]),
        ([(0, 1), (2, 2), (3, 2), (9, 2)], [(0, 2)]),
        ([(0, 2), (4, 1), (5, 2), (9, 2)], [(0, 5)]),
    ],
)
def test_times_with_another_number_than_usual_count_for_nothing(
    counts: list[tuple[float, float]], spans: list[tuple[float, float]]
) -> None:
    assert disturbed(counted(wave(), *counts)) == spans


def test_a_wave_on_more_instances_than_the_search_is_another_server() -> None:
    first, second = counted(wave(30), (0, 1), (29, 1)), counted(wave(), (0, 2), (9, 2))
    second = replace(second, window=replace(second.window, start_unix_ns=first.window.start_unix_ns + 40 * NS))
    moved = tuple(replace(count, at=count.at + 40) for count in second.instances[0].counts)
    second = replace(second, instances=(replace(second.instances[0], counts=moved),))
    found, *_ = disturbances([first, second])
    assert found.reason == "the number of instances changed: 2 instead of 1"
    assert found.span.start - start_of(first) == pytest.approx(29)


def test_our_own_requests_are_nobody_elses() -> None:
    assert disturbed(invocations(wave(), *[100.0] * 10)) == []


def test_a_bucket_with_more_than_ours_is_disturbed() -> None:
    facts = invocations(wave(), *[100.0] * 4, 400.0, *[100.0] * 5)
    assert disturbed(facts) == [(4, 5)]
    (found,) = disturbances([facts])
    assert "requests from elsewhere were among the 400" in found.reason


def test_a_steady_trickle_of_others_spoils_all() -> None:
    assert disturbed(invocations(wave(60), *[6_100.0], period=60)) == [(0, 60)]


def test_a_health_check_spoils_nothing() -> None:
    assert disturbed(invocations(wave(60), 6_003.0, period=60)) == []


def test_two_waves_of_ours_share_a_bucket() -> None:
    first, second = wave(10), wave(10)
    second = replace(second, window=replace(second.window, start_unix_ns=first.window.start_unix_ns + 20 * NS))
    both = [invocations(first, 2_000.0, period=60), invocations(second)]
    assert disturbances(both) == []
    assert len(disturbances(both[:1])) == 1


def test_nobody_knows_how_many_requests_tasks_send() -> None:
    facts = invocations(wave(), *[500.0] * 10)
    assert disturbances([replace(facts, lost_workers=(0,))]) == []


def test_the_stretches_that_a_disturbance_touches_are_void() -> None:
    spans = {3: Span(0, 10), 4: Span(10, 20), 5: Span(20, 30)}
    assert voids(spans, [Disturbance(Span(12, 20), "first"), Disturbance(Span(5, 15), "second")]) == {
        3: "second",
        4: "first",
    }


def test_the_live_count_voids_the_stretch_in_which_it_changes() -> None:
    standing = Standing()
    one, two = LiveMetric("instances", 1.0, None), LiveMetric("instances", 2.0, None)
    assert [standing.see([each]) for each in (one, one)] == ["", ""]
    assert "2 are asked for" in standing.see([one, LiveMetric("asked for", 2.0, None)])
    assert standing.see([]) == ""
    assert mentions(standing.see([two]), "2 instead of 1")
    assert standing.see([two]) == ""
