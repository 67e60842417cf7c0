"""Replicas on the embedded LLM engine in virtual time, as a router fills them. Pure.

With random routing over R replicas a later turn finds its conversation's blocks where an earlier turn was sent to the
same one. A few engines stand for any number of replicas: beside its engine each turn draws a label, and the names of
its conversation's blocks have it. Blocks that conversations share have none: each replica has them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from server_capacity.planning.users.workload import Session, Turn
    from server_capacity.search.limits import Limit

TIMES = ("response_time", "latency", "ttft", "tpot", "session")
"""Those that a limit which is simulated may be on."""
MOST_ENGINES = 8
"""More replicas are not loaded more unevenly by chance."""
_SEED = 17
_NEVER = 1 << 62


@dataclass(slots=True)
class Outcome:
    """The conversations that were measured: of each limit how many turns or sessions it had, and how many over it."""

    of: list[int]
    over: list[int]
    sessions: int = 0
    tokens: int = 0
    cached: int = 0
    seconds: float = 0.0

    @property
    def hit_rate(self) -> float:
        """The share of the input tokens that were in the cache."""
        return self.cached / self.tokens if self.tokens else 0.0

    @property
    def sessions_per_s(self) -> float:
        """Those that ended, a second."""
        return self.sessions / self.seconds if self.seconds else 0.0

    def meets(self, limits: Sequence[Limit]) -> bool:
        """Tells whether no limit has more over it than it allows."""
        return all(over <= limit.allowed * of for of, over, limit in zip(self.of, self.over, limits, strict=True))

    def add(self, limits: Sequence[Limit], times: Mapping[str, float], turn: int = 0) -> None:
        """Count the times of a turn, or of a session, with the limits that are on them."""
        for place, limit in enumerate(limits):
            value, bound, turns = times.get(limit.metric), limit.bound_s, limit.turns
            if value is None or bound is None or not (turns is None or turns.first <= turn <= turns.last):
                continue
            self.of[place] += 1
            self.over[place] += value > bound or (limit.strict and value == bound)


@dataclass(eq=False, slots=True)
class _Open:
    """A conversation: its turns, the engine that it began on, its next turn, when that is due, and its blocks."""

    turns: Session
    engine: Engine
    due_ns: int
    begun_ns: int
    place: int = 0
    blocks: list[int] = field(default_factory=list)


class Replicas:
    """So many ``users`` on each of so many ``replicas``: where a conversation ends, its user begins another one.

    ``aware``: the router continues a conversation where it began; else each turn goes to any replica. ``way_s``: the
    time that a client sees beyond the engine's in each turn.
    """

    def __init__(
        self,
        rules: EngineRules,
        sessions: Sequence[Session],
        limits: Sequence[Limit],
        *,
        way_s: float = 0.0,
        replicas: int = 1,
        aware: bool = False,
    ) -> None:
        self._engines = [Engine(rules) for _ in range(min(replicas, MOST_ENGINES))]
        self._sessions, self._limits, self._block = sessions, limits, rules.block_size
        self._way_s, self._aware = way_s, aware
        self._labels = 1 if aware else -(-replicas // len(self._engines))
        self._draws, self._routes = random.Random(_SEED), random.Random(_SEED + 1)
        self._events: list[tuple[int, int, _Open | None]] = []
        self._orders, self._names = count(), count(1)
        self._sent: dict[TokenJob, _Open] = {}
        self._served = Outcome([0] * len(limits), [0] * len(limits))
        self._ended = 0
        self._warm_ns: int | None = None

    def run(self, users: int, measured: int) -> Outcome:
        """So many conversations. Half as many before them do not count, nor does the time of the first two of each."""
        users *= len(self._engines)
        spread_s = sum(turn.think_s for session in self._sessions for turn in session) / len(self._sessions) + 1.0
        for place in range(users):
            heappush(self._events, (round(place * spread_s / users * NS), next(self._orders), None))
        before, now = max(measured // 2, 2 * users), 0
        while self._served.sessions < measured:
            now = self._step()
            if self._warm_ns is None and self._ended >= before:
                self._warm_ns = now
        assert self._warm_ns is not None
        self._served.seconds = (now - self._warm_ns) / NS
        return self._served

    def _step(self) -> int:
        """The next event; its instant."""
        event = self._events[0][0] if self._events else _NEVER
        steps = [(at, place) for place, engine in enumerate(self._engines) if (at := engine.next_ns()) is not None]
        step, place = min(steps, default=(_NEVER, 0))
        if step <= event:
            for job in self._engines[place].take_ready(step):
                self._finish(job)
            return step
        at, _, session = heappop(self._events)
        self._send(at, session or self._begin(at))
        return at

    def _begin(self, now: int) -> _Open:
        return _Open(self._draws.choice(self._sessions), self._routes.choice(self._engines), now, now)

    def _send(self, now: int, session: _Open) -> None:
        turn = session.turns[session.place]
        job = TokenJob(turn.prompt, turn.output, self._chain(session, turn), turn.output)
        self._sent[job] = session
        session.due_ns = now
        engine = session.engine if self._aware else self._routes.choice(self._engines)
        engine.offer(now, job)

    def _chain(self, session: _Open, turn: Turn) -> list[int]:
        """The names of the blocks of a turn's text; those of the conversation have the replica that it is sent to."""
        size, label = self._block, self._routes.randrange(self._labels)
        if not session.place:
            session.blocks = [-1 - block for block in range(turn.cached // size)]
        kept = session.blocks[: turn.cached // size]
        new = (turn.prompt + turn.output) // size - len(kept)
        session.blocks = kept + [next(self._names) for _ in range(new)]
        return [name if name < 0 else name * self._labels + label for name in session.blocks]

    def _finish(self, job: TokenJob) -> None:
        session = self._sent.pop(job)
        assert job.first_token_ns is not None
        assert job.finish_ns is not None
        session.place += 1
        if self._warm_ns is not None:
            self._count(session, job, job.first_token_ns, job.finish_ns)
        if session.place < len(session.turns):
            think_s = session.turns[session.place].think_s + self._way_s
            heappush(self._events, (job.finish_ns + round(think_s * NS), next(self._orders), session))
            return
        self._ended += 1
        heappush(self._events, (job.finish_ns, next(self._orders), None))

    def _count(self, session: _Open, job: TokenJob, first_ns: int, finish_ns: int) -> None:
        """Count the times of a turn, and of its session where that is over."""
        latency = (finish_ns - session.due_ns) / NS + self._way_s
        times = {"ttft": (first_ns - session.due_ns) / NS + self._way_s, "latency": latency, "response_time": latency}
        if job.output > 1:
            times["tpot"] = (finish_ns - first_ns) / NS / (job.output - 1)
        served = self._served
        served.tokens += job.prompt
        served.cached += job.cached or 0
        served.add(self._limits, times, session.place)
        if session.place == len(session.turns):
            served.sessions += 1
            served.add(self._limits, {"session": (finish_ns - session.begun_ns) / NS + self._way_s})
