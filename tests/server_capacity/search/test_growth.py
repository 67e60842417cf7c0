"""Growth does not jump over a band in which a limit is broken by little, and looks at rates above it in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.estimate import answer
from server_capacity.search.growth import PATIENCE_S, beyond, doubtful, served_s
from server_capacity.search.limits import Limit
from server_capacity.search.search import Moment, Search
from server_capacity.search.settings import Settings
from tests.server_capacity.search.runs import run

if TYPE_CHECKING:
    from server_capacity.search.stretch import Stretch

P95 = Limit("p95<75ms", "response_time", 0.05, 0.075)


def ordered(stretches: list[Stretch], settings: Settings | None = None) -> tuple[object, str]:
    """What a search that ordered all of them one by one orders next, and why."""
    search = Search([P95], settings or Settings())
    for count in range(1, len(stretches)):
        search.order(Moment(stretches[count - 1].end_s, stretches[:count], 0))
        search.purpose = stretches[count].purpose
    return search.order(Moment(stretches[-1].end_s, stretches, 0)), search.purpose


LOW = ("grow", 64.0, 3, 0.01)


def test_growth_stays_where_more_than_is_allowed_is_over_and_then_goes_around_it() -> None:
    assert ordered(run(LOW, ("grow", 128.0, 3, 0.06))) == (None, "grow")
    assert ordered(run(LOW, ("grow", 128.0, 3, 0.01))) == (256.0, "grow")
    rate, purpose = ordered(run(LOW, ("grow", 128.0, PATIENCE_S, 0.06)))
    assert purpose in ("bisect", "below", "above")
    assert isinstance(rate, float)
    assert 64 < rate < 140
    assert ordered(run(LOW, ("grow", 128.0, PATIENCE_S, 0.04))) == (256.0, "grow")


def test_growth_comes_back_to_what_it_learns_too_late() -> None:
    assert ordered(run(LOW, ("grow", 128.0, 3, 0.06), ("grow", 256.0, 3, 0.0))) == (128.0, "grow")


@pytest.mark.parametrize("share", [0.06, 0.045])
def test_what_ended_growth_is_broken_whatever_is_kept_above(share: float) -> None:
    """Counted in the end, a little less may be over than was known when growth ended."""
    near = [(purpose, rate, 9, 0.04 + 0.02 * (rate > 110)) for purpose, rate in (("below", 100.0), ("above", 115.0))]
    island = [("island", 256.0, 9, 0.01), ("island", 512.0, 9, 0.9)]
    found = answer([P95], Settings(), run(LOW, ("grow", 128.0, PATIENCE_S, share), *near * 4, *island))
    assert found.interval is not None
    assert found.interval.high < 180
    assert found.rate is not None
    assert 90 < found.rate < 135
    assert [(island.low, island.high) for island in found.islands] == [(256.0, 256.0)]


def test_what_ended_growth_is_broken_though_it_seems_kept_in_the_end() -> None:
    near = [(purpose, rate, 9, 0.04 + 0.02 * (rate > 110)) for purpose, rate in (("below", 100.0), ("above", 115.0))]
    stretches = run(LOW, ("grow", 128.0, PATIENCE_S, 0.045), *near * 4, ("island", 512.0, 9, 0.9))
    found = answer([P95], Settings(), stretches)
    assert found.interval is not None
    assert found.interval.high < 180


def test_a_few_over_are_no_doubt() -> None:
    assert doubtful([P95], run(("grow", 4.0, 3, 0.25))) is None
    assert doubtful([P95], run(("grow", 64.0, 3, 0.06))) == 64


def test_rates_above_are_looked_at_until_they_are_hopeless() -> None:
    assert beyond([P95], run(LOW, ("grow", 128.0, 12, 0.06)), 2.0) == 256
    assert beyond([P95], run(LOW, ("grow", 128.0, 12, 0.4)), 2.0) is None


def test_the_last_tenth_of_the_time_is_for_islands() -> None:
    near = [("below", 100.0, 9, 0.04), ("above", 115.0, 9, 0.06)] * 5
    assert ordered(run(LOW, ("grow", 128.0, PATIENCE_S, 0.06), *near), Settings(time_s=115)) == (256.0, "island")


def test_growth_comes_back_only_once_what_waits_is_little_for_the_lower_rate() -> None:
    """A backlog of the higher rate would break the limit at the lower one, and be taken for it."""
    made = run(LOW, ("grow", 128.0, 3, 0.06), ("grow", 256.0, 3, 0.0))
    stretches = [replace(each, in_flight=round(0.1 * each.rate)) for each in made]
    search = Search([P95], Settings())
    assert search.order(Moment(stretches[-1].end_s, stretches, 80)) == 0.0
    assert search.purpose == "drain"


def test_a_rate_at_which_nothing_was_over_in_the_end_does_not_hold_growth() -> None:
    """Four cold answers at the first rate were reported as a limit that no rate meets."""
    cold = run(("grow", 1.0, 4, 1.0), ("grow", 4.0, 3, 0.0), ("grow", 1.0, PATIENCE_S, 0.0))
    rate, purpose = ordered(cold)
    assert (rate, purpose) == (16.0, "grow")


def test_of_another_search_growth_serves_and_what_is_near_the_answer() -> None:
    """Growth above the rate that violates the limit, and stretches far from the answer, it would not have sent."""
    grown = (LOW, ("grow", 128.0, 3, 0.9), ("grow", 256.0, 3, 0.9))
    near = (("below", 100.0, 9, 0.03), ("above", 104.0, 9, 0.07)) * 3
    known = run(*grown, *near, ("below", 30.0, 9, 0.0))
    assert served_s([P95], Settings(), known) == 3 + 3 + 6 * 9
    assert served_s([P95], Settings(), run(LOW, ("grow", 128.0, 3, 0.0), ("above", 110.0, 9, 0.0))) == 3 + 3


def test_a_search_goes_on_where_another_one_left_off() -> None:
    search = Search([P95], Settings(time_s=60))
    assert search.resume(run(LOW, ("grow", 128.0, 3, 0.0), ("above", 110.0, 9, 0.0))) == 256.0
    assert (search.purpose, search.beside_s) == ("grow", 9.0)

    search = Search([P95], Settings(time_s=60))
    rate = search.resume(run(LOW, ("grow", 128.0, 3, 0.9), ("below", 70.0, 9, 0.0)))
    assert search.purpose == "bisect"
    assert isinstance(rate, float)
    assert 70 < rate < 128


def test_a_search_that_knows_enough_sends_nothing() -> None:
    near = (("below", 100.0, 9, 0.03), ("above", 104.0, 9, 0.07)) * 3
    known = run(LOW, ("grow", 128.0, 3, 0.9), *near)
    assert Search([P95], Settings(time_s=60)).resume(known) == "end"
    assert Search([P95], Settings(time_s=61)).resume(known) != "end"


def test_what_another_search_looked_at_again_is_not_looked_at_once_more() -> None:
    known = run(LOW, ("grow", 128.0, 3, 0.9), *(("below", 100.0, 9, 0.03), ("above", 104.0, 9, 0.07)) * 2)
    search = Search([P95], Settings(time_s=60))
    first = search.resume(known)
    assert search.purpose in ("above", "below")
    assert isinstance(first, float)
    *_, running = run(*((each.purpose, each.rate, each.seconds, 0.0) for each in known), ("above", first, 9, 0.05))
    search.order(Moment(running.end_s, (*known, running), 0))
    assert search.purpose in ("above", "below"), "not the rate that ended growth once more, nor one well below"
