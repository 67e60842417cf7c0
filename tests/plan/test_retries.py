"""How clients try again, as users write it, and how long they wait."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of
from inference_benchmarker.plan.retries import Backoff, Retries
from inference_benchmarker.words.units import NS
from tests.waves import closed_plan, open_plan


@pytest.mark.parametrize(
    ("text", "backoff"),
    [
        ("none", Backoff()),
        ("fixed:500ms", Backoff("fixed", Decimal("0.5"))),
        ("fixed:2", Backoff("fixed", Decimal(2))),
        ("exponential", Backoff("exponential", Decimal(1), Decimal(20))),
        ("exponential:0.5s", Backoff("exponential", Decimal("0.5"), Decimal(20))),
        ("exponential:30", Backoff("exponential", Decimal(30), Decimal(30))),
        ("exponential:100ms..1m", Backoff("exponential", Decimal("0.1"), Decimal(60))),
    ],
)
def test_a_wait_is_read_and_written_alike(text: str, backoff: Backoff) -> None:
    assert Backoff.parse(text) == backoff
    assert replace(Backoff.parse(backoff.text), max_s=backoff.max_s) == backoff


@pytest.mark.parametrize("text", ["", "fixed", "fixed:", "fixed:x", "linear:1", "exponential:1..", "exponential:..2"])
def test_another_text_is_no_wait(text: str) -> None:
    with pytest.raises(BenchmarkError, match=r"exponential:0\.5s"):
        Backoff.parse(text)


def test_waits_are_drawn_evenly_below_a_bound_that_doubles() -> None:
    backoff = Backoff.parse("exponential:1s..5s")
    for attempt, most_s in ((1, 1), (2, 2), (3, 4), (4, 5), (90, 5)):
        waits = [backoff.wait_ns(7, index, attempt) / NS for index in range(2_000)]
        assert min(waits) >= 0
        assert max(waits) < most_s
        assert sum(waits) / len(waits) == pytest.approx(most_s / 2, rel=0.05)
    assert backoff.wait_ns(7, 3, 1) == backoff.wait_ns(7, 3, 1)
    assert len({backoff.wait_ns(seed, 3, attempt) for seed in (7, 8) for attempt in (3, 4)}) == 4


def test_the_other_waits_are_what_they_say() -> None:
    assert [Backoff.parse("fixed:250ms").wait_ns(1, index, index + 1) for index in range(3)] == [NS // 4] * 3
    assert Backoff().wait_ns(1, 1, 1) == 0


@pytest.mark.parametrize(
    ("retries", "problem"),
    [
        (Retries(retries=-1), "--client-retries must be from 0 to 100"),
        (Retries(retries=101), "--client-retries must be from 0 to 100"),
        (Retries(Decimal(0)), "--client-timeout must be from 0.001"),
        (Retries(Decimal("NaN")), "--client-timeout must be from 0.001"),
        (Retries(Decimal(1), 0, Backoff("fixed")), "give --client-retries N, too"),
        (Retries(retries=1, backoff=Backoff("fixed", Decimal(0))), "--backoff: a wait must be from 0.001"),
        (Retries(retries=1, backoff=Backoff("exponential", Decimal(9), Decimal(8))), "must not be above the longest"),
        (Retries(Decimal(5)), "--client-timeout 5 is for one attempt and must be below --request-timeout 5"),
    ],
)
def test_what_cannot_be_is_answered(retries: Retries, problem: str) -> None:
    plan = replace(open_plan(), factories_file=Path(__file__), request_timeout_s=Decimal(5), retries=retries)
    texts = [found.text for found in problems_of(plan)]
    assert len(texts) == 1
    assert problem in texts[0]


def test_a_locust_file_tries_again_itself() -> None:
    plan = replace(open_plan(), locust_file=Path(__file__), retries=Retries(retries=1))
    assert ["of a --locust-file must retry by itself" in problem.text for problem in problems_of(plan)] == [True]


@pytest.mark.parametrize("plan", [open_plan(), closed_plan()])
def test_it_survives_a_file_and_an_older_plan_has_none(plan: WavePlan) -> None:
    retries = Retries(1.5, 3, "exponential:100ms..2s")  # type: ignore[arg-type]
    asked = replace(plan, retries=retries)
    reported = asked.to_json()
    assert WavePlan.from_json(reported) == asked
    assert reported["retries"] == {"timeout_s": "1.5", "retries": 3, "backoff": "exponential:0.1s..2s"}
    del reported["retries"]
    assert not WavePlan.from_json(reported).retries.asked
