"""The outcome, the exit code and the object of capacity.json, from what was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError, LostProcessError
from inference_benchmarker.exit_codes import INVALID, MISSED
from inference_benchmarker.facts.client_use import Answers, Connections, WorkerUse
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from server_capacity.experiments.capacity.confirmation import confirm
from server_capacity.experiments.capacity.exploration import explore
from server_capacity.experiments.capacity.result import content
from server_capacity.experiments.capacity.warming import warm
from server_capacity.experiments.capacity.waves import Waves
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence
from server_capacity.experiments.measurements.user_count_search import answer_of
from server_capacity.results.capacity_folder import exit_code_of, read, save
from server_capacity.results.codec import check_capacity
from server_capacity.results.text.capacity import to_text
from server_capacity.results.types.capacity import Failed
from server_capacity.results.types.result_status import settled, warnings_of
from server_capacity.search.answer import Answer
from server_capacity.search.stretch import NOTHING_VIOLATED
from tests.explorations import FOUND, LIMITS, explored, question
from tests.mentions import mentions
from tests.waves import MS, observe, on_time, open_plan, staged

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("answer", "limited", "interrupted", "outcome", "code"),
    [
        (FOUND, None, False, "found", 1),  # no wave has confirmed it
        (FOUND, "lag", False, "found", 1),  # the answer lies below what the client could do
        (FOUND, None, True, "interrupted", 130),
        (Answer("at_least", at_least=20.0, reason="most"), None, False, "at_least", 1),
        (Answer("cannot_tell", at_least=12.0, reason="time"), "lag", False, "client_limited", 3),
        (Answer("at_least", at_least=12.0, reason="the client was the limit: lag"), None, False, "client_limited", 3),
        (Answer("at_least", at_least=20.0, reason="most"), "lag", False, "at_least", 1),  # --max-rps was reached
        (Answer("cannot_tell", reason="36 requests"), None, False, "cannot_tell", 1),
        (Answer("not_kept", reason="missed at 1/s"), "lag", False, "not_kept", 1),
        (Answer("not_kept", reason="missed at 1/s"), None, False, "not_kept", 1),
    ],
)
def test_the_outcome_and_its_exit_code(
    answer: Answer, limited: str | None, interrupted: bool, outcome: str, code: int
) -> None:
    seen = explored()
    seen.client_limit, seen.interrupted = limited, interrupted

    data = content(question(max_rps=20.0), seen, answer, [])

    assert (data.outcome, data.exit_code) == (outcome, code)
    assert to_text(data).startswith(data.headline)
    json.dumps(encoded(data), allow_nan=False)


def test_a_search_whose_requests_waited_within_invoke_says_that_the_limit_may_be_the_clients() -> None:
    seen = explored()
    waited = WorkerUse(connections=Connections(looked_at=100, aside=90))
    seen.waves = [replace(wave, workers=(waited,)) for wave in seen.waves]
    data = content(question(), seen, FOUND, [])
    assert mentions(to_text(data), "The limit may be the client's: 90% of the requests in flight")
    check_capacity(encoded(data))
    assert content(question(), explored(), FOUND, []).own_waits is None


def test_a_search_whose_answers_hid_their_statuses_says_so_first_and_to_all_that_builds_on_it() -> None:
    seen = explored()
    shed = WorkerUse(answers=Answers(hidden={"503": 7}))
    seen.waves = [replace(wave, workers=(shed,)) for wave in seen.waves]
    data = content(question(), seen, FOUND, [])
    told = "ok requests received a response with a status from 400 on (503: 7)"
    assert told in data.headline
    assert told in "; ".join(warnings_of(data))
    assert to_text(data).splitlines()[0] == data.headline
    check_capacity(encoded(data))
    assert content(question(), explored(), FOUND, []).warnings is None


def test_at_least_without_a_bound_of_the_users_is_no_success() -> None:
    assert content(question(), explored(), Answer("at_least", at_least=20.0), []).exit_code == 1


def test_a_client_that_was_late_is_named_beside_the_time() -> None:
    """Also where it was late in a wave before, which another one with more workers followed."""
    undecided = Answer("cannot_tell", at_least=12.0, reason=NOTHING_VIOLATED)
    late = explored(void="the client was the limit: late")
    late.add(late.waves[0], [row.counted for row in explored().rows])
    assert mentions(content(question(), late, undecided, []).headline, "the client was the limit", "2 of 4 stretches")
    assert "client" not in content(question(), explored(), undecided, []).headline


def test_it_says_when_it_began() -> None:
    data = content(question(), explored(), FOUND, [])
    assert data.created == "2023-11-14T22:13:20.000Z"


def test_stretches_and_curve_tell_what_was_measured() -> None:
    data = content(question(), explored(), FOUND, [])

    assert [(row.rate, row.sent, row.answered) for row in data.stretches or []] == [
        (10, 20, 20),
        (0, 0, 0),
        (20, 40, 40),
    ]
    assert [(point.rate, point.sent, point.success) for point in data.curve or []] == [(10, 20, 1), (20, 40, 1)]
    assert (data.curve or [])[0].p99 == pytest.approx(0.02)
    assert data.load_s == 4


def test_no_more_is_completed_than_was_answered_in_the_time() -> None:
    """What drained afterwards is no rate that the endpoint can do."""
    plan = staged("40:1s,0:1s")
    records = [each._replace(done=each.due + 500 * MS) for each in on_time(plan)]
    facts = observe(plan, records)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    seen = SearchEvidence(1)
    seen.add(wave, count_stages(wave, LIMITS))

    (point,) = content(question(), seen, FOUND, []).curve or []

    assert (point.sent, point.success, point.completed_rate) == (40, 1, 20)


def test_what_counts_for_nothing_is_no_point_of_the_curve() -> None:
    data = content(question(), explored(void="the client was the limit"), FOUND, [])

    assert data.curve == []
    assert {row.void for row in data.stretches or []} == {"the client was the limit"}
    assert data.void_s == data.load_s != 0
    assert content(question(), explored(), FOUND, []).void_s == 0


def test_errors_of_all_waves_are_counted_once() -> None:
    plan = staged("10:2s,0:1s,20:2s")
    facts = observe(plan, [each._replace(outcome="failed", error="ConnectionRefusedError") for each in on_time(plan)])
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    seen = SearchEvidence(1)
    for _ in range(2):
        seen.add(wave, count_stages(wave, LIMITS))

    data = content(question(), seen, Answer("not_kept", limit="success>=0.95", reason="so"), [])

    assert data.errors == [Failed("ConnectionRefusedError", 60)]


def test_another_wave_goes_on_with_clock_and_numbers() -> None:
    seen, more = explored(), explored()
    seen.add(more.waves[0], [row.counted for row in more.rows])

    assert [row.stretch.number for row in seen.rows] == list(range(6))
    assert [row.stretch.start_s for row in seen.rows] == [0, 2, 3, 5, 7, 8]
    assert seen.rows[3].stretch.slices[0].start_s == 5


class Sending(Waves):
    """Waves that send everything, of an endpoint with so many payloads."""

    plans: list[Any]
    known: int | None

    def warm(self, plan: Any) -> Any:
        self.plans.append(plan)
        self.payloads, self.sent = self.known, self.sent + plan.bounds.num_requests
        return SimpleNamespace(interrupted=False, ledger=SimpleNamespace(sent=plan.bounds.num_requests))


@pytest.mark.parametrize(("payloads", "sent"), [(None, [1]), (1, [1]), (3, [1, 2]), (100, [1, 99])])
def test_warming_sends_each_payload_once(payloads: int | None, sent: list[int]) -> None:
    waves = cast("Any", Sending)(
        folder=open_plan().output_dir, say=lambda _: None, server=None, live=None, announce=None
    )
    waves.plans, waves.known = [], payloads

    warm(replace(question(), plan=open_plan(max_in_flight=5, slos=(Slo.parse("response_time.p99<1s"),))), waves)

    assert [plan.bounds.num_requests for plan in waves.plans] == sent
    assert all(isinstance(plan.load, ClosedLoop) and not problems_of_values(plan) for plan in waves.plans)


class Interrupted(Waves):
    """Waves of which none begins any more."""

    def explore(self, *_: Any) -> Any:
        raise KeyboardInterrupt

    def confirm(self, *_: Any) -> Any:
        raise KeyboardInterrupt


def test_an_interrupt_before_a_further_wave_keeps_what_is_known() -> None:
    waves = cast("Any", Interrupted)(
        folder=open_plan().output_dir, say=str, server=SimpleNamespace(least_s=0.0), live=None, announce=None
    )
    seen = explored()

    assert confirm(question(), waves, FOUND, seen) is None
    assert seen.interrupted
    with pytest.raises(KeyboardInterrupt):  # of the first one nothing is known
        explore(question(), waves)


class Broken(Waves):
    """Waves of which the first is ``made``, and no other can begin."""

    made: list[Wave]
    error: Exception = BenchmarkError("runs: cannot be written (No space left on device).")

    def explore(self, *_: Any) -> Wave:
        if not self.made:
            raise self.error
        return self.made.pop()

    def confirm(self, plan: Any) -> Wave:
        return self.explore(plan)


def broken(**facts: Any) -> Any:
    waves = cast("Any", Broken)(
        folder=open_plan().output_dir, say=str, server=SimpleNamespace(least_s=0.0), live=None, announce=None
    )
    waves.made = [replace(wave, **facts) for wave in explored().waves]
    return waves


@pytest.mark.parametrize(
    ("facts", "said", "void"),
    [
        ({"primary_lost": True, "lost_workers": (0,)}, "the primary process ended in the middle of the wave", set()),
        ({"disk_error": "No space left on device"}, "the run directory could not be written: No space left", set()),
        (
            {"lost_workers": (0,)},
            "worker lost: 1 of 1 workers",
            {"the client was the limit: a worker was lost in this wave"},
        ),
    ],
)
def test_what_breaks_the_search_off_is_named_and_no_limit_of_the_endpoint(
    facts: dict[str, Any], said: str, void: set[str]
) -> None:
    seen = explore(question(), broken(**facts))
    data = content(question(), seen, Answer("cannot_tell", reason="36 requests"), [])

    assert (data.outcome, data.exit_code) == ("client_limited", 3)
    assert (data.reason or "").startswith(said)
    assert said in (data.failures or [])[0]
    assert f"✗ The search ended early: {said}" in " ".join(to_text(data).split())
    assert {row.void for row in data.stretches or []} - {""} == void
    kept = content(question(), seen, answer_of(question(), seen.stretches), [])
    assert "the client was the limit" not in kept.headline


LOST = "the process that keeps the endpoint for this search ended, and the endpoint was removed"


def test_an_endpoint_that_was_lost_with_its_keeper_is_not_reported_to_keep_no_rate() -> None:
    asked = replace(question(), lost=lambda: LOST)
    seen = explore(asked, broken())
    data = content(asked, seen, answer_of(asked, seen.stretches), [])

    assert (data.outcome, data.exit_code, data.at_least) == ("client_limited", 3, None)
    assert f"✗ The search ended early: {LOST}." in " ".join(to_text(data).split())
    assert data.headline == f"The search ended early: {LOST}"
    assert "client was the limit" not in to_text(data)
    assert {row.void for row in data.stretches or []} == {LOST}

    confirmed = confirm(asked, broken(), FOUND, explored())
    assert confirmed is not None
    assert (confirmed.judgement, confirmed.spoilt) == ("cannot_tell", LOST)


def test_a_confirmation_that_cannot_begin_leaves_the_answer() -> None:
    waves = broken()
    waves.made.clear()
    seen = explored()

    assert confirm(question(), waves, FOUND, seen) is None
    assert seen.failures == ["Not confirmed: runs: cannot be written (No space left on device)."]
    with pytest.raises(BenchmarkError):  # of the first one nothing is known
        explore(question(), waves)


def test_a_primary_that_is_killed_before_its_wave_begins_takes_nothing_away() -> None:
    waves, seen = broken(), explored()
    waves.error = LostProcessError("the primary process ended before the wave began", "Killed")
    waves.made.clear()
    assert confirm(question(), waves, FOUND, seen) is None
    assert seen.failures == ["Not confirmed: the primary process ended before the wave began"]


def test_an_answer_that_cannot_be_stored_says_so(tmp_path: Path) -> None:
    data = content(question(), explored(), FOUND, [])
    for _ in range(2):
        data = save(tmp_path / "absent", data)

    (reported,) = data.failures or []
    assert reported.startswith(f"{tmp_path}/absent: cannot be written (No such file or directory).")
    assert (data.exit_code, exit_code_of(data)) == (MISSED, INVALID)

    (tmp_path / "absent").mkdir()
    kept = save(tmp_path / "absent", settled(replace(data, clean_up="done")))
    assert not kept.failures
    assert read(tmp_path / "absent").exit_code == exit_code_of(kept) == kept.exit_code
