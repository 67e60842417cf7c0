"""The simulated queues that a search for a capacity is judged against, held against closed forms."""

from __future__ import annotations

import itertools
import math
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from server_capacity.search.answer import Answer, Interval
from server_capacity.search.settings import Settings
from tests.performance.capacity import driver, easy_way, results, truths
from tests.performance.capacity.endpoints import ENDPOINTS, HELD_OUT, Endpoint, times
from tests.performance.capacity.oracle import oracle
from tests.performance.capacity.queues import Queue, Rules
from tests.performance.capacity.truths import closed_form, first_crossing, refused_share, response_longer, share_over

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.performance.capacity.queues import Service

pytestmark = pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="the simulated queues need a C compiler"
)


def responses(rules: Rules, at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Response times of arrivals at these instants, in ms; -1 for one that is refused."""
    done = np.full(len(at), np.inf)
    queue = Queue(rules, 1)
    queue.offer(at, 0, done)
    queue.settle(np.inf, done)
    return np.where(done < 0, -1.0, 1e3 * (done - at))


@pytest.mark.parametrize(
    ("rules", "at", "expected"),
    [
        (Rules(1, 0.02), [1.0, 1.0, 1.05], [20, 40, 20]),
        (Rules(2, 0.02), [1.0, 1.0, 1.0], [20, 20, 40]),
        (Rules(1, 0.02, queue_limit=0), [1.0, 1.01, 1.02], [20, -1, 20]),
        (Rules(1, 0.02, order="lifo"), [1.0, 1.001, 1.002], [20, 59, 38]),
        (Rules(1, 0.02, order="shared"), [1.0, 1.01], [30, 30]),
        (Rules(2, 0.02, order="shared"), [1.0, 1.0, 1.0], [30, 30, 30]),
        (Rules(1, 0.02, order="shared", queue_limit=1), [1.0, 1.0, 1.0], [40, 40, -1]),
        (Rules(1, 0.02, order="urgent", urgent=1.0), [1.0, 1.001, 1.002], [20, 39, 58]),
        (Rules(1, 0.02, instances=2, routing="in turn"), [1.0, 1.0, 1.001, 1.5], [20, 20, 39, 20]),
        (Rules(1, 0.02, instances=2, routing="fewest"), [1.0, 1.01, 1.025, 1.026], [20, 20, 20, 24]),
        (Rules(1, 0.02, batch_size=2, batch_delay_s=0.05), [1.0, 1.01, 2.0], [30, 20, 70]),
        (Rules(1, 0.02, batch_size=3, each_s=0.001), [1.0, 1.001, 1.002], [21, 42, 41]),
        (
            Rules(1, 0.02, most_servers=2, threshold=1, keep_s=1.0),
            [1.0, 1.0, 1.0, 1.5, 1.5, 3.0, 3.0],
            [20, 20, 40, 20, 20, 20, 40],
        ),
        (Rules(1, 0.02, cold_requests=2, cold_factor=3), [1.0, 2.0, 3.0], [60, 40, 20]),
        (Rules(1, 0.02, slow_s=1.5, slow_factor=3), [1.0, 2.4, 2.5], [60, 60, 20]),
        (Rules(1, 0.02, pause_every_s=1.0, pause_s=0.3), [1.0, 1.99, 2.1, 3.2, 3.5], [20, 320, 230, 120, 20]),
    ],
)
def test_queues_answer_as_their_rules_say(rules: Rules, at: list[float], expected: list[float]) -> None:
    assert responses(rules, np.array(at)) == pytest.approx(expected)


@pytest.mark.parametrize(("servers", "load", "bound"), [(1, 0.5, 5.0), (4, 0.8, 5.0), (16, 0.9, 4.0)])
def test_response_times_of_exponential_servers_have_their_closed_form(servers: int, load: float, bound: float) -> None:
    endpoint = Endpoint("m", "", Rules(servers, 1.0, "exponential"), (times(99, bound),))
    simulated = share_over(endpoint, endpoint.limits[0], load * servers, 1e6)
    assert simulated == pytest.approx(response_longer(servers, load, bound), rel=0.06)


@pytest.mark.parametrize("bound", [2.5, 5.0, 7.5])
def test_response_times_of_one_exact_server_have_their_closed_form(bound: float) -> None:
    endpoint = Endpoint("d", "", Rules(1, 1.0), (times(99, bound),))
    waits = bound - 1
    kept = 0.3 * sum(
        (-0.7 * (waits - k)) ** k / math.factorial(k) * math.exp(0.7 * (waits - k)) for k in range(int(waits) + 1)
    )
    assert share_over(endpoint, endpoint.limits[0], 0.7, 1e6) == pytest.approx(1 - kept, rel=0.1)


def arrivals(rate: float, count: int) -> NDArray[np.float64]:
    return np.cumsum(np.random.default_rng(3).exponential(1 / rate, count))


@pytest.mark.parametrize("service", ["exact", "bimodal"])
def test_mean_response_times_of_a_shared_server_do_not_depend_on_how_services_vary(service: Service) -> None:
    times_ms = responses(Rules(1, 0.001, service, 0.8, order="shared"), arrivals(700.0, 300_000))
    assert np.mean(times_ms) == pytest.approx(1 / 0.3, rel=0.05)


def test_urgent_requests_make_others_wait_and_the_mean_is_that_of_one_line() -> None:
    one_line, two = (
        responses(Rules(1, 0.001, "exponential", order=order, urgent=0.4), arrivals(700.0, 300_000))
        for order in ("fifo", "urgent")
    )
    assert np.mean(two) == pytest.approx(np.mean(one_line), rel=0.05)
    assert np.quantile(two, 0.99) > 1.2 * np.quantile(one_line, 0.99)


def test_random_routing_makes_queues_that_are_alone() -> None:
    endpoint = Endpoint("r", "", Rules(1, 1.0, "exponential", instances=5), (times(99, 10.0),))
    simulated = share_over(endpoint, endpoint.limits[0], 3.0, 1e6)
    assert simulated == pytest.approx(response_longer(1, 0.6, 10.0), rel=0.06)


def test_services_in_a_row_are_as_alike_as_asked() -> None:
    rules = Rules(1, 0.001, "lognormal", 0.5, correlation=0.8)
    logs = np.log(responses(rules, np.arange(100_000.0)))
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.8, abs=0.02)
    assert np.mean(np.exp(logs)) == pytest.approx(1.0, rel=0.02)


def test_a_wave_meets_the_same_random_numbers_whatever_rates_are_sent() -> None:
    waves = [driver.Wave(ENDPOINTS["exact"], seed=1) for _ in range(2)]
    waves[0].send(10.0, 0.0, 900.0)
    for rate, start_s, end_s in ((40.0, 0.0, 100.0), (10.0, 100.0, 600.0)):
        waves[1].send(rate, start_s, end_s)
    in_units = 40 * np.minimum(waves[1].at, 100) + 10 * np.maximum(waves[1].at - 100, 0)
    assert waves[0].count == waves[1].count
    np.testing.assert_allclose(in_units[: waves[1].count], 10 * waves[0].at[: waves[0].count], rtol=1e-9)


def test_refusals_have_their_closed_form() -> None:
    endpoint = ENDPOINTS["refusing"]
    simulated = share_over(endpoint, endpoint.limits[0], 160.0, 1e6)
    assert simulated == pytest.approx(refused_share(4, 0.8, 10), rel=0.03)


def test_the_truths_in_the_table_are_those_of_the_closed_forms() -> None:
    exact = {name: truth for name, each in ENDPOINTS.items() if (truth := closed_form(each)) is not None}
    assert exact == pytest.approx({"exponential": 175.0452, "single": 53.9483, "refusing": 154.9226}, abs=1e-3)
    assert all(ENDPOINTS[name].truth == pytest.approx(truth, rel=1e-5) for name, truth in exact.items())


@pytest.mark.parametrize("endpoint", HELD_OUT.values(), ids=HELD_OUT.keys())
def test_the_truths_of_endpoints_held_out_are_where_their_limit_gives_out(endpoint: Endpoint) -> None:
    assert endpoint.truth is not None
    exact = closed_form(endpoint)
    if exact is not None:
        assert endpoint.truth == pytest.approx(exact, rel=1e-5)
    below, above = (share_over(endpoint, endpoint.limits[0], endpoint.truth * part, 3e5) for part in (0.9, 1.1))
    assert below < endpoint.limits[0].allowed < above


def test_a_simulated_truth_is_that_of_the_closed_form() -> None:
    endpoint = ENDPOINTS["refusing"]
    assert first_crossing(endpoint, endpoint.limits[0], 4e5) == pytest.approx(154.92, rel=0.02)


def test_the_queue_stays_warm_between_calls() -> None:
    at = np.sort(np.random.default_rng(1).uniform(0, 10, 1800))
    at_once, in_parts = np.full(1800, np.inf), np.full(1800, np.inf)
    rules = Rules(4, 0.02, "exponential")
    Queue(rules, 7).offer(at, 0, at_once)
    queue = Queue(rules, 7)
    for first, last in itertools.pairwise([0, 5, 700, 1800]):
        queue.offer(at[first:last], first, in_parts)
    np.testing.assert_array_equal(at_once, in_parts)


def test_windows_count_what_arrived_within_them() -> None:
    counts = Queue(Rules(1, 0.01), 1).long_run(2, 50.0, 0.0, 60.0, 10.0, 20)
    np.testing.assert_array_equal(counts.of, counts.over)
    assert counts.of.mean() == pytest.approx(500, abs=25)


def test_the_oracle_knows_the_slope_of_one_exponential_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truths, "KEPT", tmp_path)
    found = oracle(ENDPOINTS["single"], windows=200)
    # ln share = -(mu - rate) x bound: its slope over ln rate is rate x bound.
    assert found.slope == pytest.approx(53.95 * 0.1, rel=0.15)
    assert 0.15 < found.score / 53.95 < 0.35


def test_a_search_that_is_played_has_every_request_in_one_slice() -> None:
    played = driver.play(ENDPOINTS["exact"], Settings(time_s=20.0), 1)
    stretches = played.stretches
    assert [stretch.start_s for stretch in stretches[1:]] == [stretch.end_s for stretch in stretches[:-1]]
    assert [stretch.before for stretch in stretches[1:]] == [stretch.rate for stretch in stretches[:-1]]
    for stretch in stretches:
        sent = sum(part.sent for part in stretch.slices)
        assert sent == sum(part.counts[0].of for part in stretch.slices)
        assert sent == pytest.approx(
            stretch.rate * stretch.seconds, abs=6 * (1 + stretch.rate * stretch.seconds) ** 0.5
        )
    assert sum(stretch.seconds for stretch in stretches if stretch.rate) == pytest.approx(played.load_s)


def test_the_client_voids_what_it_cannot_send() -> None:
    played = driver.play(ENDPOINTS["exact"], Settings(time_s=20.0), 1, driver.Feed(client_most=50.0))
    assert all(bool(stretch.void) == (stretch.rate > 50) for stretch in played.stretches)


def test_what_comes_in_while_the_wave_runs_is_in_the_end_what_was_due() -> None:
    wave = driver.Wave(ENDPOINTS["exponential"], seed=1)
    pilot = driver.Pilot(wave, driver.Feed())
    for number, rate in enumerate((100.0, 0.0, 300.0, 150.0)):
        pilot.change(5.3 * number, rate, "near")
        wave.send(rate, 5.3 * number, 5.3 * number + 5.3)
    for now_s in range(60):
        wave.settle(float(now_s))
        pilot.feed(float(now_s))
    live, exact = pilot.track.stretches(60.0), pilot.exactly(21.2)
    for one, other in zip(live, exact, strict=True):
        for place in (0, 1):
            counted, due = ([part.counts[place] for part in each.slices] for each in (one, other))
            assert sum(count.of for count in counted) == sum(count.of for count in due)
            assert sum(count.over for count in counted) == sum(count.over for count in due)


@pytest.mark.parametrize(
    ("over", "of", "low", "high"), [(0, 0, 0.0, 1.0), (0, 100, 0.0, 0.037), (10, 100, 0.0552, 0.1744)]
)
def test_the_interval_of_the_easy_way_is_that_of_wilson(over: int, of: int, low: float, high: float) -> None:
    assert easy_way.wilson(over, of) == pytest.approx((low, high), abs=1e-4)


def test_the_easy_way_answers_from_its_trials() -> None:
    trials = [easy_way.Trial(10, True, True), easy_way.Trial(20, False, False), easy_way.Trial(15, True, None)]
    assert easy_way.answer(trials) == Answer("found", 15, Interval(10, 20))


def test_results_are_kept_line_by_line(tmp_path: Path) -> None:
    result = results.Result.of(
        "exact", 1, 100.0, Answer("found", 98.0, Interval(95.0, 99.0), "p99<100ms"), load_s=180.0
    )
    file = tmp_path / "results.jsonl"
    results.keep(file, result)
    assert results.read(file) == {("exact", 1): result}
    assert (result.covers, result.too_high, result.half, result.score) == (False, False, 2.0, 44.0)
    assert results.misses([result]) == "  exact seed 1: found, 95.00 to 99.00, truth 100.00"
