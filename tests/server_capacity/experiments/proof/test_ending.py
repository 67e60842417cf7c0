"""A proof that can no longer hold ends: when, why, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.engine.pilot import End
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.records.feed import Feed
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.words.units import NS
from server_capacity.experiments.proof.ending import ProofPilot
from server_capacity.experiments.proof.folder import load, save
from server_capacity.experiments.proof.judging import judged
from server_capacity.experiments.proof.length import bursts_of, length_of
from server_capacity.experiments.proof.result import concluded, content
from server_capacity.experiments.proof.text import to_text
from server_capacity.results.codec import check_proof
from server_capacity.results.types.bounds import Suspended
from server_capacity.results.types.result_status import NOT_REMOVED
from tests.mentions import mentions
from tests.proofs import LIMITS, PLANNED, QUESTION, RATE, proof, ran

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.results.types.proof import ProofResult

LENGTH = length_of(PLANNED, LIMITS, 60.0)


def reported(
    second: int, ok: int = 0, over: int = 0, *, failed: int = 0, waiting: int = 0, time_s: float = 0.2
) -> Feed:
    """A feed in which so many were over a limit of 100 ms, failed, or were sent in a second and are in flight."""
    times = Histogram.of([20_000_000] * ok + [round(time_s * NS)] * over).to_json()
    sent = {"sent": ok + over + failed + waiting, "ok": ok + over, "ended": ok + over + failed}
    cell = {"s": second, "n": 0, **sent, "failed": [0, failed] if failed else [], "response_time": times}
    feed = Feed()
    feed.merge([cell], ["HTTP 503"])
    return feed


def orders(feed: Feed, at_s: float, planned: Planned = PLANNED) -> tuple[list[Any], str | None]:
    pilot = ProofPilot(QUESTION, planned, LENGTH)
    given: Any = SimpleNamespace(feed=feed)
    return list(pilot.orders(given, round(at_s * NS))), pilot.why


def most(planned: Planned = PLANNED) -> int:
    """The number over p99<100ms from which on the whole time fails, were there a few more arrivals than on average."""
    requests = RATE * 60 + 5 * (RATE * 60) ** 0.5
    return bursts_of(LIMITS[0], planned).fails_from(requests)


@pytest.mark.parametrize(
    "planned", [PLANNED, replace(PLANNED, correlation=None)], ids=["measured bursts", "unknown ones"]
)
def test_it_ends_where_the_whole_time_may_not_have_as_many(planned: Planned) -> None:
    number = most(planned)
    assert orders(reported(3, 100, number - 1), 4, planned) == ([], None)
    ended, why = orders(reported(3, 100, number), 4, planned)
    assert ended == [End()]
    assert why == (f"{number:,} requests over p99<100ms in 4.0 s are more than a sufficient plan would have in 1 min")


@pytest.mark.parametrize(
    "feed",
    [
        reported(3, 100, 10_000, time_s=0.101),  # within a bucket of the limit, nobody knows on which side
        reported(3, 9000),
        reported(3, 100, failed=500),  # of 12,000 that may fail 600
        reported(3, 100, waiting=10_000),  # sent a moment ago
    ],
)
def test_it_goes_on_where_it_may_yet_hold(feed: Feed) -> None:
    assert orders(feed, 4) == ([], None)


@pytest.mark.parametrize("feed", [reported(3, 100, failed=2000), reported(0, waiting=1000)])
def test_failures_end_it_and_so_does_an_endpoint_that_answers_nobody(feed: Feed) -> None:
    assert orders(feed, 4)[0] == [End()]


def test_it_is_asked_once_a_second_and_ends_once() -> None:
    pilot = ProofPilot(QUESTION, PLANNED, LENGTH)
    given: Any = SimpleNamespace(feed=reported(0, 1))
    assert pilot.orders(given, 0) == []
    given.feed = reported(0, 0, 5000)
    assert pilot.orders(given, NS // 2) == []
    assert pilot.orders(given, NS) == [End()]
    assert pilot.orders(given, 3 * NS) == []


WHY = "600 requests over p99<100ms in 5.0 s are more than a sufficient plan would have in 30 s"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "12,000 requests in 1 min, after 20 s of warm-up: this rejects a plan"),
        ({"outcome": "interrupted", "sent_s": 5.4, "sent": 30}, "30 requests in 5.4 s of 1 min, after 20 s"),
        ({"outcome": "interrupted", "sent_s": 0.0, "sent": 0}, "0 requests were sent after the warm-up."),
        ({"outcome": "cannot_tell", "reason": "the primary was killed", "sent": 0}, "0 requests were sent"),
        ({"outcome": "cannot_tell", "reason": "5.0 s is too short to decide: give --time 60"}, "this rejects a plan"),
    ],
)
def test_the_chances_are_of_a_verification_that_was_sent_to_its_end(changed: dict[str, Any], said: str) -> None:
    data = proof(ran(0.002))
    length = replace(data.length, seconds=60.0, warmup_s=20.0)
    data = replace(data, **{"length": length, "sent": 12_000, "sent_s": 60.0, **changed})
    text = " ".join(to_text(data).split())
    assert said in text
    assert ("rejects a plan" in text) == ("rejects a plan" in said)


def test_what_ended_early_is_reported_and_never_holds(tmp_path: Path) -> None:
    def early(share: float) -> ProofResult:
        length = length_of(PLANNED, LIMITS, None)
        return content(QUESTION, PLANNED, length, judged(QUESTION, PLANNED, ran(share)), ended_early=WHY)

    failed = early(0.1)
    assert (failed.outcome, failed.exit_code, failed.ended_early) == ("fails", MISSED, WHY)
    assert mentions(failed.headline, "10%", "p99<100ms", "1%", "1 min")
    save(tmp_path, failed)
    assert f"It ended early: {WHY}." in " ".join(load(tmp_path).text.split())
    assert "rejects a plan" not in load(tmp_path).text
    kept = early(0.0)
    assert (kept.outcome, kept.exit_code) == ("cannot_tell", MISSED)
    assert WHY in kept.headline
    with pytest.raises(ValueError, match="its outcome is holds, but it ended early"):
        check_proof({**encoded(kept), "outcome": "holds", "exit_code": 0})


@pytest.mark.parametrize(
    ("share", "plan", "code"),
    [
        (0.002, OK, OK),
        (0.002, MISSED, MISSED),
        (0.002, INVALID, INVALID),
        (0.1, MISSED, MISSED),
        (0.1, INVALID, INVALID),
        (0.002, INTERRUPTED, INTERRUPTED),
        (0.1, INTERRUPTED, INTERRUPTED),
    ],
)
def test_a_proof_inherits_the_exit_code_of_its_plan(share: float, plan: int, code: int) -> None:
    data = proof(ran(share), replace(PLANNED, exit_code=plan))
    assert (data.exit_code, data.plan_exit_code) == (code, plan)
    assert data.headline.endswith(f" Its plan: it has exit code {plan}.") == (plan != OK)
    check_proof(encoded(data))
    if code != OK:
        with pytest.raises(ValueError, match="exit code"):
            check_proof({**encoded(data), "exit_code": OK, "outcome": "holds"})


def test_a_proof_tells_what_its_plan_leaves_open() -> None:
    data = proof(
        ran(0.002), replace(PLANNED, exit_code=INVALID, warnings=("its search ended early: x", "no wave confirmed it"))
    )
    assert data.headline.endswith("within every limit. Its plan: its search ended early: x; no wave confirmed it.")
    assert proof(replace(ran(0.0), interrupted=True), replace(PLANNED, exit_code=INVALID)).exit_code == INTERRUPTED


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ({"clean_up": "failed"}, f"Something that was created for it {NOT_REMOVED}."),
        ({"suspended": Suspended(put_back=False)}, "Scaling that was suspended for it is not restored."),
    ],
)
def test_what_a_proof_leaves_behind_is_its_exit_code(left: dict[str, Any], said: str) -> None:
    data = concluded(replace(proof(ran(0.002)), **left))
    assert (data.exit_code, data.outcome) == (INVALID, "holds")
    assert data.headline.endswith(f" {said}")
    check_proof(encoded(data))
    whole = concluded(replace(proof(ran(0.002)), clean_up="done", suspended=Suspended(put_back=True)))
    assert (whole.exit_code, whole.headline) == (OK, proof(ran(0.002)).headline)
