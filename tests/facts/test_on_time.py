"""A wave as it would have been had its client sent nothing late."""

from __future__ import annotations

from inference_benchmarker.facts.on_time import on_time
from inference_benchmarker.facts.turns import of_turns
from inference_benchmarker.plan.slo import LATER_TURNS
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.summary.summarising import summarise
from tests.waves import MS, observe, open_plan, staged, talks


def test_a_lag_moves_its_request_and_what_waited_for_its_answer_and_nothing_else() -> None:
    first, second, other = talks(2, 1)
    assert first.first_token is not None
    first = first._replace(
        sent=first.sent + 50 * MS, first_token=first.first_token + 50 * MS, done=first.done + 50 * MS
    )
    second = second._replace(due=second.due + 50 * MS, sent=second.sent + 57 * MS, done=second.done + 57 * MS)
    other = other._replace(build_ns=5 * MS, sent=other.sent + 5 * MS + MS // 2)
    facts = observe(open_plan("1", "2"), [first, second, other], environment={"sessions": True})

    punctual = list(on_time(facts, 0.001).records)

    assert [(each.due, each.sent, each.done) for each in punctual[:2]] == [
        (each.due, each.due, each.done) for each in talks(2)
    ]
    assert punctual[0].first_token == talks(2)[0].first_token
    assert punctual[2] == other, "half a millisecond is not late, and its payload took the rest"
    assert next(iter(on_time(of_turns(facts, LATER_TURNS), 0.001).records)).sent == second.due
    assert on_time(facts, 0.001).records.metrics == ()
    assert len(on_time(facts, 0.001).records) == 3


def test_another_attempt_is_due_earlier_by_the_lag_of_the_first() -> None:
    failed = RequestRecord(0, 0, 0, 30 * MS, 40 * MS, "failed", "", "TimeoutError")
    again = RequestRecord(0, 0, 140 * MS, 145 * MS, 165 * MS, attempt=1)
    first, second = on_time(observe(open_plan("1", "1"), [failed, again]), 0.001).records
    assert (first.due, first.sent, first.done) == (0, 0, 10 * MS)
    assert (second.due, second.sent, second.done) == (110 * MS, 110 * MS, 130 * MS)


def test_each_stage_keeps_its_arrivals() -> None:
    plan = staged("1:2s,2:2s")
    late = [
        RequestRecord(index, 0, due * MS, (due + 700) * MS, (due + 720) * MS)
        for index, due in enumerate((0, 1000, 2000, 2500, 3000, 3500))
    ]
    stages = summarise(on_time(observe(plan, late), 0.001)).stages
    assert [row.summary.ledger.sent for row in stages] == [2, 4]
    assert all(row.summary.response_time.maximum == 0.02 for row in stages if row.summary.response_time)
