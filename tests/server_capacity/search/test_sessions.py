"""Searches for sessions: on the simulated LLM engine, and their steps, brackets and answers by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo, Turns
from server_capacity.search.answer import Interval
from server_capacity.search.limit_bracket import KEEPS_UP
from server_capacity.search.limits import SESSION, SESSION_SUCCESS, Limit, limits_of
from server_capacity.search.recovery import OVERLOAD, from_below, is_broken
from server_capacity.search.search import Moment
from server_capacity.search.session_answer import answer_in_sessions, near_rates
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.settings import LEAST_LENGTHS, USUAL_LENGTHS, Settings, half_width, time_for
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.simulated_sessions import KINDS, searched, searched_as_queue

LIMIT = Limit("ttft.p95<1s", "ttft", 0.05, 1.0)
ALONE_S = 10.0


def stretch(rate: float, share: float, number: int = 0, purpose: str = "grow", **more: float) -> Stretch:
    """80 s of ten turns a second, of sessions of ten seconds."""
    sessions, over = max(1, round(rate)), round(1000 * share)
    slices = [
        Slice(second, second + 1, sessions, sessions, (Count(1000, over),), ALONE_S * sessions)
        for second in range(80 * number, 80 * number + 80)
    ]
    found = Stretch(number, rate, 80 * number, 80 * number + 80, tuple(slices), purpose, in_flight=round(10 * rate))
    return replace(found, **more)  # type: ignore[arg-type]


def test_a_search_finds_the_rate_of_sessions_that_an_engine_serves() -> None:
    kind = KINDS["short chat"]
    found = searched(kind, 3, 120)
    assert (found.answer.outcome, found.answer.limit) == ("found", kind.slo)
    assert found.answer.interval is not None
    assert found.answer.interval.low <= kind.truth <= found.answer.interval.high
    load_s = sum(each.seconds for each in from_below(found.stretches) if each.rate)
    assert load_s == pytest.approx(100 * found.session_s, abs=3), "the rest of the time is for overload"
    assert found.answer.memory is not None
    assert not found.answer.memory.differ, "where no cache gives in, nothing is left of overload"


def test_streamed_requests_are_searched_as_sessions_of_one_turn() -> None:
    """An engine answers each more slowly the more it generates at a time, and none of them waits."""
    kind = KINDS["requests 200x50"]
    found = searched(kind, 1, 120).answer
    assert found.interval is not None
    assert found.interval.low <= kind.truth <= found.interval.high
    assert found.rate == pytest.approx(kind.truth, rel=0.2)


def test_limits_on_whole_answers_of_an_engine_are_searched_as_those_on_tokens() -> None:
    """The search for a queue's saturation takes the slow-down for a backlog: its whole interval is too low."""
    kind = KINDS["latency of 200x50"]
    found, queued = searched(kind, 0, 60).answer.interval, searched_as_queue(kind, 0, 60).answer.interval
    assert found is not None
    assert queued is not None
    assert queued.high < kind.truth
    assert found.low <= kind.truth <= found.high


def test_another_search_is_gone_on_with_from_what_it_saw_near_the_answer() -> None:
    seen = [stretch(2, 0.0), stretch(2.6, 0.4, 1), stretch(2.3, 0.05, 2, "bisect"), stretch(0.4, 0.0, 3)]
    search = SessionSearch([LIMIT], Settings(time_s=1000), ALONE_S)
    rate = search.resume(seen)
    assert isinstance(rate, float)
    assert 2 < rate < 2.6
    assert search.beside_s == 80, "at 0.4/s it saw nothing of this answer"
    assert SessionSearch([LIMIT], Settings(time_s=200), ALONE_S, single=True).resume(seen) == "end"


def test_a_search_of_which_enough_is_known_from_below_begins_with_its_own_overload() -> None:
    seen = [stretch(2, 0.0), stretch(2.6, 0.4, 1), stretch(2.3, 0.05, 2, "bisect")]
    left = replace(stretch(4, 0.0, 3, "shared overload"), void="of another tier")
    shared = [stretch(2.3, 0.05, 3 + number, "shared") for number in range(10)]
    few, many = (SessionSearch([LIMIT], Settings(time_s=1000), ALONE_S) for _ in range(2))
    assert few.resume([*seen, left]) != "end"
    assert few.purpose == "above"
    rate = many.resume([*seen, *shared, left])
    assert isinstance(rate, float)
    assert rate > 1.5 * 2.3
    assert many.purpose == OVERLOAD
    times = Settings(time_s=1000).times_of_sessions(ALONE_S)
    assert 14 * 80 - many.beside_s == pytest.approx(times.search_s), "all of the time for it is left"


def test_a_rate_that_counts_for_nothing_is_no_load_near_the_answer() -> None:
    seen = [stretch(2, 0.0), stretch(2.6, 0.4, 1), replace(stretch(2.3, 0.05, 2, "bisect"), void="late")]
    search = SessionSearch([LIMIT], Settings(time_s=1000), ALONE_S)
    search.resume(seen)
    assert search.beside_s == 80


def test_a_rate_at_which_nothing_was_sent_meets_no_limit() -> None:
    nothing = replace(
        stretch(0.2, 0.0, 1), slices=tuple(Slice(at, at + 1, 0, 0, (Count(0, 0),)) for at in range(80, 160))
    )
    found = answer_in_sessions([LIMIT], Settings(), [stretch(0.7, 1.0), nothing], ALONE_S, single=True)
    assert (found.outcome, found.interval, found.estimates[0].rate) == ("cannot_tell", None, None)


def test_a_search_that_knows_only_rates_that_broke_nothing_grows_on() -> None:
    search = SessionSearch([LIMIT], Settings(time_s=1000), ALONE_S, single=True)
    seen = [stretch(0.5, 0.0), stretch(2, 0.0, 1), stretch(1, 0.0, 2, "shared")]
    assert search.resume(seen) == 2, "once more: nothing is in flight any more"
    assert search.beside_s == 240
    assert search.order(Moment(320, [*seen, stretch(2, 0.0, 3)], 20)) == 4


def test_growth_begins_where_sessions_hardly_meet_and_doubles() -> None:
    search = SessionSearch([LIMIT], Settings(time_s=2000), ALONE_S)
    assert search.first_rate == 0.1
    assert search.order(Moment(80, [stretch(0.1, 0.0)], 1)) == pytest.approx(0.2)
    assert search.order(Moment(80, [stretch(0.1, 0.01)], 1)) == pytest.approx(0.15), "some were over"
    short = replace(stretch(0.1, 0.0), end_s=8)
    assert search.order(Moment(8, [short], 1)) is None, "turns do not yet follow the rate"


def test_sessions_that_pile_up_are_waited_for() -> None:
    search = SessionSearch([LIMIT], Settings(time_s=2000), ALONE_S)
    many = stretch(4, 0.5, 1, in_flight=200)
    assert search.order(Moment(160, [stretch(2, 0.0), many], 200)) == 0.0
    pause = Stretch(2, 0.0, 160, 170, (), "drain")
    assert search.order(Moment(170, [stretch(2, 0.0), many, pause], 100)) is None
    rate = search.order(Moment(175, [stretch(2, 0.0), many, pause], 25))
    assert search.purpose == "bisect"
    assert isinstance(rate, float)
    assert 2 < rate < 4


def test_rates_near_the_answer_come_from_above_and_below_in_turn() -> None:
    search = SessionSearch([LIMIT], Settings(time_s=1000), ALONE_S)
    seen = [stretch(2, 0.0), stretch(2.6, 0.4, 1), stretch(2.2, 0.02, 2, "bisect"), stretch(2.4, 0.16, 3, "bisect")]
    rates = []
    for place in range(4):
        order = search.order(Moment(80.0 * len(seen), seen, 20))
        assert isinstance(order, float)
        rates.append(order)
        seen.append(stretch(order, 0.05, 4 + place, search.purpose))
    assert [rates[place] > rates[place + 1] for place in range(3)] == [True, False, True]


def test_a_rate_that_growth_met_by_luck_does_not_hold_the_search_above_the_answer() -> None:
    """Growth was over too soon to see it: half of the time went to rates just above it, each with a third over."""
    search = SessionSearch([LIMIT], Settings(time_s=2000), ALONE_S)
    seen = [stretch(2, 0.0), *(stretch(2 + 0.4 / 2**place, 0.5, 1 + place, "bisect") for place in range(6))]
    found = answer_in_sessions([LIMIT], Settings(), seen, ALONE_S)
    assert found.interval is not None
    assert found.interval.low < 1.9
    rate = search.order(Moment(80.0 * len(seen), seen, 20))
    assert isinstance(rate, float)
    assert rate < 2


def test_sessions_that_break_a_limit_alone_are_served_at_no_rate() -> None:
    found = answer_in_sessions([LIMIT], Settings(), [stretch(0.02, 0.9)], ALONE_S)
    assert (found.outcome, found.limit) == ("not_kept", "ttft.p95<1s")
    found = answer_in_sessions([LIMIT], Settings(), [stretch(3, 0.9)], ALONE_S)
    assert found.outcome == "cannot_tell"
    found = answer_in_sessions([LIMIT], Settings(max_rps=3), [stretch(3, 0.0)], ALONE_S)
    assert (found.outcome, found.at_least) == ("at_least", 3)


def test_where_no_limit_breaks_the_rate_at_which_sessions_pile_up_is_the_answer() -> None:
    full, pause = (
        stretch(4, 0.0, 1, in_flight=150),
        Stretch(2, 0.0, 160, 170, (), "drain", inherited=150, in_flight=135),
    )
    slow = replace(full, slices=tuple(replace(each, spent_s=3 * each.spent_s) for each in full.slices))
    found = answer_in_sessions([LIMIT], Settings(), [stretch(2, 0.0), slow, pause], ALONE_S)
    assert (found.outcome, found.limit) == ("found", KEEPS_UP)
    assert found.rate == pytest.approx((320 - 150 + 15) / 90), "what came and was served in 90 s"


def test_a_search_stays_at_the_highest_rate_allowed_before_it_ends() -> None:
    search = SessionSearch([LIMIT], Settings(time_s=2000, max_rps=2), ALONE_S)
    grown = stretch(2, 0.0)
    assert search.order(Moment(80, [grown], 20)) == 2
    assert search.purpose == "at most"
    short = replace(stretch(2, 0.0, 1, "at most"), end_s=120)
    assert search.order(Moment(120, [grown, short], 20)) is None
    assert search.order(Moment(240, [grown, replace(short, end_s=240)], 20)) == "end"


def test_a_last_stretch_too_short_to_settle_is_met_by_nothing() -> None:
    """Interrupted 1 s after the rate rose: 27% were over there, and it was said to meet every limit."""
    seen = [stretch(9, 0.0), stretch(18, 0.0, 1)]
    last = Stretch(2, 36.9, 160, 161, (Slice(160, 161, 37, 0, (Count(200, 54),)),), "grow", before=18)
    found = answer_in_sessions([LIMIT], Settings(), [*seen, last], ALONE_S)
    assert (found.outcome, found.interval) == ("found", Interval(18, 36.9))
    few = replace(last, slices=(Slice(160, 161, 37, 0, (Count(200, 3),)),))
    found = answer_in_sessions([LIMIT], Settings(), [*seen, few], ALONE_S)
    assert (found.outcome, found.at_least) == ("cannot_tell", 18)
    assert answer_in_sessions([LIMIT], Settings(max_rps=36.9), [*seen, few], ALONE_S).outcome == "cannot_tell"


def test_an_endpoint_that_dies_is_no_endpoint_that_serves_nothing() -> None:
    seen = [stretch(rate, share, place) for place, (rate, share) in enumerate(((6, 0.0), (12, 1.0), (0.02, 1.0)))]
    found = answer_in_sessions([LIMIT], Settings(), seen, ALONE_S)
    assert (found.outcome, found.rate, found.estimates[0].interval) == ("cannot_tell", None, None)
    assert found.reason.startswith("at 0.02 sessions/s, 60,000 of 60,000 (100%) were over the limit of ttft.p95<1s")
    assert found.reason.endswith("but at 6 sessions/s it was met: the endpoint changed")


def test_pauses_of_bisection_are_no_rates_near_the_answer() -> None:
    seen = [stretch(rate, 0.0, place, "bisect") for place, rate in enumerate((5, 0, 6, 0))]
    assert near_rates(seen) == []


def test_open_sessions_are_whole() -> None:
    seen = [stretch(20, 0.0, 0, "bisect"), stretch(26, 0.4, 1), stretch(23, 0.06, 2, "below")]
    found = answer_in_sessions([LIMIT], Settings(), seen, ALONE_S, in_users=True)
    assert found.interval is not None
    assert all(value == int(value) for value in (found.rate or 0.5, found.interval.low, found.interval.high))


def test_what_waited_before_a_stretch_does_not_break_it() -> None:
    late = [Slice(second, second + 1, 1, 1, (Count(10, 10 if second < 30 else 0),)) for second in range(80)]
    assert not is_broken([LIMIT], replace(stretch(1, 0.0), slices=tuple(late)))
    assert is_broken([LIMIT], stretch(1, 0.4))


def test_limits_are_on_sessions_and_turns_only_where_there_are_sessions() -> None:
    texts = ("session.p95<60s", "session.success>=0.99", "turn2+.ttft.p95<400ms", "turn1.success>=0.9", "p99<2s")
    slos = [Slo.parse(text) for text in texts]
    found = limits_of(slos, 0.95, of_sessions=True)
    assert [limit.metric for limit in found] == [
        SESSION,
        SESSION_SUCCESS,
        "ttft",
        "success",
        "response_time",
        "success",
    ]
    assert [limit.is_on_sessions for limit in found] == [True, True, False, False, False, False]
    assert found[3].turns == Turns(1, 1)
    assert found[-1].turns is None, "success of some turns is not that of all"
    with pytest.raises(BenchmarkError, match="--in sessions"):
        limits_of(slos, 0.95)


def test_the_time_of_a_search_follows_the_length_of_a_session() -> None:
    assert time_for(0.5) == 180
    assert time_for(10) == 10 * USUAL_LENGTHS
    assert time_for(60) == 3600
    assert time_for(200) == 200 * LEAST_LENGTHS
    assert half_width(4 * USUAL_LENGTHS) == pytest.approx(half_width(USUAL_LENGTHS) / 2)


def test_a_bracket_that_a_burst_widens_again_keeps_its_fit() -> None:
    wide = [stretch(2, 0.0), stretch(3.4, 0.5, 1), stretch(2.6, 0.07, 2, "above"), stretch(2.4, 0.03, 3, "below")]
    found = answer_in_sessions([LIMIT], Settings(), wide, ALONE_S)
    assert found.interval is not None
    assert found.rate == pytest.approx(2.5, rel=0.05)
    assert found.interval.high < 3.4


def test_a_rate_that_bisection_leaves_undecided_twice_is_near() -> None:
    """A share of twice what is allowed is neither kept nor clearly broken, and the bracket gets no narrower."""
    search = SessionSearch([LIMIT], Settings(time_s=4000), ALONE_S)
    seen = [stretch(1.5, 0.03), stretch(3.4, 0.2, 1), stretch(2.26, 0.1, 2, "bisect")]
    assert search.order(Moment(240, seen, 20)) == pytest.approx(2.26, rel=0.01)
    seen = [stretch(1.5, 0.03), stretch(3.4, 0.2, 1), *(stretch(2.26, 0.1, n, "bisect") for n in (2, 3))]
    rate = search.order(Moment(320, seen, 20))
    assert search.purpose == "above"
    assert isinstance(rate, float)
    assert 1.5 < rate < 2.26, "a twentieth may be over, and it was a tenth"


def test_a_share_of_turns_above_the_allowed_one_is_never_met() -> None:
    """Every tenth turn was over a limit that allows a twentieth: clearly kept is something else."""
    seen = [stretch(2, 0.1), stretch(3, 0.1, 1, "at most")]
    found = answer_in_sessions([LIMIT], Settings(max_rps=3), seen, ALONE_S)
    assert (found.outcome, found.limit, found.at_least) == ("cannot_tell", LIMIT.expression, None)
    assert not found.estimates[0].kept_everywhere
    assert found.reason.startswith("at 3 sessions/s and below, ")
    assert found.reason.endswith("(10%) were over the limit of ttft.p95<1s, and 5% may be")
    by_time = answer_in_sessions([LIMIT], Settings(), seen, ALONE_S)
    assert by_time.reason == found.reason, "more time is no help"
    short = answer_in_sessions([LIMIT], Settings(), [replace(stretch(0.02, 1.0), end_s=1.0)], ALONE_S)
    assert short.outcome == "not_kept"


def test_a_search_stays_at_the_highest_rate_allowed_until_a_limit_is_decided() -> None:
    for share, order in ((0.1, None), (0.04, "end")):
        search = SessionSearch([LIMIT], Settings(time_s=2000, max_rps=2), ALONE_S)
        assert search.order(Moment(80, [stretch(2, share)], 20)) == 2
        stayed = replace(stretch(2, share, 1, "at most"), end_s=240)
        assert search.order(Moment(240, [stretch(2, share), stayed], 20)) == order
