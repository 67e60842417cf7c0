"""A confirmation is judged by more than its plain share: bursts make a check at the very capacity a coin toss."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from inference_benchmarker.plan.slo import Slo
from server_capacity.experiments.capacity.confirmation import (
    USUAL_S,
    judge,
    length_s,
    needs_another,
    rate_to_confirm,
    unless_over,
    unless_refuted,
)
from server_capacity.experiments.measurements.confirmed import Confirmed
from server_capacity.experiments.measurements.counting import Counted
from server_capacity.experiments.measurements.question import Question, offerable
from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.limits import Limit, limits_of
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.mentions import mentions
from tests.waves import open_plan

P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)


@pytest.mark.parametrize(
    ("of", "over", "dispersion", "judgement"),
    [
        (10_000, 0, 1.0, "holds"),
        (10_000, 100, 1.0, "holds"),
        (10_000, 115, 1.0, "cannot_tell"),  # 1.5 standard errors of independent requests
        (10_000, 130, 1.0, "fails"),
        (10_000, 130, 100.0, "cannot_tell"),  # in bursts it is chance
        (10_000, 400, 100.0, "fails"),
        (36, 0, 1.0, "cannot_tell"),  # p99 of 36 requests
        (36, 30, 1.0, "fails"),
        (0, 0, 1.0, "cannot_tell"),
    ],
)
def test_only_what_bursts_do_not_explain_fails(of: int, over: int, dispersion: float, judgement: str) -> None:
    assert judge(P99, of, over, dispersion) == judgement


def test_a_limit_that_allows_nothing_holds_without_any_over_it() -> None:
    all_ok = Limit("success>=100%", "success", 0.0)

    assert judge(all_ok, 50, 0) == "holds"
    assert judge(all_ok, 50, 1) == "fails"


def answer(dispersion: float) -> Answer:
    interval = Interval(168.0, 180.0)
    estimate = Estimate("p99<100ms", 174.0, interval, 26.0, dispersion)
    return Answer("found", 174.0, interval, "p99<100ms", estimates=(estimate,))


@pytest.mark.parametrize(
    ("dispersion", "load_s", "seconds"),
    [(1.0, 180.0, USUAL_S), (5.0, 180.0, 11.9), (250.0, 180.0, 50.0), (250.0, 60.0, 10.0), (1.0, 15.0, 5.0)],
)
def test_a_confirmation_is_as_long_as_its_bursts_ask_for_and_its_search_allows(
    dispersion: float, load_s: float, seconds: float
) -> None:
    limits = limits_of([Slo.parse("p99<100ms")], 0.95)
    question = Question(open_plan(), limits, Settings(time_s=load_s), 1)

    assert length_s(question, answer(dispersion), 168.0, load_s) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(("rate", "load_s", "seconds"), [(11.0, 20.0, 11.8), (5.0, 20.0, 20.0), (0.5, 180.0, 180.0)])
def test_a_confirmation_lasts_until_its_requests_can_tell_of_a_percentile(
    rate: float, load_s: float, seconds: float
) -> None:
    """A third of 20 s at 11/s were 73 requests, of whose p99 nobody can tell: the search was never confirmed."""
    question = Question(open_plan(), limits_of([Slo.parse("p99<100ms")], 0.95), Settings(time_s=load_s), 1)

    assert length_s(question, answer(1.0), rate, load_s) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(173.96, "174"), (0.21347, "0.2135"), (18_432.7, "18430"), (0.0, "0"), (1e-9, "0.000001"), (2e6, "1000000")],
)
def test_a_rate_is_offered_to_four_digits(rate: float, text: str) -> None:
    assert f"{offerable(rate):f}" == text


def test_the_lower_end_is_confirmed_or_the_most_that_may_be_tried() -> None:
    assert rate_to_confirm(answer(1.0)) == 168.0
    assert rate_to_confirm(Answer("at_least", at_least=40.0)) == 40.0
    assert rate_to_confirm(Answer("cannot_tell", at_least=40.0)) is None
    assert rate_to_confirm(Answer("not_kept")) is None


def waves(*text: str) -> list[Confirmed]:
    """Waves at ever lower rates, each with its judgement, or spoilt."""
    facts: Any = SimpleNamespace(server_metrics=None)
    found = []
    for place, each in enumerate(text):
        stage = Counted(Stretch(place, 168.0 - 10 * place, 0.0, 10.0, (), "confirm"), 0, None)
        judgement: Any = "holds" if each == "spoilt" else each
        found.append(Confirmed(facts, stage, (judgement,), "schedule lag p99 12 ms" if each == "spoilt" else ""))
    return found


@pytest.mark.parametrize(
    ("expected", "more"),
    [
        ((), True),
        (("holds",), False),
        (("cannot_tell",), False),
        (("fails",), True),
        (("fails", "fails"), False),
        (("spoilt",), True),
        (("spoilt", "spoilt"), False),
        (("spoilt", "holds"), False),
        (("spoilt", "fails"), True),
        (("fails", "spoilt"), True),
        (("spoilt", "fails", "fails"), False),
        (("spoilt", "fails", "spoilt"), False),
    ],
)
def test_a_wave_that_failed_or_was_spoilt_is_followed_by_another_one(expected: tuple[str, ...], more: bool) -> None:
    assert needs_another(waves(*expected)) is more


def test_an_answer_whose_lower_end_failed_twice_is_none() -> None:
    found = unless_refuted(answer(1.0), waves("fails", "fails"), "/s")

    assert (found.outcome, found.rate, found.interval, found.at_least) == ("cannot_tell", None, None, None)
    assert found.reason == "the capacity is below 158/s: confirming waves failed at 168/s and 158/s"
    for reported in (("fails",), ("fails", "holds"), ("fails", "spoilt", "holds"), ("spoilt", "spoilt"), ()):
        assert unless_refuted(answer(1.0), waves(*reported), "/s") == answer(1.0)


def test_a_wave_with_too_many_over_meets_no_limit_in_users() -> None:
    """Bursts may explain them, so the wave did not fail; every limit was said to be met all the same."""
    limits = limits_of([], 0.95)
    most = Answer("at_least", at_least=6.0, estimates=(Estimate("success>=0.95", kept_everywhere=True),))
    asked = Question(open_plan(), limits, Settings(), 1, in_users=True)
    for over, outcome in ((25, "cannot_tell"), (10, "at_least")):
        stretch = Stretch(0, 6.0, 0.0, 10.0, (Slice(0.0, 10.0, 246, 246, (Count(246, over),)),), "confirm")
        facts: Any = SimpleNamespace(server_metrics=None)
        confirmed = [Confirmed(facts, Counted(stretch, over, None), ("cannot_tell",))]
        found = unless_over(asked, most, confirmed)
        assert found.outcome == outcome
        assert found.reason in ("", "at 6 users, 25 of 246 (10.2%) were over the limit of success>=0.95, and 5% may be")
        assert found.estimates[0].kept_everywhere == (outcome == "at_least")
    assert unless_over(asked, most, []) == most


def test_a_limit_beside_the_one_that_was_found_is_met_in_its_wave_or_there_is_no_answer() -> None:
    limits, interval = limits_of([Slo.parse("p99<100ms")], 0.95), Interval(6.0, 8.0)
    estimates = (Estimate("p99<100ms", 7.0, interval), Estimate("success>=0.95"))
    known = Answer("found", 7.0, interval, "p99<100ms", estimates=estimates)
    asked = Question(open_plan(), limits, Settings(), 1, in_users=True)
    for slow, failed, outcome in ((5, 25, "cannot_tell"), (5, 14, "found"), (0, 0, "found")):
        counts = (Count(246, slow), Count(246, failed))
        stretch = Stretch(0, 6.0, 0.0, 10.0, (Slice(0.0, 10.0, 246, 246, counts),), "confirm")
        facts: Any = SimpleNamespace(server_metrics=None)
        found = unless_over(asked, known, [Confirmed(facts, Counted(stretch, 0, None), ("cannot_tell",) * 2)])
        assert (found.outcome, found.limit) == (outcome, "p99<100ms" if outcome == "found" else "success>=0.95")


def test_a_limit_met_at_every_rate_tried_is_met_in_the_wave_of_a_rate_too() -> None:
    limits, interval = limits_of([Slo.parse("p99<100ms")], 0.95), Interval(6.0, 8.0)
    estimates = (Estimate("p99<100ms", 7.0, interval), Estimate("success>=0.95", kept_everywhere=True))
    asked = Question(open_plan(), limits, Settings(), 1)
    for known in (
        Answer("found", 7.0, interval, "p99<100ms", estimates=estimates),
        Answer("at_least", at_least=6.0, estimates=(estimates[1],)),
    ):
        for failed, outcome in ((14, "cannot_tell"), (7, known.outcome)):
            counts = (Count(132, 0), Count(132, failed))
            stretch = Stretch(0, 6.0, 0.0, 22.0, (Slice(0.0, 22.0, 132, 132, counts),), "confirm")
            facts: Any = SimpleNamespace(server_metrics=None)
            found = unless_over(asked, known, [Confirmed(facts, Counted(stretch, 0, None), ("cannot_tell",) * 2)])
            assert found.outcome == outcome
            assert outcome != "cannot_tell" or mentions(found.reason, "at 6/s, 14 of 132", "success>=0.95")
