"""No report of a search, a ranking, a plan or a proof contradicts itself: hundreds that are made up are read.

So are those in ``recorded_answers``, which the commands left: searches, their ranking, and a plan with its proof.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from server_capacity.experiments.proof import folder as proof_folder
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import length_of
from server_capacity.experiments.proof.result import concluded
from server_capacity.experiments.proof.result import content as proof_content
from server_capacity.experiments.proof.text import to_text as text_of_proof
from server_capacity.planning import folder as plan_folder
from server_capacity.results import capacity_folder, ranking_folder
from server_capacity.results.codec import check_capacity, check_proof
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim
from server_capacity.results.text.capacity import to_text as text_of_search
from server_capacity.results.text.headline import headline
from server_capacity.results.text.ranking import to_text as text_of_ranking
from server_capacity.results.types.bounds import Endpoint, Spread
from server_capacity.results.types.result_status import confirmed_of, standing
from tests.capacities import as_read, found, stretch
from tests.plans import planned, search
from tests.proofs import LIMITS, PLANNED, QUESTION, RATE, ran
from tests.rankings import row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.bounds import CleanUp
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import EndpointPlan
    from server_capacity.results.types.proof import ProofResult
    from server_capacity.results.types.ranking import RankedRow, RankingResult

VERDICTS = ("holds", "fails", "cannot_tell")
SPAN = re.compile(r"95%: ([\d,.]+) to ([\d,.]+)")
MEASURED = re.compile(r"([\d.]+)% of windows of [^.]+? meet [^(]+ \((\d+) of (\d+) measured\)")
RECORDED = Path(__file__).parent / "recorded_answers"
SEARCHES = sorted(RECORDED.glob("*_capacity"))
EXPLAINED = ("disagree", "depends on earlier load", "slower with time", "slowed down over time")


def flat(text: str) -> str:
    return " ".join(text.split())


def waves(draw: random.Random, low: float) -> list[dict[str, Any]]:
    """None to three waves, the last at the lower end: one that failed lowers it, and a spoilt one is tried again."""
    made: list[dict[str, Any]] = []
    for _ in range(draw.randrange(4)):
        spoilt = draw.choice(["", "", "schedule lag"])
        verdict = "cannot_tell" if spoilt else draw.choice(VERDICTS)
        wave = {"rate": low, "seconds": 60.0, "verdict": verdict, "spoilt": spoilt, "spoilt_by": "client"}
        made = [{**each, "rate": 1.2 * each["rate"]} for each in made] + [wave]
    return made


def searches() -> Iterator[dict[str, Any]]:
    """Answers of every outcome, with whatever may stand beside them."""
    for seed, outcome in product(
        range(60), ("found", "at_least", "client_limited", "not_kept", "cannot_tell", "interrupted")
    ):
        draw = random.Random(f"{seed} {outcome}")
        low = draw.choice([0.21, 12.0, 168.2, 18_400.0])
        rated = outcome == "found" or (outcome == "interrupted" and draw.random() < 0.5)
        interval = {"low": low, "high": low * draw.uniform(1.03, 1.5)}
        model = draw.choice([None, {"low": 0.5 * low, "high": 0.9 * low}, {"low": low, "high": 1.1 * low}])
        slower = {
            "before": {"rate": low, "start_s": 10.0, "share": 0.0},
            "after": {"rate": 0.9 * low, "start_s": 90.0, "share": 0.9},
            "until_s": 50.0,
            "early": {"rate": 2 * low, "interval": {"low": 1.9 * low, "high": 2.1 * low}},
        }
        slowed = draw.random() < 0.3
        twin = (
            {"fits": False, "reason": "the endpoint got slower with time"}
            if slowed
            else {**found()["twin"], "rate": low, "interval": model}
        )
        counted = draw.randrange(4)
        kept = draw.randrange(counted + 1)
        share = kept / counted if counted else draw.random()
        windows = {"seconds": 60.0, "windows": counted, "kept": kept, "share": share}
        yield found(
            outcome=outcome,
            rate=1.02 * low if rated else None,
            interval=interval if rated else None,
            limit="p99<100ms" if outcome != "at_least" else None,
            limits=[
                {
                    "expression": "p99<100ms",
                    "rate": 1.02 * low if rated else None,
                    "interval": interval if rated else None,
                }
            ],
            at_least={"rate": low, "reason": ""} if outcome in ("at_least", "client_limited", "interrupted") else None,
            reason=draw.choice(
                ["", "the client was the limit", "the client was the limit: schedule lag", "36 requests"]
            ),
            confirmation=waves(draw, low) if rated or outcome == "at_least" else [],
            windows=draw.choice([None, windows]) if rated else None,
            twin=twin if rated else None,
            memory=None,
            islands=[],
            slower=slower if slowed else None,
            stretches=[stretch(number, share * low) for number, share in enumerate((0.5, 0.9, 1.02))],
            resources=None,
        )


def stored(data: dict[str, Any]) -> dict[str, Any]:
    """As a search of that outcome stores it."""
    code = {"found": 0, "at_least": 0, "interrupted": 130}.get(data["outcome"], 1)
    return {**data, "schema_version": 1, "headline": headline(as_read(data)), "exit_code": code}


def test_no_search_contradicts_itself() -> None:
    for data in searches():
        require_a_search(check_capacity(stored(data)))


@pytest.mark.parametrize("folder", SEARCHES, ids=lambda folder: folder.name)
def test_no_recorded_search_contradicts_itself(folder: Path) -> None:
    data = capacity_folder.read(folder)
    require_a_search(data)
    assert figures(data.headline) == figures(headline(data)), "an earlier version may have put it in other words"


def figures(text: str) -> list[str]:
    return sorted(re.findall(r"\d[\d.]*", text))


def require_a_search(data: CapacityResult) -> None:
    """Hold the sentences of a search against its numbers, and one against the other."""
    first, text = headline(data), flat(text_of_search(data))
    reported = [wave for wave in data.confirmation or [] if not wave.spoilt]
    assert text.lower().count("the client was the limit: the client was the limit") == 0
    assert ("Confirmed at" in text) == any(wave.verdict == "holds" for wave in reported)
    if confirmed_of(data) == "holds":
        assert not re.search("not confirmed|failed to confirm|cannot tell", first)
    if reported and reported[-1].verdict != "holds":
        assert "an estimate: slow requests" not in text
    spans = [tuple(float(end.replace(",", "")) for end in span) for span in SPAN.findall(text)]
    if any(one[1] < other[0] for one in spans for other in spans):
        assert any(word in text for word in EXPLAINED), text
    if data.slower:
        assert "By the model" not in text
    for share, kept, counted in MEASURED.findall(text):
        assert float(share) == pytest.approx(100 * int(kept) / int(counted), rel=0.01), text
    code = standing(replace(data, exit_code=0)).exit_code
    assert (code == 0) == (confirmed_of(data) == "holds") or data.outcome == "interrupted"
    assert text.startswith(flat(first))


@pytest.mark.parametrize("target", [None, 1000.0])
def test_no_ranking_contradicts_itself(target: float | None) -> None:
    aim = Aim(target)
    for seed in range(150):
        draw = random.Random(seed)
        rows = []
        for name in ("a", "b", "c")[: draw.randrange(1, 4)]:
            low = draw.choice([100.0, 103.0, 240.0, 900.0])
            more: dict[str, Any] = draw.choice(
                [{}, {"failures": ["The search ended early: the disk is full."], "exit_code": 3}]
            )
            price = draw.choice([None, 0.2, 1.0])
            rows.append(row(name, low, price=price, aim=aim, confirmation=waves(draw, low), **more))
        require_a_ranking(ranking(rows, aim))


def test_no_recorded_ranking_contradicts_itself() -> None:
    require_a_ranking(ranking_folder.read(RECORDED))


def require_a_ranking(data: RankingResult) -> None:
    """Hold the sentences of a ranking against its rows, and those against each other."""
    text, first = flat(text_of_ranking(data)), data.headline
    ranked = [each for each in data.rows if each.rank is not None]
    assert not re.search(r"[ (]-\d", first), first
    assert ("tie" in first.split(":")[0]) == bool(ranked and ranked[0].tied_with), first
    assert (data.exit_code == 0) <= all(each.exit_code == 0 for each in ranked)
    for place, each in enumerate(ranked, 1):
        assert each.ended != "early"
        assert bool(each.warnings) == (f"? {each.variant['instance_type']}: " in text)
        assert (each.confirmed == "holds") == ("confirm" not in "".join(each.warnings))
        for other_place, other in enumerate(ranked, 1):
            (best, worst), (others_best, others_worst) = (ends(one, data.ranked_by) for one in (each, other))
            apart = worst < others_best or others_worst < best
            assert apart == (other_place not in each.tied_with) or place == other_place
            assert worst <= others_worst or place >= other_place


def ends(one: RankedRow, by: str) -> tuple[float, float]:
    """Both ends of a score, the less the better."""
    sign = -1.0 if by == "rate" else 1.0
    assert one.score is not None
    return sign * (one.score.best or 0.0), sign * one.score.worst


def test_no_plan_contradicts_itself() -> None:
    for seed in range(150):
        draw = random.Random(seed)
        low = draw.choice([12.0, 100.0, 168.2])
        one = search(low, confirmation=waves(draw, low), twin=None, windows=None)
        asked = {"target_rps": draw.choice([10.0, 1000.0, 4321.0]), "spare": draw.randrange(3)}
        plan = planned(one, **asked)
        assert plan.target_rps == asked["target_rps"]
        require_a_plan(plan, one.data)


def test_no_recorded_plan_contradicts_itself() -> None:
    for plan in plan_folder.read(RECORDED).endpoints:
        require_a_plan(plan, capacity_folder.read(RECORDED / str(plan.capacity)))


def require_a_plan(plan: EndpointPlan, searched: CapacityResult) -> None:
    """Hold the plan of an endpoint against its search."""
    assert searched.interval is not None
    chosen, remarks, low = plan.chosen, " ".join(plan.remarks), searched.interval.low
    last = confirmed_of(searched)
    assert chosen.instances * low * chosen.share >= plan.target_rps * (1 - 1e-9)
    assert chosen.minimum <= chosen.instances <= chosen.with_spare
    assert sum(option.name == chosen.name for option in plan.options) == 1
    assert ("No wave confirmed" in remarks or "failed: search again" in remarks) == (last != "holds"), (
        remarks,
        last,
    )
    assert not ("No wave confirmed" in remarks and "failed: search again" in remarks)


@pytest.mark.parametrize("share", [0.0, 0.005, 0.0099, 0.0101, 0.015, 0.02, 0.022, 0.03, 0.2, 1.0])
@pytest.mark.parametrize("early", [None, "the share over cannot come down to 1% any more"])
def test_no_proof_contradicts_itself(share: float, early: str | None) -> None:
    length = length_of(PLANNED, LIMITS, None)
    data = proof_content(QUESTION, PLANNED, length, judged(QUESTION, PLANNED, ran(share)), ended_early=early)
    assert ("ended early" in flat(text_of_proof(data))) == (early is not None)
    require_a_proof(data)


@pytest.mark.parametrize("expected", [None, Spread(20.0, 15.0), Spread(300.0, 5.0)])
@pytest.mark.parametrize("share", [0.0, 0.008, 0.02, 0.3])
def test_no_proof_of_any_length_contradicts_itself(expected: Spread | None, share: float) -> None:
    for instances in (1, 10):
        aim = replace(PLANNED.aim, instances=instances, load=0.7, rate=RATE / instances / 0.7)
        planned = replace(PLANNED, aim=aim, correlation=expected)
        question = replace(QUESTION, endpoint=Endpoint("mine", instances=instances))
        proven = judged(question, planned, ran(share))
        ends: tuple[CleanUp | None, ...] = (None, "failed")
        for seconds, code, left in product((1.0, 30.0, 900.0), (0, 1, 3), ends):
            length = length_of(planned, LIMITS, seconds)
            data = concluded(
                replace(proof_content(question, replace(planned, exit_code=code), length, proven), clean_up=left)
            )
            check_proof(encoded(data))
            require_a_proof(data)
            short = "too short to decide" in length.sentence()
            assert short == (length.holds == 0)
            assert not (short and data.headline.startswith("Passed"))


def test_no_recorded_proof_contradicts_itself() -> None:
    require_a_proof(proof_folder.load(RECORDED).found)


def require_a_proof(data: ProofResult) -> None:
    """Hold the sentences of a proof against what was counted."""
    text, early = flat(text_of_proof(data)), data.ended_early
    verdicts = {each.verdict for each in data.limits}
    short = data.length.holds_if_right == 0
    holds = verdicts == {"holds"} and early is None and not short
    assert data.headline.startswith(("Passed", "Holds")) == holds, "an earlier version said Holds"
    assert not (short and "accepts a sufficient one in" in text and "accepts a sufficient one in 0%" not in text)
    left = bool(data.plan_exit_code) or data.clean_up == "failed"
    assert (data.exit_code == 0) == (holds and not left)
    assert left == ("Its plan: " in data.headline or "not removed" in data.headline)
    for each in data.limits:
        assert each.interval is not None
        assert each.allowed is not None
        assert each.share_over is not None
        low, high = each.interval.low, each.interval.high
        assert low <= each.share_over <= high * (1 + 1e-9)
        assert not (each.verdict == "holds" and low > each.allowed)
        assert not (each.verdict == "fails" and low <= each.allowed)
        if low > each.allowed:
            assert "which bursts can explain" not in text
