"""Overload at the end of a search for sessions: a cache that gave in, and what a search makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.limits import Limit
from server_capacity.search.recovery import CONFIRM, OVERLOAD, RETURN, FromAbove, Recovery, from_above, with_overload
from server_capacity.search.session_answer import answer_in_sessions
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.case import case
from tests.simulated_sessions import KINDS, SessionWave, searched, session_alone_s

LIMIT = Limit("ttft.p95<1s", "ttft", 0.05, 1.0)
ALONE_S = 10.0
FOUND = Answer("found", 2.0, Interval(1.8, 2.2), LIMIT.expression, estimates=(Estimate(LIMIT.expression, 2.0),))


def stretch(
    purpose: str, rate: float, share: float = 0.0, *, seconds: int = 40, begun: int = 2, **more: float | str
) -> Stretch:
    """A hundred turns a second, after a minute, with two sessions that end and so many that begin."""
    counts = (Count(100, round(100 * share)),)
    slices = [Slice(second, second + 1, begun, 2, counts) for second in range(60, 60 + seconds)]
    return replace(Stretch(7, rate, 60, 60 + seconds, tuple(slices), purpose), **more)  # type: ignore[arg-type]


def recovery(**more: object) -> Recovery:
    return replace(Recovery([LIMIT], Interval(1.8, 2.2), ALONE_S, 100.0), **more)  # type: ignore[arg-type]


def test_a_prefix_cache_that_gave_in_does_not_come_back_at_the_rate_that_it_served() -> None:
    kind, rate = KINDS["long documents"], 0.2
    session_s, over, hits = session_alone_s(kind, 1), [], []
    for first in (rate, 3 * rate):
        wave = SessionWave(kind, 1)
        wave.change(0, first)
        wave.run_until(4 * session_s)
        wave.change(4 * session_s, rate)
        wave.run_until(10 * session_s)
        before, meter = len(wave.turns), wave.engine.meter
        queried, cached = meter.queried_tokens, meter.cached_tokens
        wave.run_until(16 * session_s)
        late = [begun - due >= 6 for number, due, begun, *_ in wave.turns[before:] if number == 1]
        over.append(sum(late) / len(late))
        hits.append((meter.cached_tokens - cached) / (meter.queried_tokens - queried))
    assert over == [0.0, 1.0]
    assert hits[0] > 0.5
    assert hits[1] < 0.1


def test_a_search_says_what_was_found_from_below_and_after_overload() -> None:
    found = searched(KINDS["long documents"], 10_003, 75)
    memory = found.answer.memory
    assert memory is not None
    assert memory.differ
    assert memory.above.rate is not None
    assert memory.below.rate is not None
    assert memory.above.rate < 0.8 * memory.below.rate
    assert found.answer.rate == memory.above.rate, "plans and the headline have the lower"
    load_s = sum(each.seconds for each in found.stretches if each.rate)
    assert load_s <= Settings(time_s=75 * found.session_s).times_of_sessions(found.session_s).most_s + 3


def test_overload_follows_and_lower_rates_until_limits_are_met() -> None:
    steps: list[tuple[str, Stretch, object]] = [
        ("after the search from below", stretch("above", 2.1), (OVERLOAD, pytest.approx(3.3))),
        ("few are open", stretch(OVERLOAD, 3.3, 0.5, in_flight=60), None),
        ("many are open", stretch(OVERLOAD, 3.3, 0.5, in_flight=90), (RETURN, 1.8)),
        ("it lasts", stretch(OVERLOAD, 3.3, 0.5, seconds=60, in_flight=60), (RETURN, 1.8)),
        ("too short to tell", stretch(RETURN, 1.8, seconds=10, in_flight=60, inherited=90), None),
        ("met again", stretch(RETURN, 1.8, seconds=20, in_flight=29, inherited=90), ("end", 1.8)),
        ("met, but many were open", stretch(RETURN, 1.8, seconds=20, in_flight=29, inherited=90, begun=1), None),
        ("met, but many are open", stretch(RETURN, 1.8, seconds=20, in_flight=30, inherited=90), None),
        ("not met, fewer are open", stretch(RETURN, 1.8, 0.5, in_flight=60, inherited=90), None),
        ("no fewer are open", stretch(RETURN, 1.8, 0.5, in_flight=90, inherited=90), (RETURN, pytest.approx(1.53))),
        ("for too long", stretch(RETURN, 1.8, 0.5, seconds=100, in_flight=60, inherited=90), (RETURN, 0.85 * 1.8)),
        ("a fifth less is served", stretch(RETURN, 2.5, 0.5, in_flight=90, inherited=90), (RETURN, 0.85 * 2.0)),
        ("far less is served", stretch(RETURN, 4.0, 0.5, in_flight=90, inherited=90), (RETURN, 0.85 * 3.0)),
        ("few are left", stretch(RETURN, 1.8, 0.5, seconds=100, in_flight=20, inherited=90), None),
        ("met, though no fewer are open", stretch(RETURN, 1.8, seconds=60, in_flight=90, inherited=90), None),
        ("met for long", stretch(RETURN, 1.8, seconds=140, in_flight=90, inherited=90), ("end", 1.8)),
        ("nobody knows", stretch(RETURN, 1.8, void="the client was the limit"), ("end", 1.8)),
    ]
    for name, running, order in steps:
        with case(name):
            assert recovery().next([running]) == order
    assert recovery(most=2.3).next([stretch("above", 2.1)]) == ("end", 2.3), "no more may be sent"
    users = recovery(in_users=True, found=Interval(18, 22))
    assert users.next([stretch("above", 20)]) == (OVERLOAD, 33)
    assert users.next([stretch(RETURN, 18, 0.5, in_flight=18, inherited=33)]) is None
    assert users.next([stretch(RETURN, 18, 0.5, seconds=100, in_flight=18, inherited=33)]) == (RETURN, 15)


def test_the_answer_is_the_lower_of_both() -> None:
    gone, back = stretch(RETURN, 1.8, 0.9, in_flight=90), stretch(RETURN, 1.5, 0.01)
    for stretches, found in (
        ([], None),
        ([back], FromAbove(1.5, None)),
        ([gone, back], FromAbove(1.5, 1.8)),
        ([gone], FromAbove(None, 1.8)),
        ([stretch(OVERLOAD, 3.3, void="late"), back], None),
        ([gone, replace(back, void="late")], FromAbove(None, 1.8)),
        ([replace(gone, in_flight=60, inherited=90), replace(back, void="late")], FromAbove(None, 1.8)),
        ([gone, replace(gone, rate=1.53), replace(back, rate=0.0), back], FromAbove(None, 1.53)),
        ([replace(gone, void="late"), back], None),
    ):
        with case(stretches):
            assert from_above([LIMIT], stretches, ALONE_S) == found
    same = with_overload(FOUND, FromAbove(1.8, None), "sessions/s")
    assert same.memory is not None
    assert (same.rate, same.memory.differ, same.memory.above.rate) == (2.0, False, 1.8)
    lower = with_overload(FOUND, FromAbove(1.5, 1.8), "sessions/s")
    assert lower.interval == Interval(1.5, 1.8)
    assert lower.estimates[0].rate == lower.rate
    wide = with_overload(replace(FOUND, interval=Interval(1.2, 2.2)), FromAbove(1.5, 1.8), "sessions/s")
    assert wide.interval == Interval(1.2, 1.8), "nobody promises more than from below"
    assert lower.memory is not None
    assert lower.memory.below.interval == FOUND.interval
    never = with_overload(FOUND, FromAbove(None, 0.9), "sessions/s")
    assert (never.outcome, never.rate, never.estimates[0].rate) == ("cannot_tell", None, None)
    assert "not met again at 0.9 sessions/s and above" in never.reason
    assert never.memory is not None
    assert never.memory.above.interval == Interval(0.0, 0.9)
    assert with_overload(FOUND, None, "sessions/s") is FOUND


def test_a_wave_that_fails_later_refutes_what_was_met_after_overload() -> None:
    gone, back = stretch(RETURN, 1.8, 0.9, in_flight=90), stretch(RETURN, 1.5, 0.01)
    for waves, refuted in (
        ([stretch(CONFIRM, 1.5, 0.02)], None),
        ([stretch(CONFIRM, 1.5, 0.07)], 1.5),
        ([stretch(CONFIRM, 1.5, 0.9), stretch(CONFIRM, 1.2, 0.9)], 1.2),
        ([stretch(CONFIRM, 1.5, 0.9, void="late")], None),
    ):
        with case(waves):
            assert from_above([LIMIT], [gone, back, *waves], ALONE_S) == FromAbove(1.5, 1.8, refuted)
            assert from_above([LIMIT], [back, *waves], ALONE_S) == FromAbove(1.5, None, refuted)
            assert from_above([LIMIT], waves, ALONE_S) is None, "there was no overload"


@pytest.mark.parametrize("broken", [1.8, None])
def test_the_answer_is_then_that_of_all_waves_and_below_the_one_that_failed(broken: float | None) -> None:
    refuted = FromAbove(1.5, broken, 1.5)
    for below, rate, expected in (
        (Interval(1.0, 1.3), 1.15, Interval(1.0, 1.3)),
        (Interval(1.0, 2.0), 1.3, Interval(1.0, 1.5)),
        (Interval(1.0, 2.2), 1.9, Interval(1.0, 1.5)),
    ):
        with case(below):
            found = with_overload(replace(FOUND, rate=rate, interval=below), refuted, "sessions/s")
            assert found.interval == expected
            assert found.rate == pytest.approx(rate if rate < 1.5 else 1.5**0.5)
            assert found.estimates[0].rate == found.rate
            assert found.memory is not None
            assert not found.memory.differ, "the headline has no rate after overload"
            assert found.memory.above == Estimate(LIMIT.expression, interval=Interval(0.0, 1.5))
    users = with_overload(replace(FOUND, rate=20.0, interval=Interval(4, 22)), FromAbove(12, 15, 12), "open sessions")
    assert (users.rate, users.interval) == (6.0, Interval(4, 12))
    nothing = with_overload(FOUND, refuted, "sessions/s")
    assert (nothing.outcome, nothing.rate, nothing.interval) == ("cannot_tell", None, None)
    assert nothing.reason == "after overload, a wave at 1.5 sessions/s failed, and nothing lower met the limits"


def test_a_failing_confirmation_lowers_the_answer_after_overload() -> None:
    """90% were over at 1.49 sessions/s, where a return had met the limit, and the answer stayed at 1.6."""
    from_below = [("grow", 1.0, 0.0), ("grow", 2.5, 0.6), ("bisect", 1.6, 0.01), ("above", 2.1, 0.1)]
    from_below += [("below", 1.9, 0.04), ("above", 2.05, 0.08)]
    seen = [stretch(purpose, rate, share, seconds=80, in_flight=16) for purpose, rate, share in from_below]
    seen += [stretch(OVERLOAD, 3.3, 0.9, in_flight=90), stretch(RETURN, 1.75, 0.9, seconds=80, in_flight=95)]
    seen += [stretch(RETURN, 1.49, seconds=80, in_flight=16, inherited=95)]
    after = answer_in_sessions([LIMIT], Settings(), seen, ALONE_S)
    assert after.interval == Interval(1.49, 1.75)
    for share in (0.09, 0.3, 0.9):
        with case(share):
            failed = stretch(CONFIRM, 1.49, share, seconds=120)
            found = answer_in_sessions([LIMIT], Settings(), [*seen, failed], ALONE_S)
            assert found.rate is not None
            assert found.interval is not None
            assert found.interval.low < found.rate < found.interval.high <= 1.49


def test_sessions_shorter_than_the_seconds_that_are_counted_can_meet_limits_again() -> None:
    alone_s, short = 0.4, recovery(length_s=0.4)
    met, missed = stretch(RETURN, 1.8, seconds=20), stretch(RETURN, 1.8, 0.9, seconds=20)
    assert from_above([LIMIT], [met], alone_s) == FromAbove(1.8, None)
    assert from_above([LIMIT], [missed], alone_s) == FromAbove(None, 1.8)
    assert short.next([replace(met, end_s=80.9)]) == ("end", 1.8), "the last second is not over yet"
    early = stretch(RETURN, 1.8, 0.9, seconds=3, in_flight=90)
    assert short.next([early]) is None, "their answers are those of overload"
    assert short.next([stretch(OVERLOAD, 3.3, 0.5, seconds=1, in_flight=90)]) is None


CUT_OFF: dict[str, tuple[list[Stretch], FromAbove | None]] = {
    "after a second, without an answer": ([replace(stretch(RETURN, 1.8, seconds=1), slices=())], None),
    "after a second, with the backlog of overload": ([stretch(RETURN, 1.8, seconds=1, in_flight=500)], None),
    "after a second, with all over": ([stretch(RETURN, 1.8, 1.0, seconds=1, in_flight=500)], None),
    "after a while, with the backlog": ([stretch(RETURN, 1.8, seconds=50, in_flight=500)], None),
    "the second one": (
        [stretch(RETURN, 1.8, 0.9, in_flight=500), stretch(RETURN, 1.35, seconds=2, in_flight=500)],
        FromAbove(None, 1.8),
    ),
    "not at all": ([stretch(RETURN, 1.8)], FromAbove(1.8, None)),
    "while fewer and fewer are open": ([stretch(RETURN, 1.8, 0.9, in_flight=60, inherited=90)], None),
    "once few are open": ([stretch(RETURN, 1.8, 0.9, seconds=100, in_flight=20, inherited=90)], None),
    "the second one, while fewer are open": (
        [stretch(RETURN, 1.8, 0.9, in_flight=90), stretch(RETURN, 1.35, 0.9, in_flight=60, inherited=90)],
        FromAbove(None, 1.8),
    ),
    "but for too long": ([stretch(RETURN, 1.8, 0.9, seconds=100, in_flight=60, inherited=90)], FromAbove(None, 1.8)),
    "but stuck": ([stretch(RETURN, 1.8, 0.9, in_flight=500)], FromAbove(None, 1.8)),
}


@pytest.mark.parametrize("where", CUT_OFF)
def test_a_return_that_was_cut_off_shows_nothing(where: str) -> None:
    returns, shown = CUT_OFF[where]
    assert from_above([LIMIT], [stretch(OVERLOAD, 3.3, 0.9), *returns], ALONE_S) == shown


def test_a_short_search_has_no_overload() -> None:
    assert not Settings(time_s=70 * ALONE_S).times_of_sessions(ALONE_S).recovers
    times = Settings(time_s=120 * ALONE_S).times_of_sessions(ALONE_S)
    assert times.search_s == pytest.approx(1000)
    assert times.most_s == pytest.approx(1600)
