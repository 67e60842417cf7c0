"""The first sessions of a search: its time by their length, what is refused, and what is said before it begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.slo import Slo
from server_capacity.experiments.capacity import scouting
from server_capacity.experiments.measurements.question import Question, SessionShape
from server_capacity.experiments.measurements.user_count_search import search_of
from server_capacity.search.limits import limits_of
from server_capacity.search.search import Search
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.settings import OF_LENGTHS, Settings, half_width
from tests.mentions import mentions
from tests.waves import closed_plan

if TYPE_CHECKING:
    from server_capacity.experiments.capacity.waves import Waves

SHAPE = SessionShape(10.0, 4.2)


def question(**settings: float) -> Question:
    plan = WavePlan(ClosedLoop(1, steered=True), closed_plan().bounds)
    return Question(plan, (), replace(Settings(), **settings), 1, sessions=SHAPE)  # type: ignore[arg-type]


def limited(*slos: str, **settings: float) -> Question:
    """A search of single requests."""
    return replace(question(**settings), sessions=None, limits=limits_of([Slo.parse(each) for each in slos], 0.95))


def test_the_time_follows_from_the_length_of_a_session() -> None:
    assert scouting._time_s(question(), SHAPE) == 1200
    assert scouting._time_s(question(time_s=500.0), SHAPE) == 500
    assert scouting._time_s(question(precision=0.1), SHAPE) is None
    assert scouting._time_s(question(), SessionShape(0.5, 2.0)) == 180


def test_a_time_that_holds_too_few_sessions_is_refused_with_the_one_that_is_needed() -> None:
    with pytest.raises(BenchmarkError, match=r"--time 60 is 6 lengths.*give --time 400 at least, or --time 1200 for"):
        scouting._time_s(question(time_s=60.0), SHAPE)
    with pytest.raises(BenchmarkError, match="give --time 8000 at least"):
        scouting._time_s(question(), SessionShape(200.0, 20.0))


def test_it_says_before_how_long_it_takes_and_how_sure_it_will_be() -> None:
    said = scouting._forecast(question(), SHAPE, 1200)
    assert "takes 10 s on average (4.2 turns)" in said
    assert mentions(said, "20 min", "120 session durations", "±17%", "about twice that if"), said
    assert "In the last 3 min 20 s" in said
    assert "up to 6 min 40 s longer" in said
    short = scouting._forecast(question(), SHAPE, 420)
    assert mentions(short, "too short", "overload", "--time 720", "For ±17% give --time 1200"), short
    assert "10% wide" in scouting._forecast(question(precision=0.1), SHAPE, None)


def test_the_width_that_is_forecast_is_that_of_simulated_searches() -> None:
    """It was 12% long after the searches of the documentation had medians of 16% and more."""
    page = Path(__file__).parents[4] / "docs" / "reference" / "performance.md"
    alike = ("| short chats |", "| agents of 20 turns |", "| shared system prompt |")
    rows = [row for row in page.read_text().splitlines() if row.startswith(alike) and row.count("%") > 3]
    widths = [float(row.split("|")[-2].strip(" %")) / 100 for row in rows]
    assert len(widths) == len(alike)
    assert half_width(OF_LENGTHS) == pytest.approx(median(widths), rel=0.1)


def test_streamed_requests_are_looked_at_before_their_search_too() -> None:
    streamed, queued = limited("tpot.p95<25ms"), limited("p95<25ms")
    assert (streamed.is_of_streams, queued.is_of_streams) == (True, False)
    assert type(search_of(streamed)) is Search
    seen = replace(streamed, alone=SessionShape(2.5))
    assert type(search_of(seen)) is SessionSearch
    confirming = seen.confirmation(4.0, 100, 1, seen.plan.output_dir)
    assert confirming.warmup_s == 5
    assert confirming.name == "4/s"


@pytest.mark.parametrize(
    ("slos", "time_s", "first"),
    [
        (["p99<100ms"], None, False),
        (["latency.p95<6s"], None, True),
        (["p95<1s"], 60.0, True),
        (["p99<5s"], 5.0, False),
        (["p50<10s", "p90<1s"], 5.0, True),
        (["success>=0.99"], None, False),
        (["ttft.p95<100ms"], 5.0, True),
    ],
)
def test_requests_come_first_where_text_may_be_generated_within_a_limit(
    slos: list[str], time_s: float | None, *, first: bool
) -> None:
    asked = limited(*slos) if time_s is None else limited(*slos, time_s=time_s)
    assert asked.scouts is first
    assert not replace(asked, in_users=True).scouts
    assert not replace(asked, alone=SHAPE).scouts, "another tier's search has seen them"
    assert not replace(asked, sessions=SHAPE).scouts, "nor sessions again"
    assert replace(asked, sessions=SessionShape()).scouts


def scouted(asked: Question, **seen: Any) -> Question:
    """After first requests with such a summary."""
    summary = SimpleNamespace(
        **{
            "latency": SimpleNamespace(mean=2.4),
            "ttft": None,
            "tpot": SimpleNamespace(mean=0.02),
            "tokens": None,
            "errors": (),
        }
        | seen
    )
    waves = SimpleNamespace(say=print, folder=asked.plan.output_dir)
    waves.warm = lambda _plan: SimpleNamespace(interrupted=False, summary=summary)
    return scouting.scout(asked, cast("Waves", waves))[0]


def test_answers_that_are_generated_are_searched_as_sessions_and_others_as_a_queue() -> None:
    slow = limited("latency.p95<6s")
    assert type(search_of(scouted(slow))) is Search
    assert type(search_of(scouted(slow, tokens=SimpleNamespace(tokens_out=None)))) is Search
    assert type(search_of(scouted(slow, ttft=SimpleNamespace(mean=1.1)))) is Search, "one at a time: the other waits"
    for generated in ({"ttft": SimpleNamespace(mean=0.1)}, {"tokens": SimpleNamespace(tokens_out=3200)}):
        found = scouted(slow, **generated)
        assert found.alone == SessionShape(2.4, token_s=0.02)
        assert found.is_of_streams
        assert type(search_of(found)) is SessionSearch


def test_first_requests_without_an_answer_end_only_a_search_by_tokens() -> None:
    assert scouted(limited("latency.p95<6s"), latency=None).alone is None
    with pytest.raises(BenchmarkError, match="None of the first requests was completed"):
        scouted(limited("ttft.p95<6s"), latency=None)


def test_a_confirmation_begins_with_as_many_sessions_as_it_goes_on_with() -> None:
    asked = question()
    confirming = asked.confirmation(2.5, 100, 1, asked.plan.output_dir)
    assert confirming.warmup_s == 20, "two lengths of a session"
    assert confirming.name == "2.5 sessions/s"
    assert asked.requests_per_s(2.0) == pytest.approx(8.4)
    assert replace(asked, in_users=True).requests_per_s(20) == pytest.approx(8.4)
