"""Limits on values of the user's own beside those that a search steers by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.capacity.confirmation import judge, judged_users, totals
from server_capacity.experiments.capacity.narrowing import MOST_WAVES, narrowed
from server_capacity.experiments.capacity.result import content
from server_capacity.experiments.measurements.confirmed import Confirmed
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.question import Question
from server_capacity.experiments.measurements.user_limits import users_estimates
from server_capacity.experiments.server_side.server_attachment import with_limits_of_server
from server_capacity.results.text.capacity import to_text
from server_capacity.results.types.bounds import Interval
from server_capacity.search.answer import Answer, Estimate
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.mentions import mentions
from tests.parts import in_memory, in_parts
from tests.waves import observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from inference_benchmarker.records.record import RequestRecord

SLOS = tuple(map(Slo.parse, ("p99<100ms", "metric.hit.mean>0.8", "metric.depth.p90<=5", "metric.nobody.mean<1")))
AT_LEAST = Answer("at_least", at_least=100.0, reason="most", estimates=(Estimate("p99<100ms", kept_everywhere=True),))


def question(*slos: Slo) -> Question:
    return Question(open_plan(slos=slos), limits_of(slos, 0.95), Settings(time_s=60.0), 1)


def reported(record: RequestRecord, rate: int) -> RequestRecord:
    """Every tenth request misses at 20/s, every second one at 100/s; failed ones tell what counts for nothing."""
    if record.index % 19 == 7:
        return record._replace(outcome="failed", error="E", metrics={"hit": -1e6})
    missed = record.index % (2 if rate == 100 else 10) == 0
    return record._replace(metrics={"hit": 0.0 if missed else 1.0, "depth": 9.0 if missed else 1.0})


def explored(asked: Question, *, parts: int | None = None) -> SearchEvidence:
    """Two stages, of 20/s and 100/s, and what is void after them."""
    plan = replace(staged("20:10s,100:5s,200:2s"), slos=())
    records = [reported(each, 20 if each.due < 10 * 10**9 else 100) for each in on_time(plan)]
    facts = observe(plan, records)
    facts = facts if parts is None else replace(facts, records=in_parts(in_memory(facts.records), parts))
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    *stages, last = count_stages(wave, asked.limits, asked.user_limits)
    found = SearchEvidence(1)
    found.add(wave, [*stages, replace(last, stretch=replace(last.stretch, void="the client was the limit"))])
    return found


@pytest.mark.parametrize("parts", [None, 50])
def test_each_stretch_has_what_its_ok_requests_reported(parts: int | None) -> None:
    asked = question(*SLOS)
    low, high, _ = explored(asked, parts=parts).rows
    hit, depth, nobody = (sum(each.of for each in sums) for sums in low.counted.users)
    assert (hit, depth, nobody) == (189, 189, 0)
    assert [len(sums) for sums in low.counted.users] == [10, 10, 10]
    assert sum(each.total for each in low.counted.users[0]) == 189 - sum(
        n % 10 == 0 and n % 19 != 7 for n in range(200)
    )
    assert sum(each.of for each in high.counted.users[0]) == sum(n % 19 != 7 for n in range(200, 700))


def test_the_lowest_of_all_limits_holds() -> None:
    asked = question(*SLOS[:3])
    hit, depth = (each.estimate for each in users_estimates(asked, explored(asked)))
    assert hit.interval is not None
    assert (hit.interval.low, hit.interval.high) == (20.0, 100.0)
    assert hit.rate is not None
    assert 35 < hit.rate < 45
    assert depth.rate is None, "a share of 10.1% is too near the 10% that are allowed"
    found = with_limits_of_server(AT_LEAST, list(users_estimates(asked, explored(asked)))[:1])
    assert (found.outcome, found.limit, found.rate) == ("found", "metric.hit.mean>0.8", hit.rate)


def test_a_limit_that_nobody_reported_leaves_nothing_known() -> None:
    asked = question(SLOS[0], SLOS[3])
    found = with_limits_of_server(AT_LEAST, users_estimates(asked, explored(asked)))
    assert (found.outcome, found.reason) == (
        "cannot_tell",
        "metric.nobody.mean<1: no ok request reported metric.nobody",
    )


def confirmed(asked: Question, every: int) -> Confirmed:
    """A wave of 20/s, in which one in so many requests missed."""
    plan = open_plan("20", "10", slos=asked.plan.slos)
    rows = [each._replace(metrics={"hit": float(each.index % every > 0)}) for each in on_time(plan)]
    facts = observe(plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    stage = count_stages(wave, asked.limits, asked.user_limits)[0]
    own = tuple(judge(limit, *totals(stage, place)) for place, limit in enumerate(asked.limits))
    return Confirmed(wave, stage, own + judged_users(asked, stage))


@pytest.mark.parametrize(("every", "judgement"), [(10, "holds"), (2, "fails")])
def test_a_confirmation_is_held_against_them(every: int, judgement: str) -> None:
    asked = question(*SLOS[:2])
    wave = confirmed(asked, every)
    assert wave.judgement == judgement
    row = wave.to_result(asked).limits[-1]
    assert (row.expression, row.value, row.verdict) == ("metric.hit.mean>0.8", 1 - 1 / every, judgement)


def test_the_report_has_a_row_for_each() -> None:
    asked = question(*SLOS[:2])
    seen = explored(asked)
    answer = with_limits_of_server(AT_LEAST, users_estimates(asked, seen))
    data = content(asked, seen, answer, [confirmed(asked, 10)])
    row = next(each for each in data.limits if each.metric == "metric.hit")
    assert (row.at_low, row.at_low_text, row.bound, row.unit) == (0.9, "0.9", 0.8, "")
    assert (row.interval, row.kept_everywhere) == (Interval(20.0, 100.0), False)
    text = to_text(data)
    assert mentions(text.splitlines()[0], "metric.hit.mean>0.8", "95%", "20", "100")
    assert "   over: the share of requests with a response time above 100 ms (for p99<100ms)" in text


def sending(asked: Question, *, interrupted: bool = False) -> Any:
    """Waves at a rate, of whose requests one in ten misses up to 45/s, and every second one above."""

    def confirm(plan: Any) -> Wave:
        if interrupted:
            raise KeyboardInterrupt
        rate = float(plan.load.rate)
        rows = [
            each._replace(metrics={"hit": float(each.index % (10 if rate < 45 else 2) > 0)}) for each in on_time(plan)
        ]
        facts = observe(replace(plan, slos=()), rows)
        return Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})

    return SimpleNamespace(confirm=confirm, folder=Path(), server=SimpleNamespace(least_s=0.0))


def test_waves_between_its_ends_make_the_interval_narrower() -> None:
    asked = question(*SLOS[:2])
    seen, calm = explored(asked), SimpleNamespace(count=0)
    found = narrowed(
        asked,
        sending(asked),
        seen,
        lambda: with_limits_of_server(AT_LEAST, users_estimates(asked, seen)),
        cast("Any", calm),
    )
    rates = [row.stretch.rate for row in seen.rows if row.stretch.purpose == "narrow"]
    assert found.interval is not None
    assert 2 <= len(rates) <= MOST_WAVES
    assert all(20 < rate < 100 for rate in rates)
    assert 20 < found.interval.low < 45 <= found.interval.high < 100
    assert found.interval.high / found.interval.low < 2
    assert (content(asked, seen, found, []).waves or {})["narrowing"] == []  # none of them is stored here


def test_nothing_is_narrowed_where_another_limit_holds_or_somebody_interrupts() -> None:
    asked = question(*SLOS[:2])
    seen, calm = explored(asked), cast("Any", SimpleNamespace(count=0))
    found = Answer("found", 10.0, None, "p99<100ms")
    assert narrowed(asked, sending(asked), seen, lambda: found, calm) == found
    found = with_limits_of_server(AT_LEAST, users_estimates(asked, seen))
    assert narrowed(asked, sending(asked, interrupted=True), seen, lambda: found, calm) == found
    assert seen.interrupted
    assert not [row for row in seen.rows if row.stretch.purpose == "narrow"]
