"""Whole searches against small queues whose capacity is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment, Search
from server_capacity.search.settings import LONGEST_TIME_S, USUAL_TIME_S, Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.server_capacity.search.queues import Queue, play

P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)
SUCCESS = Limit("success>=0.95", "success", 0.05)


def exponential(mean_s: float) -> Queue:
    return Queue(1, lambda draw: draw.expovariate(1 / mean_s))


def exactly(servers: int, seconds: float) -> Queue:
    return Queue(servers, lambda _: seconds)


def test_the_interval_of_one_exponential_server_contains_its_capacity() -> None:
    found = play(exponential(0.01), [P99, SUCCESS], Settings(time_s=120), seed=3).answer
    assert (found.outcome, found.limit) == ("found", "p99<100ms")
    assert found.interval is not None
    assert found.interval.low < 53.95 < found.interval.high
    assert found.rate is not None
    assert found.interval.low <= found.rate <= found.interval.high


def test_even_arrivals_find_the_step_of_exact_servers_and_end_early() -> None:
    played = play(exactly(4, 0.02), [P99], Settings("constant"))
    assert played.answer.rate is not None
    assert 196 <= played.answer.rate <= 200
    assert played.stretches[-1].end_s < 120


@pytest.mark.parametrize("servers", [1, 4])
def test_a_search_of_twenty_seconds_measures_near_the_answer(servers: int) -> None:
    """It spent 11 s on 1 to 16/s and the rest far away; the upper end was the rate that broke the limit, 32 and 128."""
    slow = replace(P99, expression="p99<500ms", bound_s=0.5)
    found = [play(exactly(servers, 0.05), [slow, SUCCESS], Settings(time_s=20), seed=seed).answer for seed in range(3)]

    for each in found:
        assert each.rate is not None
        assert each.interval is not None
        assert each.interval.low < 20 * servers
        assert 0.6 * 20 * servers < each.rate < 1.1 * 20 * servers
        assert 0.9 * 20 * servers < each.interval.high < 1.5 * 20 * servers


def test_growth_goes_to_what_one_server_can_do_as_soon_as_answers_tell() -> None:
    grown = [each for each in play(exactly(4, 0.005), [P99], Settings(time_s=30)).stretches if each.purpose == "grow"]

    assert 90 < grown[1].rate <= 200
    assert grown[-1].end_s < 10


def test_without_a_limit_on_time_the_capacity_is_what_keeps_up() -> None:
    found = play(Queue(2, lambda draw: draw.expovariate(50)), [SUCCESS], Settings(time_s=90)).answer
    assert found.limit == "keeps up"
    assert found.interval is not None
    assert found.interval.low < 100 < found.interval.high
    assert found.interval.width < 30


def test_the_most_that_is_allowed_is_at_least_what_it_takes() -> None:
    played = play(exactly(4, 0.02), [P99], Settings(max_rps=50))
    assert (played.answer.outcome, played.answer.at_least) == ("at_least", 50)
    assert max(stretch.rate for stretch in played.stretches) == 50


def test_what_the_client_cannot_send_is_not_tried_again() -> None:
    played = play(exactly(4, 0.02), [P99], Settings(), client_most=90)
    assert (played.answer.outcome, played.answer.reason) == ("at_least", "the client was the limit")
    too_much = [stretch.rate for stretch in played.stretches if stretch.rate > 90]
    assert too_much == sorted(set(too_much), reverse=True)
    assert played.answer.at_least is not None
    assert 75 < played.answer.at_least <= 90


def test_the_backlog_of_a_client_that_could_do_no_more_is_waited_out() -> None:
    played = play(exactly(4, 0.02), [P99], Settings(), client_most=90)
    after = [
        rate
        for stretch, rate in zip(played.stretches, [each.rate for each in played.stretches][1:], strict=False)
        if stretch.void
    ]
    assert after
    assert set(after) == {0.0}


def test_a_client_that_did_more_before_is_not_the_limit() -> None:
    search = Search([P99], Settings())
    once = [
        Stretch(
            number,
            rate,
            start_s,
            start_s + 3.0,
            (Slice(start_s, start_s + 3.0, sent, sent, (Count(sent, 0),)),),
            "grow",
        )
        for number, (rate, start_s, sent) in enumerate([(64.0, 0.0, 190), (128.0, 3.0, 380), (90.0, 6.0, 270)])
    ]
    void = replace(once[-1], void="the client was the limit")
    search.order(Moment(9.0, [*once[:-1], void], 0))
    assert search.client_most is None
    search.order(Moment(9.0, [*once[:-1], replace(void, rate=200.0)], 0))
    assert search.client_most == 128


def test_a_limit_that_an_idle_endpoint_breaks_is_kept_at_no_rate() -> None:
    found = play(exactly(4, 0.2), [P99], Settings()).answer
    assert (found.outcome, found.limit, found.rate) == ("not_kept", "p99<100ms", None)


def test_what_a_rate_far_above_leaves_is_drained_before_a_lower_one() -> None:
    """Of 200/s at most: from rates that were all too high nobody knows what an answer takes without a backlog."""

    def stretch(number: int, rate: float, start_s: int, end_s: int) -> Stretch:
        sent, answered = int(rate), min(int(rate), 200)
        slices = tuple(
            Slice(at, at + 1.0, sent, answered, (Count(answered, answered),)) for at in range(start_s, end_s)
        )
        return Stretch(number, rate, start_s, end_s, slices, "bisect")

    search = Search([P99], Settings(start_rps=1000.0))
    seen = [stretch(0, 1000.0, 0, 2), stretch(1, 0.0, 2, 12), stretch(2, 250.0, 12, 26)]
    assert search.order(Moment(26.0, seen, 646)) == 0
    assert search.order(Moment(31.0, [*seen, stretch(3, 0.0, 26, 31)], 0)) == 125


def test_a_precision_ends_the_search_as_soon_as_it_is_reached() -> None:
    found = play(exactly(4, 0.02), [P99], Settings(precision=0.25)).answer
    assert found.interval is not None
    assert found.rate is not None
    assert found.interval.width <= 0.35 * found.rate  # what was counted exactly may differ a little


def test_slow_answers_are_waited_for_before_more_is_sent() -> None:
    slow = Limit("p95<30s", "response_time", 0.05, 30.0)
    played = play(Queue(8, lambda draw: draw.gauss(10, 2)), [slow], Settings(time_s=400))
    assert played.stretches[1].rate == 0
    assert max(stretch.rate for stretch in played.stretches) <= 2.5
    assert played.answer.interval is not None
    assert played.answer.interval.low < 0.731 < played.answer.interval.high  # the truth, of 1.5 million arrivals


@pytest.mark.parametrize(
    ("settings", "answer_s", "load_s"),
    [
        (Settings(), 0.02, USUAL_TIME_S),
        (Settings(), 10.0, 600.0),
        (Settings(), 600.0, LONGEST_TIME_S),
        (Settings(time_s=60), 10.0, 60.0),
        (Settings(precision=0.05), 0.02, LONGEST_TIME_S),
        (Settings(time_s=60, precision=0.05), 0.02, 60.0),
    ],
)
def test_slow_answers_get_more_time_only_where_none_was_given(
    settings: Settings, answer_s: float, load_s: float
) -> None:
    assert settings.load_s(answer_s) == load_s


def test_the_first_rate_is_the_one_that_was_given_within_the_most() -> None:
    assert Search([P99], Settings(start_rps=40)).first_rate == 40
    assert Search([P99], Settings(start_rps=40, max_rps=10)).first_rate == 10


def test_the_most_that_is_allowed_is_met_only_by_enough_requests() -> None:
    """30 requests at 1/s met p99<100ms, and it was said to be met there: one in a hundred may be over."""
    played = play(exactly(4, 0.02), [P99], Settings(max_rps=1, time_s=120))
    assert (played.answer.outcome, played.answer.at_least) == ("cannot_tell", None)
    assert played.answer.reason.startswith("1/s, the highest rate allowed, violated no limit, but got too few requests")
    longer = play(exactly(4, 0.02), [P99], Settings(max_rps=1, time_s=400))
    assert (longer.answer.outcome, longer.answer.at_least) == ("at_least", 1), "it stays there until they are enough"


def test_the_most_of_the_client_is_met_only_by_enough_requests() -> None:
    played = play(exactly(4, 0.02), [P99], Settings(time_s=60), client_most=3)
    assert (played.answer.outcome, played.answer.at_least) == ("cannot_tell", None)
    assert played.answer.reason == "the client was the limit"
