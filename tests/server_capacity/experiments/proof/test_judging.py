"""What a proof's wave says of the plan: its judgement, exit code, first line and text."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import Answers, WorkerUse
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.words.units import NS
from server_capacity.experiments.capacity.waves import Waves
from server_capacity.experiments.measurements.question import Question
from server_capacity.experiments.proof.evidence import HELD, REJECTED, Aim
from server_capacity.experiments.proof.folder import is_proof, load, save
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import length_of, main_of
from server_capacity.experiments.proof.result import content
from server_capacity.experiments.proof.run import prove
from server_capacity.experiments.ranking.preflight import Before
from server_capacity.experiments.server_side.server_side import ServerSide
from server_capacity.results.codec import check_proof
from server_capacity.results.types.bounds import Endpoint, Spread
from server_capacity.search.limits import limits_of
from server_capacity.search.settings import Settings
from tests.mentions import mentions
from tests.proofs import LIMITS, PLANNED, QUESTION, RATE, SECONDS, SLOS, proof, ran
from tests.waves import open_plan, wave

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave


@pytest.mark.parametrize(
    ("share", "outcome", "code", "first"),
    [
        (0.002, "holds", 0, "Passed: 3 instances of ml.m5.large served 200/s for 30 s within every limit."),
        (
            0.013,
            "cannot_tell",
            1,
            "Inconclusive for 200/s on 3 instances of ml.m5.large: 1.3% of requests are over p99<100ms (1% "
            "may be), which bursts can explain.",
        ),
        (
            0.1,
            "fails",
            1,
            "Failed: 3 instances of ml.m5.large did not serve 200/s within the limits: 10% of requests are over "
            "p99<100ms (1% may be).",
        ),
    ],
)
def test_the_share_over_a_limit_decides(tmp_path: Path, share: float, outcome: str, code: int, first: str) -> None:
    data = proof(ran(share))

    assert (data.outcome, data.exit_code, data.headline) == (outcome, code, first)
    row, success = data.limits
    assert row.share_over == pytest.approx(share, rel=0.01)
    assert row.interval is not None
    assert row.interval.low < share < row.interval.high
    assert (success.verdict, success.share_over) == ("holds", 0.0)
    assert not is_proof(tmp_path)
    data = save(tmp_path, data)
    assert is_proof(tmp_path)
    found, text, stored = load(tmp_path)
    assert found == data
    assert stored == encoded(data)
    assert text.splitlines()[0] == text.splitlines()[-2] == first


def test_without_the_searchs_bursts_it_takes_them_to_be_dense() -> None:
    unknown = replace(PLANNED, correlation=None)
    outcomes = [proof(ran(share), unknown).outcome for share in (0.0, 0.013, 0.05, 0.09)]
    assert outcomes == ["holds", "cannot_tell", "cannot_tell", "fails"]
    assert "assuming dense bursts" in length_of(unknown, LIMITS, None).sentence()


@pytest.mark.parametrize("expected", [None, Spread(20.0, 15.0), Spread(30.0, 4.0)])
@pytest.mark.parametrize("instances", [1, 4])
@pytest.mark.parametrize("seconds", [1, 2, 6, 30])
def test_a_time_that_is_too_short_to_tell_never_ends_as_holds(
    expected: Spread | None, instances: int, seconds: int
) -> None:
    planned = replace(PLANNED, correlation=expected, aim=Aim(25, instances, 0.7, 25 / instances / 0.7))
    length = length_of(planned, LIMITS, float(seconds))
    whole = wave(np.full((seconds, 25), 0.02), slos=SLOS)
    data = content(QUESTION, planned, length, judged(QUESTION, planned, whole))
    too_short = "too short to decide" in length.sentence()
    assert too_short == (length.holds == 0)
    assert (data.outcome == "holds") != too_short
    assert (data.exit_code == 0) != too_short
    assert length.too_short in data.headline


def test_a_limit_that_another_one_gives_out_before_is_only_kept() -> None:
    """A missing instance is known by the limit that was violated first: of this one there are too few to be over."""
    slos = (Slo.parse("p99<100ms"), Slo.parse("p99.9<1s"))
    limits = limits_of(slos, 0.95)
    question = Question(open_plan(slos=slos), limits, Settings(), 2)
    assert main_of(limits, replace(PLANNED, limit="p99.9<1s")).expression == "p99.9<1s"
    held = judged(question, PLANNED, wave(np.full((30, 60), 0.02), slos=slos))
    assert held.confirmed.judgements == ("holds", "holds", "holds")
    assert main_of(limits, replace(PLANNED, limit="keeps up")) is limits[0]


def test_a_client_that_was_the_limit_proves_nothing() -> None:
    due = np.arange(SECONDS * RATE) * NS // RATE
    data = proof(wave(np.full((SECONDS, RATE), 0.4), slos=SLOS, sent=due + 380_000_000))
    assert (data.outcome, data.exit_code) == ("cannot_tell", 3)
    assert mentions(data.headline, "200/s", "3 instances", "ml.m5.large")


def test_a_client_that_was_late_does_not_speak_for_a_plan_but_may_leave_it_to_hold() -> None:
    due = np.arange(SECONDS * RATE) * NS // RATE
    wave_of = {metric: Slo.parse(f"{metric}.p99<100ms") for metric in ("response_time", "latency")}
    found = []
    for slo in wave_of.values():
        limits = limits_of((slo,), 0.95)
        question, planned = (
            Question(open_plan(slos=(slo,)), limits, Settings(), 2),
            replace(PLANNED, limit=slo.expression),
        )
        late = wave(np.full((SECONDS, RATE), 0.06), slos=(slo,), sent=due + 30_000_000)
        data = content(question, planned, length_of(planned, limits, None), judged(question, planned, late))
        found.append((data.outcome, data.exit_code))
    assert found == [("holds", 0), ("cannot_tell", 3)]


@pytest.mark.parametrize(
    ("slow", "late", "outcome", "code"),
    [(200, 0, "cannot_tell", 1), (200, 119, "cannot_tell", 3), (500, 119, "fails", 1)],
)
def test_a_pause_of_the_client_does_not_refute_a_plan_that_is_undecided(
    slow: int, late: int, outcome: str, code: int
) -> None:
    times = np.full((SECONDS, RATE), 0.02)
    times.ravel()[np.linspace(2000, times.size - 1, slow, dtype=int)] = 0.2
    due = np.arange(times.size) * NS // RATE
    sent = due + np.where((due >= 5 * NS) & (due < 5 * NS + late * NS // RATE), 300_000_000, 0)
    paused = wave(times, slos=SLOS, sent=sent, done=sent + np.rint(times.ravel() * NS).astype(int))
    data = proof(paused)
    assert (data.outcome, data.exit_code) == (outcome, code)
    assert ("p99<100ms is missed with that lag and undecided without it" in (data.reason or "")) is (code == 3)


def test_a_backlog_that_grows_fails_whatever_the_limits() -> None:
    """Answers come at two thirds of the rate, and the limit on success is kept."""
    slos = (Slo.parse("success>=0.9"),)
    limits = limits_of(slos, 0.9)
    question = Question(open_plan(slos=slos), limits, Settings(), 2)
    waited = np.arange(SECONDS * RATE).reshape(SECONDS, RATE) / RATE * 0.5
    planned = replace(PLANNED, limits=("success>=0.9",), limit="success>=0.9", correlation=None)
    length = length_of(planned, limits, None)

    data = content(question, planned, length, judged(question, planned, wave(0.02 + waited, slos=slos)))

    assert (data.outcome, data.exit_code) == ("fails", 1)
    assert data.backlog > 1000
    assert "requests arrived faster than they were answered" in data.headline


def test_an_interrupt_proves_nothing() -> None:
    data = proof(replace(ran(0.0), interrupted=True))
    assert (data.outcome, data.exit_code) == ("interrupted", 130)
    assert data.headline.startswith("Interrupted after")
    warming = ran(0.0)
    warming = replace(warming, interrupted=True, window=replace(warming.window, stopped_at_ns=-17_300_000_000))
    assert proof(warming).headline.startswith("Interrupted after 0.0 s of ")


def test_a_lost_process_proves_nothing() -> None:
    lost = replace(ran(0.0), primary_lost=True)
    assert (proof(lost).outcome, proof(lost).exit_code) == ("cannot_tell", 3)


def test_a_time_that_is_too_short_is_said() -> None:
    flat = replace(PLANNED, correlation=Spread(30.0, 4.0))
    short = length_of(flat, LIMITS, 2.0)
    assert short.holds == 0
    assert short.warmup_s <= 2.0
    assert short.too_short == f"2.0 s is too short to decide: give --time {math.ceil(short.needed_s)}"
    assert f"{short.too_short}." in short.sentence()
    little = length_of(flat, LIMITS, 20.0)
    assert 0 < little.holds < HELD
    text = f"A sufficient plan may look as if it were one instance short: give --time {math.ceil(little.needed_s)}."
    assert text in little.sentence()
    enough = length_of(flat, LIMITS, None)
    assert "may not" not in enough.sentence()
    assert "too short" not in enough.sentence()
    assert length_of(PLANNED, LIMITS, None, 120.0).seconds == 120.0
    hopeless = replace(flat, aim=Aim(0.5, 10, 1.0, 0.05))
    assert "more than 15 min would be needed" in length_of(hopeless, LIMITS, None).sentence()


def test_a_plan_near_its_limit_is_said_to_be_near_it() -> None:
    near = replace(PLANNED, correlation=Spread(20.0, 15.0), aim=Aim(RATE, 2, 1.0, 100.0))
    length = length_of(near, LIMITS, None)
    assert length.rejects >= REJECTED
    assert length.holds < HELD
    assert length.sentence().endswith("A sufficient plan may be too close to its limit to decide.")


@pytest.mark.parametrize(("endpoint", "called"), [(Endpoint("http://a.b"), "http://a.b"), (None, "the endpoint")])
def test_instances_that_nobody_counted_are_not_said_to_have_served(
    tmp_path: Path, endpoint: Endpoint | None, called: str
) -> None:
    question, length = replace(QUESTION, endpoint=endpoint), length_of(PLANNED, LIMITS, None)

    def reported(of: Wave) -> str:
        return content(question, PLANNED, length, judged(question, PLANNED, of)).headline

    planned = "planned: 3 instances of ml.m5.large; the actual number is not known."
    assert reported(ran(0.002)) == f"Passed: {called} served 200/s for 30 s within every limit; {planned}"
    assert reported(ran(0.1)).startswith(f"Failed: {called} did not serve 200/s within the limits: 10% of")
    assert reported(ran(0.1)).endswith(f"; {planned}")
    assert reported(ran(0.013)).startswith(f"Inconclusive for 200/s on {called}: ")
    said: list[str] = []
    with pytest.raises(RuntimeError):
        prove(question, PLANNED, Waves(tmp_path, said.append, _no_wave, ServerSide([], {}), print), Before([], None))
    assert said[0].startswith(
        f"The plan: 200/s on 3 instances; the number of instances of {called} is not known. "
        "The verification sends load for"
    )


def _no_wave(*_: Any) -> Any:
    raise RuntimeError


def test_limits_and_requests_that_are_not_the_plans_are_named() -> None:
    other = proof(ran(0.0), replace(PLANNED, limits=("p99<50ms", "success>=0.95")))
    assert other.outcome == "holds"
    assert " within every limit given; planned" in other.headline or " within every limit given." in other.headline
    assert "the limits p99<100ms, success>=0.95 in place of p99<50ms, success>=0.95." in other.headline
    changed = proof(ran(0.0), replace(PLANNED, differences=("f.py was changed since the search",)))
    assert changed.headline.endswith(
        "within every limit. Not as in its plan's search: f.py was changed since the search."
    )
    assert check_proof(encoded(changed)) == changed
    assert "Not as in" not in proof(ran(0.0)).headline


def test_an_endpoint_of_another_number_of_instances_is_refused(tmp_path: Path) -> None:
    question = replace(QUESTION, endpoint=Endpoint("mine", instances=2))
    waves = Waves(tmp_path, print, lambda *_: pytest.fail("nothing is sent"), ServerSide([], {}), print)
    with pytest.raises(BenchmarkError, match=r"mine: runs on 2 instances; p/fleet_plan\.json plans 3"):
        prove(question, PLANNED, waves, Before([], None))


@pytest.mark.parametrize(("there", "planned"), [("ml.g5.xlarge", "ml.m5.large"), ("ml.m5.large", "ml.g5.xlarge")])
def test_an_endpoint_of_another_instance_type_is_refused(tmp_path: Path, there: str, planned: str) -> None:
    question = replace(QUESTION, endpoint=Endpoint("mine", instances=PLANNED.aim.instances, instance_type=there))
    of_type = replace(PLANNED, endpoint=Endpoint(instance_type=planned))
    waves = Waves(tmp_path, print, lambda *_: pytest.fail("nothing is sent"), ServerSide([], {}), print)
    with pytest.raises(BenchmarkError, match=rf"mine: runs on {there}; p/fleet_plan\.json plans {planned}"):
        prove(question, of_type, waves, Before([], None))


@pytest.mark.parametrize("known", [(None, "ml.m5.large"), ("ml.m5.large", None), ("ml.m5.large", "ml.m5.large")])
def test_an_endpoint_of_the_planned_type_or_of_an_unknown_one_is_verified(
    tmp_path: Path, known: tuple[str | None, str | None]
) -> None:
    there, planned = known
    question = replace(QUESTION, endpoint=Endpoint("mine", instances=PLANNED.aim.instances, instance_type=there))
    of_type = replace(PLANNED, endpoint=Endpoint(instance_type=planned))
    with pytest.raises(RuntimeError):  # of the wave, which there is none of
        prove(question, of_type, Waves(tmp_path, print, _no_wave, ServerSide([], {}), print), Before([], None))


def test_a_proof_whose_answers_hid_their_statuses_says_so_beside_its_answer() -> None:
    shed = replace(ran(0.0), workers=(WorkerUse(answers=Answers(hidden={"503": 7})),))
    told = "ok requests received a response with a status from 400 on (503: 7)."
    assert told in proof(shed).headline
    assert proof(ran(0.0)).hidden is None
