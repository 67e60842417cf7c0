"""Searches in users: of a simulated closed queue whose truth has a closed form, and the estimate of a crossing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.answer import Interval
from server_capacity.search.blocks import UsersBlock
from server_capacity.search.crossing import crossing
from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from server_capacity.search.users import UserSearch, answer_in_users, known_of
from tests.closed_queue import LIMIT, TRUTHS, over_of, searched

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("think_s", [0.2, 1.0])
def test_the_truth_of_the_simulated_endpoint(think_s: float) -> None:
    truth = TRUTHS[think_s]
    assert over_of(truth, 0.2, think_s) <= 0.01 < over_of(truth + 1, 0.2, think_s)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_search_finds_the_population_of_a_closed_queue(seed: int) -> None:
    found, stretches = searched(seed, Settings(time_s=120), 1.0)
    assert (found.outcome, found.limit) == ("found", "p99<200ms")
    assert found.rate is not None
    assert found.interval is not None
    assert found.interval.low <= TRUTHS[1.0] <= found.interval.high
    assert found.rate == int(found.rate)
    assert 0.85 * TRUTHS[1.0] < found.rate < 1.15 * TRUTHS[1.0]
    assert all(stretch.rate == int(stretch.rate) for stretch in stretches)
    assert sum(stretch.seconds for stretch in stretches if stretch.rate) == pytest.approx(120, abs=1)


def test_a_search_goes_no_higher_than_it_may() -> None:
    found, stretches = searched(1, Settings(max_rps=50), 1.0)
    assert (found.outcome, found.at_least) == ("at_least", 50)
    assert max(stretch.rate for stretch in stretches) == 50


def stretch(users: float, over: Callable[[int], int], number: int = 0, seconds: int = 40, of: int = 100) -> Stretch:
    slices = tuple(Slice(second, second + 1, of, of, (Count(of, over(second)),)) for second in range(seconds))
    return Stretch(number, users, 0, seconds, slices, "near", users, in_flight=5)


def test_one_user_who_breaks_the_limit_is_too_many() -> None:
    search = UserSearch([LIMIT], Settings(), 0.0)
    broken = stretch(1, lambda _: 50)
    assert search.order(Moment(40, [broken], 1)) == "end"
    found = answer_in_users([LIMIT], Settings(), [broken], 0.0)
    assert (found.outcome, found.reason) == ("not_kept", "a single user violates p99<200ms")


def test_more_users_than_the_client_can_do_are_not_tried_again() -> None:
    search = UserSearch([LIMIT], Settings(), 0.0)
    kept, more = stretch(10, lambda _: 0), stretch(30, lambda _: 0, 1)
    assert search.order(Moment(80, [kept, more], 30)) == 90
    void = replace(more, void="the client was the limit: it sent 5% of the requests more than 5 ms late")
    assert search.order(Moment(80, [kept, void], 30)) == "end"
    assert search.client_most == 10


def test_what_counts_for_nothing_changes_no_answer() -> None:
    kept, broken = stretch(10, lambda _: 0), stretch(12, lambda _: 9, 1)
    void = replace(stretch(5, lambda _: 90, 2), void="the client was the limit")
    answers = [answer_in_users([LIMIT], Settings(), each, 1.0) for each in ([kept, broken], [kept, broken, void])]
    assert answers[0] == answers[1]
    assert answers[0].rate in (10, 11, 12)


def test_a_crossing_is_where_the_share_is_what_is_allowed() -> None:
    blocks = [UsersBlock(users, 100_000, round(1000 * (users / 200) ** 20)) for users in (180, 190, 200, 210)]
    found = crossing(blocks, 0.01, 195)
    assert found.at == pytest.approx(200, rel=0.01)
    assert found.interval.low < 200 < found.interval.high
    assert found.slope == pytest.approx(20, rel=0.2)


def test_bursts_make_an_interval_wider() -> None:
    even = [UsersBlock(users, 1000, 10) for users in (195, 200, 205) for _ in range(8)]
    bursts = [UsersBlock(users, 1000, over) for users in (195, 200, 205) for over in (0, 0, 0, 40, 0, 0, 0, 40)]
    narrow, wide = crossing(even, 0.01, 200).interval, crossing(bursts, 0.01, 200).interval
    assert wide.width > 1.5 * narrow.width


def test_bursts_that_reach_from_block_to_block_make_an_interval_wider() -> None:
    apart, together = (0, 40, 0, 40, 0, 40, 0, 40), (0, 0, 0, 0, 40, 40, 40, 40)
    narrow, wide = (
        crossing([UsersBlock(users, 1000, over) for users in (195, 200, 205) for over in order], 0.02, 200)
        for order in (apart, together)
    )
    assert wide.dispersion > 2 * narrow.dispersion
    assert wide.interval.width > 1.3 * narrow.interval.width


def test_nothing_is_known_of_a_limit_that_nothing_broke() -> None:
    known = known_of(LIMIT, [UsersBlock(10, 100, 0), UsersBlock(20, 200, 0)])
    assert (known.kept, known.broken, known.users) == (20, None, math.inf)


SUCCESS = Limit("success>=0.95", "success", 0.05)


def failing(users: float, share: float, number: int, *, slow: float = 0.0, purpose: str = "near") -> Stretch:
    """40 s of 100 requests, of which shares are slow and fail."""
    counts = (Count(100, round(100 * slow)), Count(100, round(100 * share)))
    slices = tuple(Slice(second, second + 1, 100, 100, counts) for second in range(40))
    return Stretch(number, users, 0, 40, slices, purpose, users, in_flight=5)


def test_a_share_above_the_allowed_one_is_never_met() -> None:
    """An endpoint that fails every tenth request was said to keep success>=0.95 at the highest number allowed."""
    settings = Settings(max_rps=6)
    seen = [failing(users, 0.1, number) for number, users in enumerate((1, 3, 6))]
    found = answer_in_users([LIMIT, SUCCESS], settings, seen, 0.0)
    assert (found.outcome, found.limit, found.at_least) == ("cannot_tell", "success>=0.95", None)
    assert [each.kept_everywhere for each in found.estimates] == [True, False]
    assert found.reason.startswith("at 6 users and below, ")
    assert found.reason.endswith("(10%) were over the limit of success>=0.95, and 5% may be")
    seen = [failing(users, share, number) for number, (users, share) in enumerate(((1, 0.0), (3, 0.0), (6, 0.1)))]
    assert answer_in_users([LIMIT, SUCCESS], settings, seen, 0.0).reason.startswith("at 6 users, "), "the rest hides it"
    kept = [failing(users, 0.04, number) for number, users in enumerate((1, 3, 6))]
    assert answer_in_users([LIMIT, SUCCESS], settings, kept, 0.0).at_least == 6


def test_a_search_stays_at_the_most_users_until_a_limit_is_decided() -> None:
    search = UserSearch([LIMIT, SUCCESS], Settings(max_rps=6, time_s=100), 0.0)
    assert search.order(Moment(40, [failing(6, 0.1, 0)], 6)) is None
    assert search.order(Moment(40, [failing(6, 0.04, 0)], 6)) == "end"
    longer = replace(failing(6, 0.1, 0), end_s=120)
    assert search.order(Moment(120, [longer], 6)) == "end", "its time is over"


def test_an_answer_whose_other_limit_is_not_met_below_it_is_none() -> None:
    over = ((10, 0.0), (30, 0.5), (12, 0.005), (14, 0.02))
    seen = [failing(users, 0.1, number, slow=slow) for number, (users, slow) in enumerate(over)]
    found = answer_in_users([LIMIT, SUCCESS], Settings(), seen, 0.0)
    assert (found.outcome, found.limit, found.rate) == ("cannot_tell", "success>=0.95", None)
    good = [failing(users, 0.0, number, slow=slow) for number, (users, slow) in enumerate(over)]
    assert answer_in_users([LIMIT, SUCCESS], Settings(), good, 0.0).limit == "p99<200ms"


def test_a_share_that_no_number_of_users_makes_less_is_no_crossing() -> None:
    """By chance one stretch had clearly too many and one had none: all others say that users do not matter."""
    shares = ((2, 0.1), (4, 0.1), (5, 0.04), (6, 0.17), (7, 0.1))
    seen = [failing(users, share, number) for number, (users, share) in enumerate(shares)]
    found = answer_in_users([LIMIT, SUCCESS], Settings(), seen, 0.0)
    assert (found.outcome, found.limit, found.rate) == ("cannot_tell", "success>=0.95", None)
    assert [each.rate for each in found.estimates] == [None, None]


def test_requests_that_all_failed_in_a_stretch_too_short_to_settle_count() -> None:
    found = answer_in_users([SUCCESS], Settings(), [stretch(1, lambda _: 100, seconds=1)], 0.0)
    assert (found.outcome, found.limit) == ("not_kept", "success>=0.95")
    assert not answer_in_users([SUCCESS], Settings(), [], 0.0).estimates[0].kept_everywhere


def test_an_endpoint_that_dies_is_none_that_a_single_user_is_too_many_for() -> None:
    seen = [failing(users, share, number) for number, (users, share) in enumerate(((1, 0.0), (3, 0.0), (1, 1.0)))]
    found = answer_in_users([LIMIT, SUCCESS], Settings(), seen, 0.0)
    assert (found.outcome, found.estimates[1].rate, found.estimates[1].interval) == ("cannot_tell", None, None)
    assert found.reason.endswith("(100%) failed, and before at 3 users 0 of 4,000: the endpoint changed")


def test_a_number_that_was_hardly_tried_is_not_met() -> None:
    """Interrupted soon after the number rose: nothing of that stretch had settled."""
    seen = [stretch(4, lambda _: 0), stretch(12, lambda _: 0, 1)]
    short = replace(stretch(36, lambda _: 0, 2), slices=(Slice(0, 40, 100, 100, (Count(100, 0),)),))
    found = answer_in_users([LIMIT], Settings(), [*seen, short], 0.0)
    assert (found.outcome, found.at_least) == ("cannot_tell", 12)
    over = replace(short, slices=(Slice(0, 40, 100, 100, (Count(100, 60),)),))
    found = answer_in_users([LIMIT], Settings(), [*seen, over], 0.0)
    assert (found.outcome, found.interval) == ("found", Interval(12, 36))


def test_a_violation_that_more_users_do_not_repeat_is_chance() -> None:
    """Of the first stretch by chance none failed, of the second clearly too many; of all others every tenth."""
    few = [failing(users, share, number) for number, (users, share) in enumerate(((2, 0.0), (8, 0.2)))]
    seen = [*few, *(failing(users, 0.1, users) for users in (16, 32, 64))]
    found = answer_in_users([LIMIT, SUCCESS], Settings(), seen, 0.0)
    assert (found.outcome, found.limit, found.rate) == ("cannot_tell", "success>=0.95", None)
    assert found.reason.startswith("at 8 users and above, ")
    assert answer_in_users([LIMIT, SUCCESS], Settings(), few, 0.0).outcome == "found"


@pytest.mark.parametrize(("of", "met"), [(1, None), (20, 12)])
def test_users_who_met_every_limit_sent_enough_to_show_it(of: int, met: int | None) -> None:
    tried = [stretch(users, lambda _: 0, number, of=of) for number, users in enumerate((4, 12))]
    found = answer_in_users([LIMIT], Settings(), tried, 0.0)
    assert (found.outcome, found.at_least) == ("cannot_tell", met)
