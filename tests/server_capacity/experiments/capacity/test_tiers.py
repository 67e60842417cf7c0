"""Tiers: what was sent for one is compared with the limits of the next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.capacity.exploration import explore
from server_capacity.experiments.capacity.result import content
from server_capacity.experiments.capacity.run import Searched
from server_capacity.experiments.capacity.tiers import known_of
from server_capacity.experiments.measurements.confirmed import Confirmed
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.results.text.capacity import to_text
from server_capacity.search.limits import limits_of
from server_capacity.search.slow_down import SLOWER
from tests.capacities import searched
from tests.explorations import FOUND, explored, question
from tests.waves import observe, on_time, staged, stored

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.experiments.capacity.waves import Waves

STRICT = replace(question(), limits=limits_of([Slo.parse("p99<10ms")], 0.95))


def sent(plan: str, folder: Path) -> Wave:
    """Every request took 20 ms."""
    facts = observe(staged(plan), on_time(staged(plan)))
    made = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    return Wave.load(stored(made, folder).path)


def overs(found: Searched, place: int = 0) -> list[int]:
    return [sum(part.counts[place].over for part in row.stretch.slices) for row in found.explored.rows]


def test_what_was_sent_for_a_tier_is_counted_against_the_limits_of_the_next() -> None:
    before = Searched(searched(), explored(), [])
    assert overs(before) == [0, 0, 0]

    known = known_of(STRICT, before)

    assert overs(Searched(searched(), known, [])) == [20, 0, 40], "every request is over 10 ms"
    assert [row.stretch.rate for row in known.rows] == [10, 0, 20]
    assert (known.shared, known.shared_s, known.load_s) == (1, 4.0, 4.0)


def test_why_a_stretch_counts_for_nothing_is_carried_over_but_for_what_limits_showed() -> None:
    before = Searched(searched(), explored("the client was the limit"), [])
    before.explored.leave_out({})
    known = known_of(STRICT, before)
    assert {row.stretch.void for row in known.rows} == {"the client was the limit"}
    assert known.shared_void_s == known.shared_s == 4.0

    before = Searched(searched(), explored(), [])
    before.explored.leave_out(dict.fromkeys(range(3), SLOWER))
    assert {row.stretch.void for row in known_of(STRICT, before).rows} == {""}


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
