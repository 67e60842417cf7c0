"""One replica of many in virtual time: hit rates and lengths against closed forms, and a search compared end to end."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.embedded.llm.rules import EngineRules
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.words.units import NS
from server_capacity.planning.users import comparing, replica
from server_capacity.planning.users.comparing import Compared, Waves, compare
from server_capacity.planning.users.replica import Replicas
from server_capacity.planning.users.workload import Turn, sessions_in
from server_capacity.search.limits import Limit
from tests.case import case
from tests.routed_fleet import Fleet, talk
from tests.users_plans import SESSIONS, search_of_users
from tests.waves import observe, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.embedded.llm.token_job import TokenJob
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from server_capacity.planning.users.workload import Session

RULES = EngineRules(400_000, (0.0, 0.02, 8.0), (0.0, 60.0, 15.0, 0.5))
LIMIT = "tpot.p95<25ms"
TRUTH = 12
"""Users at which a replica just meets it, with 2,000 conversations."""
FEW = 150


def limit(text: str = LIMIT) -> Limit:
    return Limit.of(Slo.parse(text), "latency")


TALKS = [talk(random.Random(number)) for number in range(200)]


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_later_turn_finds_its_conversation_once_in_as_many_replicas(replicas: int) -> None:
    sessions = [(Turn(320, 0, 16, 0.0), Turn(640, 320, 16, 0.2))]
    found = Replicas(RULES, sessions, [limit()], replicas=replicas).run(4, 800)
    assert found.hit_rate == pytest.approx(320 / 960 / replicas, rel=0.01 if replicas == 1 else 0.2)


def test_a_third_turn_finds_the_first_where_the_second_was_elsewhere() -> None:
    sessions = [(Turn(320, 0, 16, 0.0), Turn(640, 320, 16, 0.2), Turn(960, 640, 16, 0.2))]
    found = Replicas(RULES, sessions, [limit()], replicas=2).run(4, 800)
    expected = 320 / 2 + 640 / 2 + 320 / 4  # the second and the third turn, and the third of the first alone
    assert found.hit_rate == pytest.approx(expected / 1920, rel=0.05)


@pytest.mark.parametrize("aware", [True, False])
def test_a_few_engines_stand_for_more_of_them(aware: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica, "MOST_ENGINES", 2)
    truth = Fleet(RULES, TALKS, 4, 12, 0.025, aware=aware).run(600)
    found = Replicas(RULES, TALKS, [limit()], replicas=4, aware=aware).run(12, 600)
    assert found.hit_rate == pytest.approx(truth.hit_rate, rel=0.12)
    assert found.over[0] / found.of[0] == pytest.approx(truth.over, abs=0.08)


def test_a_prefix_that_conversations_share_is_on_each_replica() -> None:
    sessions = [(Turn(640, 320, 16, 0.0), Turn(960, 320, 16, 0.2))]
    found = Replicas(RULES, sessions, [limit()], replicas=1000).run(4, 500)
    assert found.hit_rate == pytest.approx(640 / 1600, rel=0.01)


def test_a_cache_that_is_too_small_forgets() -> None:
    sessions = [(Turn(800, 0, 16, 0.0), Turn(1600, 800, 16, 2.0))]
    room, tight = (
        Replicas(replace(RULES, kv_tokens=tokens), sessions, [limit()], replicas=1).run(20, 300).hit_rate
        for tokens in (400_000, 8_000)
    )
    assert room == pytest.approx(1 / 3, rel=0.03)
    assert tight < 0.1


def test_one_user_takes_as_long_as_the_steps_do() -> None:
    rules = replace(RULES, step_ms=(0.0, 0.0, 15.0, 0.0))
    limits = [limit("session.p95<10s"), limit("turn1.ttft.p95<17ms"), limit("tpot.p95<15.5ms"), limit("ttft.p95<1ms")]
    found = Replicas(rules, [(Turn(320, 0, 11, 0.0), Turn(640, 0, 11, 0.5))], limits, way_s=0.002).run(1, 50)

    prefill_s = 0.008 * 2 + 0.02e-3 * (320 + 640)
    assert found.sessions_per_s == pytest.approx(1 / (prefill_s + 20 * 0.015 + 0.5 + 0.002), rel=0.02)
    assert [over / of for over, of in zip(found.over, found.of, strict=True)] == [0, 0, 0, 1]
    assert found.of in ([50, 50, 100, 100], [50, 51, 101, 101])
    assert not found.meets(limits)


class _Recorded(Replicas):
    """A replica whose turns are written down as a client would."""

    def __init__(self, *more: Any) -> None:
        super().__init__(*more)
        self._warm_ns = 0
        self.turns: dict[int, list[RequestRecord]] = {}
        self._numbers: dict[int, int] = {}

    def _count(self, session: Any, job: TokenJob, first_ns: int, finish_ns: int) -> None:
        super()._count(session, job, first_ns, finish_ns)
        if session.place == 1:
            self._numbers[id(session)] = len(self.turns)
        number, place = self._numbers[id(session)], session.place
        turn, due = session.turns[place - 1], job.arrival_ns
        record = RequestRecord(
            number, 0, due, due, finish_ns, "ok", first_token=first_ns, last_token=finish_ns, chunks=2,
            gaps=((finish_ns - first_ns) // 1000,), tokens_in=job.prompt, tokens_out=job.output, session=number,
            turn=place, think_ns=round(turn.think_s * NS) if place > 1 else None,
            ended="completed" if place == len(session.turns) else None,
            metrics={"cached_tokens": float(job.cached or 0)},
        )  # fmt: skip
        self.turns.setdefault(number, []).append(record)


def wave(users: int, measured: int) -> WaveFacts:
    """So many conversations with a server of these rules."""
    replica = _Recorded(RULES, TALKS, [limit()])
    replica.run(users, measured)
    whole = [turns for turns in replica.turns.values() if turns[-1].ended]
    return observe(open_plan("5", "1000"), [record for turns in whole for record in turns])


def compared(low: float, every: list[WaveFacts], **more: Any) -> Compared:
    row = {"expression": LIMIT, "rate": low, "interval": {"low": low, "high": low * 1.1}}
    search = search_of_users(low, limit=LIMIT, limits=[row], rate=low, **more)
    return compare(search, lambda: Waves(every, every[-1:]), None)


def test_a_search_is_compared_on_the_engine_that_its_waves_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MEASURED", FEW)
    every = [wave(1, 30), wave(6, 50), wave(16, 100)]
    found = compared(float(TRUTH), every)

    assert found.comparison.reason is None
    assert found.comparison.users == pytest.approx(TRUTH, abs=2)
    assert found.comparison.engine is not None
    assert found.comparison.engine.prefill_ms == pytest.approx([0.0, 0.02, 8.0], rel=0.05, abs=1e-6)
    assert found.routings is not None
    two = found.routings.held("random", 2)
    assert 1 >= found.routings.held("prefix_aware", 2).share >= two.share > 0
    assert found.routings.alone.hit_rate > two.hit_rate > 0.1
    assert any("KV cache" in each for each in found.remarks)
    assert any("prompts of up to" in each for each in found.remarks)
    disagreeing = compared(4.0 * TRUTH, every)
    assert "disagrees with the search" in str(disagreeing.comparison.reason)


def test_the_reasons_not_to_compare_are_named() -> None:
    def no_waves() -> Waves:
        raise BenchmarkError("no wave is there.")

    rows: list[tuple[dict[str, Any], str, bool]] = [
        ({}, "no wave is there", False),
        ({"sessions": {**SESSIONS, "cached_tokens_per_s": 20.0}}, "0.2% of its input tokens in the cache", True),
        ({"sessions": {**SESSIONS, "cached_tokens_per_s": None}}, "no wave is there", False),
        ({"endpoint": {"name": "x", "instances": 2}}, "2 replicas were searched together", False),
        ({"limit": "itl.p95<40ms", "limits": [{"expression": "itl.p95<40ms"}]}, "itl.p95<40ms is none that", False),
    ]
    for more, reason, equal in rows:
        with case(more):
            found = compare(search_of_users(**more), no_waves, None)
            assert reason in str(found.comparison.reason)
            assert (found.equal, found.routings) == (equal, None)


def test_waves_that_no_engine_can_have_served_are_not_simulated() -> None:
    found = compared(16.0, [wave(16, 60)])
    assert found.routings is None
    assert found.comparison.reason


def test_whole_conversations_are_read_from_records() -> None:
    facts = wave(2, 10)
    (part,) = facts.records.parts()
    found = list(sessions_in(part))
    assert len(found) >= 9
    lengths = [_lengths(session) for session in TALKS]
    assert all(_lengths(session) in lengths for session in found)


def _lengths(session: Session) -> list[tuple[int, int]]:
    return [(turn.prompt, turn.output) for turn in session]
