"""Several LLM engines behind a random router in virtual time: the truth that one engine with labels stands for."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.words.units import NS
from server_capacity.planning.users.workload import Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from server_capacity.planning.users.workload import Session

_NEVER = 1 << 62


class Found(NamedTuple):
    """The share of the input tokens in a cache, and that of the turns whose tokens took longer than a bound."""

    hit_rate: float
    over: float


def talk(draws: random.Random) -> Session:
    """From 2 to 5 turns, each of which has all before it in its prompt."""
    turns, context, output = [], 0, 0
    for place in range(draws.randint(2, 5)):
        cached = (context + output) // 16 * 16
        context += output + draws.randint(100, 500)
        output = draws.randint(20, 60)
        turns.append(Turn(context, cached, output, draws.expovariate(2) if place else 0.0))
    return tuple(turns)


@dataclass(eq=False, slots=True)
class _Talk:
    """A conversation: its turns to come, the engine that it began on, and the names of its text's blocks."""

    turns: list[Turn]
    engine: Engine
    names: list[int] = field(default_factory=list)


class Fleet:
    """So many ``users`` of each of so many ``replicas``; each turn goes to one at random, or each conversation."""

    def __init__(
        self,
        rules: EngineRules,
        sessions: Sequence[Session],
        replicas: int,
        users: int,
        bound_s: float,
        *,
        aware: bool = False,
    ) -> None:
        self._engines = [Engine(rules) for _ in range(replicas)]
        self._sessions, self._bound_s, self._block, self._aware = sessions, bound_s, rules.block_size, aware
        self._draws, self._names, self._orders = random.Random(5), count(), count()
        self._events: list[tuple[int, int, _Talk]] = []
        self._sent: dict[TokenJob, _Talk] = {}
        self._users, self.ended = replicas * users, 0
        self.jobs: list[TokenJob] = []

    def run(self, measured: int) -> Found:
        """So many conversations, after twice as many as there are users."""
        for place in range(self._users):
            self._begin(round(3 * place / self._users * NS))
        while self.ended < 2 * self._users:
            self._step()
        self.jobs = []
        while self.ended < 2 * self._users + measured:
            self._step()
        tokens, cached = (
            sum(values) for values in zip(*((job.prompt, job.cached or 0) for job in self.jobs), strict=True)
        )
        over = sum(_pace_s(job) >= self._bound_s for job in self.jobs)
        return Found(cached / tokens, over / len(self.jobs))

    def _begin(self, now: int) -> None:
        talk = _Talk(list(self._draws.choice(self._sessions)), self._draws.choice(self._engines))
        heappush(self._events, (now, next(self._orders), talk))

    def _step(self) -> None:
        event = self._events[0][0] if self._events else _NEVER
        steps = [(at, place) for place, engine in enumerate(self._engines) if (at := engine.next_ns()) is not None]
        step, place = min(steps, default=(_NEVER, 0))
        if step > event:
            now, _, talk = heappop(self._events)
            self._send(now, talk)
            return
        for job in self._engines[place].take_ready(step):
            self._finish(step, job)

    def _send(self, now: int, talk: _Talk) -> None:
        turn = talk.turns.pop(0)
        names = talk.names[: turn.cached // self._block]
        talk.names = names + [next(self._names) for _ in range((turn.prompt + turn.output) // self._block - len(names))]
        job = TokenJob(turn.prompt, turn.output, talk.names, turn.output)
        self._sent[job] = talk
        (talk.engine if self._aware else self._draws.choice(self._engines)).offer(now, job)

    def _finish(self, now: int, job: TokenJob) -> None:
        talk = self._sent.pop(job)
        self.jobs.append(job)
        if talk.turns:
            heappush(self._events, (now + round(talk.turns[0].think_s * NS), next(self._orders), talk))
            return
        self.ended += 1
        self._begin(now)


def _pace_s(job: TokenJob) -> float:
    assert job.finish_ns is not None
    assert job.first_token_ns is not None
    return (job.finish_ns - job.first_token_ns) / NS / (job.output - 1)
