"""Endpoints whose requests begin, or cease, to fail with time: no rate is why."""

from __future__ import annotations

import pytest

from server_capacity.search.answer import Answer, Estimate
from server_capacity.search.estimate import answer
from server_capacity.search.failing import AT_FIRST, unless_failing_since, without_failing_start
from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment, Search
from server_capacity.search.settings import Settings
from tests.server_capacity.search.runs import run

SUCCESS = Limit("success>=0.95", "success", 0.05)
GROWN = (("grow", 1.0, 3.0, 0.0), ("grow", 4.0, 3.0, 0.0), ("grow", 16.0, 3.0, 0.0), ("grow", 60.0, 3.0, 0.0))
FOUND = Answer("not_kept", limit="success>=0.95", estimates=(Estimate("success>=0.95", 3.0),))


def test_an_endpoint_that_dies_is_none_whose_capacity_is_low() -> None:
    seen = run(*GROWN, ("bisect", 42.0, 4.0, 1.0), ("confirm", 24.0, 8.0, 1.0))
    for found in (answer([SUCCESS], Settings(), seen), answer([SUCCESS], Settings(), seen[:-1])):
        assert (found.outcome, found.rate, found.at_least) == ("cannot_tell", None, None)
        assert found.reason.startswith("since 12 s into the search ")
        assert found.reason.endswith(" (100%) failed, and before at 60/s 0 of 180: the endpoint changed")


def test_some_requests_that_fail_later_at_every_rate_are_no_rate_s_fault() -> None:
    seen = run(("grow", 30.0, 8.0, 0.0), ("below", 20.0, 8.0, 0.2), ("below", 10.0, 8.0, 0.2))
    found = unless_failing_since([SUCCESS], seen, FOUND)
    assert found.outcome == "cannot_tell"
    assert found.reason.startswith("since 8 s into the search 48 of 240 requests (20%) failed")
    assert found.estimates == (Estimate("success>=0.95"),)


@pytest.mark.parametrize(
    "later",
    [
        (("grow", 120.0, 3.0, 1.0),),  # a higher rate
        (("bisect", 42.0, 4.0, 1.0), ("below", 30.0, 8.0, 0.0)),  # met at a lower one since then
        (("below", 50.0, 8.0, 0.2),),  # the step at 60/s was too short for its queue to fill
        (("below", 50.0, 8.0, 0.0),),
    ],
)
def test_what_a_rate_explains_is_no_change(later: tuple[tuple[str, float, float, float], ...]) -> None:
    assert unless_failing_since([SUCCESS], run(*GROWN, *later), FOUND) == FOUND


def test_a_beginning_that_failed_is_left_out_where_the_same_rate_is_met_later() -> None:
    seen = run(("grow", 1.0, 12.0, 0.5), ("bisect", 1.0, 8.0, 0.0), ("grow", 4.0, 3.0, 0.0))
    voids = [each.void for each in without_failing_start([SUCCESS], seen)]
    assert voids == [f"{AT_FIRST}: 6 of 12; later 0 of 20 did", "", ""]
    grown = run(("grow", 1.0, 2.0, 1.0), ("grow", 4.0, 3.0, 1.0), ("bisect", 2.0, 8.0, 0.3), ("above", 3.0, 8.0, 0.0))
    assert [bool(each.void) for each in without_failing_start([SUCCESS], grown)] == [True, True, True, False]
    again = run(("grow", 1.0, 12.0, 0.5), ("bisect", 1.0, 8.0, 0.5), ("grow", 4.0, 3.0, 0.5))
    lower = run(("grow", 100.0, 3.0, 0.5), ("bisect", 50.0, 8.0, 0.0))
    few = run(("grow", 1.0, 12.0, 0.5), ("bisect", 1.0, 4.0, 0.0))
    for each in (again, lower, few):
        assert without_failing_start([SUCCESS], each) == tuple(each)


def test_a_search_goes_on_for_a_while_where_the_first_requests_fail() -> None:
    first = run(("grow", 1.0, 13.0, 0.5))
    search = Search([SUCCESS], Settings(time_s=60.0))
    assert search.order(Moment(13.0, first, 0)) == 1.0
    recovered = run(("grow", 1.0, 13.0, 0.5), ("bisect", 1.0, 14.0, 0.0), ("bisect", 1.0, 14.0, 0.0))
    assert search.order(Moment(41.0, recovered, 0)) == 4.0
    search = Search([SUCCESS], Settings(time_s=60.0))
    assert search.order(Moment(3.0, run(("grow", 1.0, 3.0, 1.0)), 0)) == 1.0
    search = Search([SUCCESS], Settings(time_s=60.0))
    failing = run(("grow", 1.0, 13.0, 0.5), ("bisect", 1.0, 28.0, 0.5))
    assert search.order(Moment(13.0, first, 0)) == 1.0
    assert search.order(Moment(41.0, failing, 0)) == "end"
