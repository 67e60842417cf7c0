"""Tiers: what was sent for one is compared with the limits of the next."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity import tiers
from server_capacity.experiments.capacity.exploration import explore
from server_capacity.experiments.capacity.result import content
from server_capacity.experiments.capacity.run import Searched
from server_capacity.experiments.capacity.tiers import OVERLOADED, Tier, find_tiers, known_of
from server_capacity.experiments.capacity.waves import Waves
from server_capacity.experiments.measurements.confirmed import Confirmed
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.question import SessionShape
from server_capacity.experiments.measurements.user_count_search import answer_of, search_of
from server_capacity.results.text.capacity import to_text
from server_capacity.search.limits import limits_of
from server_capacity.search.recovery import CONFIRM, OVERLOAD, RETURN, from_above, from_below
from server_capacity.search.session_answer import near_rates
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.slow_down import SLOWER
from server_capacity.search.stretch import DRAIN, PAUSE, SHARED, SHARED_OVERLOAD
from tests.capacities import searched
from tests.explorations import FOUND, explored, question
from tests.waves import MS, observe, on_time, open_plan, staged, stored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.stretch import Stretch


def made(facts: WaveFacts) -> Wave:
    return Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})


def sent(plan: str, folder: Path) -> Wave:
    """Every request took 20 ms."""
    return Wave.load(stored(made(observe(staged(plan), on_time(staged(plan)))), folder).path)


def late(record: RequestRecord, by_ns: int) -> RequestRecord:
    """The same request, sent later: the endpoint takes as long as before."""
    return record._replace(sent=record.sent + by_ns, done=record.done + by_ns)


def asking(slo: str) -> Question:
    return replace(question(), limits=limits_of([Slo.parse(slo)], 0.95))


STRICT, LOOSE = asking("p99<10ms"), asking("p90<1s")


def evidence(wave: Wave, purposes: Sequence[str]) -> SearchEvidence:
    """A wave of another tier, whose stages had these purposes."""
    found = SearchEvidence(2)
    pairs = zip(count_stages(wave, LOOSE.limits), purposes, strict=True)
    found.add(wave, [replace(each, stretch=replace(each.stretch, purpose=purpose)) for each, purpose in pairs])
    return found


def late_at_80(by_ms: int = 60, took_ms: int = 20) -> SearchEvidence:
    """Stretches of which no request but those at 80/s was late."""
    plan = staged("20:10s,0:1s,40:10s,0:1s,80:10s,0:1s,60:10s")
    rows = [late(each, by_ms * MS) if 22 * NS <= each.due < 32 * NS else each for each in on_time(plan, took_ms * MS)]
    return evidence(made(observe(plan, rows)), ["grow", DRAIN] * 3 + ["grow"])


def streaming(record: RequestRecord) -> RequestRecord:
    """Fifty tokens, 10 ms apart; 300 ms from the second minute on."""
    first = record.sent + 10 * MS
    last = first + 49 * (300 if record.due >= 60 * NS else 10) * MS
    return record._replace(first_token=first, last_token=last, done=last, chunks=50, gaps=(), tokens_out=50)


def streams(plan: str, *purposes: str) -> Searched:
    """A search of a tier by token times."""
    wave = made(observe(staged(plan), map(streaming, on_time(staged(plan)))))
    return Searched(searched(), evidence(wave, purposes), [])


def known_at(asked: Question, before: Searched, rate: float) -> Stretch:
    """What is known of a rate for the next tier."""
    (found,) = (row.stretch for row in known_of(asked, before).rows if row.stretch.rate == rate)
    return found


def overs(found: Searched, place: int = 0) -> list[int]:
    return [sum(part.counts[place].over for part in row.stretch.slices) for row in found.explored.rows]


def test_what_was_sent_for_a_tier_is_counted_against_the_limits_of_the_next() -> None:
    before = Searched(searched(), explored(), [])
    assert overs(before) == [0, 0, 0]

    known = known_of(STRICT, before)

    assert overs(Searched(searched(), known, [])) == [20, 0, 40], "every request is over 10 ms"
    assert [row.stretch.rate for row in known.rows] == [10, 0, 20]
    assert (known.shared, known.shared_s, known.load_s) == (1, 4.0, 4.0)


def test_a_pause_for_a_tier_does_not_tell_that_a_rate_piled_up_beside_the_limits_of_the_next() -> None:
    """Searches by token times take the rate before a pause for one that does not keep up."""
    for asked, purpose in ((asking("tpot.p95<1s"), PAUSE), (LOOSE, DRAIN)):
        known = known_of(asked, Searched(searched(), late_at_80(), []))
        assert {row.stretch.purpose for row in known.rows if not row.stretch.rate} == {purpose}


@pytest.mark.parametrize("purpose", ["above", "below", "bisect"])
def test_a_rate_near_the_answer_of_a_tier_is_not_one_near_the_answer_of_the_next(purpose: str) -> None:
    before = Searched(searched(), explored(), [])
    before.explored.marks = [[("grow", ""), (DRAIN, ""), (purpose, "")]]
    assert known_at(LOOSE, before, 20).purpose == purpose, "queueing theory fits whatever is near its own answer"

    known = known_of(asking("tpot.p95<1s"), before)
    assert [row.stretch.purpose for row in known.rows] == ["grow", PAUSE, SHARED]
    assert near_rates(known.stretches) == []
    third = Searched(searched(), known, [])
    assert known_at(asking("tpot.p95<1s"), third, 20).purpose == SHARED


@pytest.mark.parametrize("in_users", [False, True])
def test_overload_at_the_end_of_a_tier_of_sessions_is_no_evidence_for_the_next(*, in_users: bool) -> None:
    """It is not from below; nor has the next tier returned from it, or is a wave that confirmed one of its own."""
    asked = replace(asking("p99<1s"), sessions=SessionShape(0.5), in_users=in_users)
    before = Searched(searched(), late_at_80(), [])
    before.explored.marks = [
        [(OVERLOAD, ""), (RETURN, ""), ("grow", ""), (DRAIN, ""), ("above", ""), *[(CONFIRM, "")] * 2]
    ]

    known = known_of(asked, before)
    mine = [SHARED_OVERLOAD] * 2 + ["grow", PAUSE] + [SHARED] * 3
    assert [row.stretch.purpose for row in known.rows] == mine
    assert [row.stretch.void for row in known.rows] == [OVERLOADED] * 2 + [""] * 5
    assert known.shared_void_s == 10.0
    assert len(from_below(known.stretches)) == 5
    assert from_above(asked.limits, known.stretches, 0.5, in_users=in_users) is None
    third = known_of(asked, Searched(searched(), known, []))
    assert [row.stretch.purpose for row in third.rows] == mine
    assert third.shared_void_s == 10.0


def test_what_the_first_sessions_showed_serves_every_tier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are sent once, and the time that follows from them is that of each tier."""
    asked, scouted_first = [], SessionShape(2.5, 3.0)

    def search_with(question: Question, _waves: Waves, known: object) -> Searched:
        asked.append((question.scouts, question.sessions, question.settings.time_s, known is None))
        seen = replace(question, sessions=scouted_first, settings=replace(question.settings, time_s=300.0))
        return Searched(searched(), explored(), [], seen)

    monkeypatch.setattr(tiers, "search_with", search_with)
    sessions = [Tier(name, replace(STRICT, sessions=SessionShape())) for name in ("gold", "silver")]
    waves = Waves(tmp_path, print, cast("Any", None), cast("Any", None), print)
    assert [tier.name for tier, *_ in find_tiers(sessions, waves)] == ["gold", "silver"]
    assert asked == [(True, SessionShape(), 60.0, True), (False, scouted_first, 300.0, False)]


def test_a_later_tier_by_token_times_looks_for_its_own_answer_between_what_met_and_what_missed_its_limit() -> None:
    """Not around the answer of the tier before, of which all stretches meet it."""
    before = streams("6:15s,8:15s,6:15s,8:15s,48:15s", "above", "below", "above", "below", "grow")
    asked = asking("tpot.p95<200ms")
    search = search_of(replace(asked, alone=SessionShape(0.5)))
    assert isinstance(search, SessionSearch)
    first = search.resume(known_of(asked, before).stretches)
    assert search.purpose == "bisect"
    assert first == pytest.approx(math.sqrt(8 * 48))


def test_a_lag_that_alone_breaks_a_limit_of_the_next_tier_is_not_taken_for_the_endpoint() -> None:
    """9 ms are little beside 100 ms, but decide the limit where answers take 92 ms."""
    before = Searched(searched(), late_at_80(9, 92), [])
    strict = asking("p99<100ms")
    known = known_of(strict, before)
    assert known_at(strict, before, 80).void == "the client was the limit: p99<100ms is met without its lag"
    found = answer_of(strict, known.stretches)
    assert (found.outcome, found.at_least) == ("at_least", 60)
    assert known_at(LOOSE, Searched(searched(), known, []), 80).void == "", "a third tier has its own limits"
    assert known_at(asking("p99<95ms"), Searched(searched(), late_at_80(9, 97), []), 80).void == "", "nor without it"


def test_why_a_stretch_counts_for_nothing_is_carried_over_but_for_what_limits_showed() -> None:
    before = Searched(searched(), explored("the client was the limit"), [])
    before.explored.leave_out({})
    known = known_of(STRICT, before)
    assert {row.stretch.void for row in known.rows} == {"the client was the limit"}
    assert known.shared_void_s == known.shared_s == 4.0

    before = Searched(searched(), explored(), [])
    before.explored.leave_out(dict.fromkeys(range(3), SLOWER))
    assert {row.stretch.void for row in known_of(STRICT, before).rows} == {""}


def test_what_the_client_sent_late_is_looked_at_by_the_limits_of_the_next_tier() -> None:
    before = Searched(searched(), late_at_80(), [])
    assert known_at(asking("p99<1s"), before, 80).void == "", "60 ms are little beside a second"

    known = known_of(asking("p99<50ms"), before)
    assert known_at(asking("p99<50ms"), before, 80).void == (
        "the client was the limit: it sent 100% of the requests (allowed: 1%) more than 5 ms late (p99 schedule lag "
        "60 ms)"
    )
    assert [row.stretch.void for row in known.rows if row.stretch.rate != 80] == [""] * 6
    found = answer_of(asking("p99<50ms"), known.stretches)
    assert (found.outcome, found.at_least) == ("at_least", 60)

    assert known_at(asking("p99<1s"), Searched(searched(), known, []), 80).void == "", "a third tier has its own limits"


def test_a_wave_that_confirmed_a_tier_and_that_the_client_spoilt_for_the_next_one_counts_for_nothing(
    tmp_path: Path,
) -> None:
    plan = open_plan("60", "30")
    rows = [late(each, 300 * MS) if 100 <= each.index < 117 else each for each in on_time(plan)]
    second = Wave.load(stored(made(observe(plan, rows)), tmp_path).path)
    (stage,) = count_stages(second, LOOSE.limits)
    before = Searched(searched(), explored(), [Confirmed(second, stage, ("holds",))])

    assert known_at(LOOSE, before, 60).void == ""
    assert known_at(asking("p99<100ms"), before, 60).void == "", "fewer than a hundredth"
    assert "0.9444% of the requests (allowed: 0.1%)" in known_at(asking("p99.9<100ms"), before, 60).void


def test_waves_that_confirmed_are_evidence_once_each(tmp_path: Path) -> None:
    first, second = explored(), sent("30:2s", tmp_path)
    (stage,) = count_stages(second, question().limits)
    stage = replace(stage, stretch=replace(stage.stretch, purpose="confirm"))
    confirmed = [Confirmed(second, stage, ("holds", "holds"))]

    known = known_of(STRICT, Searched(searched(), first, confirmed))
    assert [row.stretch.purpose for row in known.rows if row.stretch.rate == 30] == ["confirm"]
    assert known.shared == 2

    first.add(second, [stage])  # as one that failed does
    assert len(known_of(STRICT, Searched(searched(), first, confirmed)).rows) == len(known.rows)


def test_a_tier_of_which_enough_is_known_sends_nothing_and_says_whose_load_it_was() -> None:
    before = explored()
    before.marks = [[("grow", ""), ("drain", ""), ("at most", "")]]
    known = known_of(question(max_rps=20.0), Searched(searched(), before, []))
    asked = replace(question(max_rps=20.0), settings=replace(question(max_rps=20.0).settings, time_s=4.0))

    assert explore(asked, cast("Waves", None), known) is known

    found = content(asked, known, FOUND, [])
    assert found.shared_s == found.load_s == 4.0
    assert found.waves is not None
    assert (found.waves["exploration"], found.waves["shared"]) == ([], [])
    assert "Of its load, 4.0 s were sent for earlier tiers" in to_text(found)
    assert content(asked, explored(), FOUND, []).shared_s is None
