"""The load at the answer of a search for sessions, from its confirming waves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from server_capacity.experiments.measurements.sessions_at_answer import sessions_at
from tests.waves import closed_plan, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.experiments.measurements.question import Question

QUESTION = cast("Question", SimpleNamespace(sessions=SimpleNamespace(seconds=2.0)))


def wave(plan: WavePlan, *, started: float, ended_after_s: float) -> Any:
    """A wave of sessions; those that end after the last arrival are among few, so the mean of all is too short."""
    rates = SimpleNamespace(target=plan.target_rate, started=started)
    sessions = SimpleNamespace(
        rates=rates,
        duration=SimpleNamespace(mean=ended_after_s),
        turns=SimpleNamespace(mean=4.0),
        cached_share=None,
    )
    return SimpleNamespace(plan=plan, summary=SimpleNamespace(sessions=sessions, tokens=None))


def test_users_are_all_open_so_a_session_takes_their_number_over_its_rate() -> None:
    found = sessions_at(QUESTION, [wave(closed_plan(100, "26"), started=11.0, ended_after_s=8.2)])
    assert found is not None
    assert (found.open_sessions, found.length_s) == (100, 100 / 11)
    assert found.turns_per_s == pytest.approx(44)
    assert found.begun_per_s is None, "users begin as many as the endpoint lets them"


def test_of_an_open_loop_so_many_are_open_as_begin_in_the_length_of_one() -> None:
    found = sessions_at(QUESTION, [wave(open_plan("5", "26"), started=4.8, ended_after_s=8.2)])
    assert found is not None
    assert (found.sessions_per_s, found.length_s) == (5, 8.2)
    assert found.open_sessions == pytest.approx(41)
    assert found.begun_per_s == 4.8, "of its Poisson arrivals, by chance"


def test_users_of_whom_none_began_a_session_have_no_length() -> None:
    found = sessions_at(QUESTION, [wave(closed_plan(3, "5"), started=0.0, ended_after_s=8.2)])
    assert found is not None
    assert (found.open_sessions, found.length_s) == (3, None)
