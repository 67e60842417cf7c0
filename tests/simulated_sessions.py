"""Sessions of six kinds on the embedded LLM engine in virtual time, and searches for how many it serves."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.track import Track
from server_capacity.search.estimate import answer as answer_of_queue
from server_capacity.search.keeping_up import SLOWER as USUALLY_SLOWER
from server_capacity.search.keeping_up import slower_of
from server_capacity.search.limits import limits_of
from server_capacity.search.search import Moment, Search
from server_capacity.search.session_answer import answer_in_sessions
from server_capacity.search.sessions import SessionSearch
from server_capacity.search.settings import Settings, time_for
from server_capacity.search.stretch import Count, Slice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from server_capacity.search.answer import Answer
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

    Counted = Callable[[Sequence[Limit]], tuple[Stretch, ...]]

_MOST_BLOCKS = 1 << 20
SLOWER = 4
"""Times the lengths of the profile's steps: so many fewer sessions are simulated."""


class Turn(NamedTuple):
    """New tokens of the prompt and those of the answer, and the time thought before it (seconds)."""

    tokens: int
    output: int
    think_s: float


@dataclass(frozen=True, slots=True)
class Kind:
    """``drawn``: the turns of a session. ``truth``: the sessions/s at which it just meets ``slo`` in the long run.

    ``shared``: tokens that all sessions of each of some ``groups`` begin with. ``block_size``: larger where contexts
    are long, which spares time. ``single``: they are requests, of which a search does not look at overload.
    ``slower``: times the lengths of the profile's steps.
    """

    drawn: Callable[[random.Random], list[Turn]]
    slo: str
    truth: float = 0.0
    kv_tokens: int = 426_784
    shared: int = 0
    groups: int = 1
    block_size: int = 16
    single: bool = False
    slower: int = SLOWER

    @property
    def rules(self) -> EngineRules:
        """The engine's."""
        fast, times = PROFILES["8b-h100"], self.slower
        square, each, base = fast.prefill_ms
        a, b, c, d = fast.step_ms
        prefill_ms, step_ms = (times * square, times * each, times * base), (times * a, times * b, times * c, d)
        return replace(
            fast, kv_tokens=self.kv_tokens, block_size=self.block_size, prefill_ms=prefill_ms, step_ms=step_ms
        )

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits of a search."""
        return limits_of([Slo.parse(self.slo)], 0.95, of_sessions=True)


def _chat(draws: random.Random) -> list[Turn]:
    return [
        Turn(draws.randrange(50, 400), draws.randrange(20, 120), draws.expovariate(1 / 3))
        for _ in range(draws.randint(2, 6))
    ]


def _documents(draws: random.Random) -> list[Turn]:
    first = Turn(draws.randrange(4000, 20_000), draws.randrange(50, 200), 0.0)
    more = [Turn(draws.randrange(30, 100), draws.randrange(50, 200), draws.expovariate(1 / 4)) for _ in range(2)]
    return [first, *more]


def _agent(draws: random.Random) -> list[Turn]:
    turns = [Turn(draws.randrange(100, 500), draws.randrange(10, 40), draws.lognormvariate(0, 1)) for _ in range(20)]
    return [turns[0]._replace(tokens=1500), *turns[1:]]


def _tools(draws: random.Random) -> list[Turn]:
    turns = [Turn(draws.randrange(100, 500), draws.randrange(10, 40), draws.lognormvariate(0, 0.7)) for _ in range(8)]
    return [turns[0]._replace(tokens=1500), *turns[1:]]


def _assistant(draws: random.Random) -> list[Turn]:
    return [Turn(draws.randrange(20, 400), draws.randrange(30, 150), draws.expovariate(1 / 3)) for _ in range(5)]


def _mixed(draws: random.Random) -> list[Turn]:
    number = min(20, 1 + int(draws.expovariate(1 / 4)))
    return [
        Turn(
            round(min(12_000, draws.lognormvariate(5.5, 1.2))) + 1,
            round(min(600, draws.lognormvariate(4, 1))) + 1,
            draws.expovariate(1 / 3),
        )
        for _ in range(number)
    ]


def _answers(draws: random.Random) -> list[Turn]:
    return [Turn(200, round(min(600.0, max(20.0, draws.lognormvariate(4.6, 0.8)))), 0.0)]


KINDS = {
    "short chat": Kind(_chat, "latency.p95<6s", truth=1.31),
    "long documents": Kind(_documents, "turn1.ttft.p95<6s", truth=0.23, block_size=64),
    "agents of 20 turns": Kind(_agent, "latency.p95<3s", truth=0.2143, block_size=64),
    "shared system prompt": Kind(_assistant, "latency.p95<8s", truth=0.513, shared=2000, groups=4),
    "mixed lengths": Kind(_mixed, "latency.p95<12s", truth=0.43),
    "requests 200x50": Kind(lambda _: [Turn(200, 50, 0.0)], "tpot.p95<100ms", truth=12.8, single=True),
    "requests 800x141": Kind(lambda _: [Turn(800, 141, 0.0)], "tpot.p95<100ms", truth=4.3, single=True),
    "requests 3200x50": Kind(lambda _: [Turn(3200, 50, 0.0)], "ttft.p95<2s", truth=2.71, single=True),
    "latency of 200x400": Kind(lambda _: [Turn(200, 400, 0.0)], "latency.p95<6s", truth=15.1, single=True, slower=1),
    "latency of 200x50": Kind(lambda _: [Turn(200, 50, 0.0)], "latency.p95<1s", truth=38.5, single=True, slower=1),
    "latency of 800x141": Kind(lambda _: [Turn(800, 141, 0.0)], "latency.p95<2s", truth=10.7, single=True, slower=1),
    "latency of 200x20 to 600": Kind(_answers, "latency.p95<4s", truth=20.5, single=True, slower=1),
    "cache nearly full": Kind(_tools, "ttft.p95<2s", truth=0.248, kv_tokens=40_000),
}


class _Session:
    __slots__ = ("begun_ns", "context", "group", "number", "place", "turns")

    def __init__(self, number: int, begun_ns: int, turns: list[Turn], group: int, shared: int) -> None:
        self.number, self.begun_ns, self.turns, self.group = number, begun_ns, turns, group
        self.context, self.place = shared, 0


class Histories(NamedTuple):
    """Of sessions when each began, each one's end and length; of turns number, due, first token, end, output tokens."""

    begun: list[float]
    ended: list[tuple[float, float]]
    turns: list[tuple[int, float, float, float, int]]


class SessionWave:
    """Sessions that begin at random at a rate, or of which so many are open; steered as a wave is.

    ``turns``: of each that is over its number, due, first token and end (seconds), and output tokens; ``ended``: of
    each session its end and length; ``begun``: when each began.
    """

    def __init__(self, kind: Kind, seed: int, *, in_users: bool = False) -> None:
        self.engine, self._kind, self._in_users = Engine(kind.rules), kind, in_users
        self._arrivals, self._draws = random.Random(f"{seed} arrivals"), random.Random(f"{seed} sessions")
        self._events: list[tuple[int, int, _Session | None]] = []
        self._orders, self._numbers, self._arrival = count(), count(), -1
        self._sent: dict[TokenJob, tuple[_Session, int]] = {}
        self.rate, self._places = 0.0, 0
        self.turns: list[tuple[int, float, float, float, int]] = []
        self.ended: list[tuple[float, float]] = []
        self.begun: list[float] = []

    @property
    def histories(self) -> Histories:
        """Everything that came of it by now."""
        return Histories(self.begun, self.ended, self.turns)

    @property
    def open(self) -> int:
        """Sessions that began and have not ended."""
        return len(self.begun) - len(self.ended)

    def change(self, now_s: float, rate: float, spread_s: float = 0.0) -> None:
        """Another rate or number of sessions from now on; what is more begins evenly over some time."""
        self.rate, now = rate, round(now_s * NS)
        self._arrival = -1
        if not self._in_users:
            self._next_arrival(now)
            return
        more = max(0, int(rate) - self._places)
        self._places += more
        for place in range(more):
            heappush(self._events, (now + round(place * spread_s / more * NS), next(self._orders), None))

    def run_until(self, end_s: float) -> None:
        """Everything that happens by then."""
        end = round(end_s * NS)
        while True:
            event = self._events[0][0] if self._events else end
            step = self.engine.next_ns()
            if min(event, end if step is None else step) >= end:
                return
            if step is not None and step <= event:
                for job in self.engine.take_ready(step):
                    self._finish(job)
            else:
                self._happen(*heappop(self._events))

    def _happen(self, now: int, order: int, session: _Session | None) -> None:
        if session is not None:
            self._send(now, session)
        elif self._in_users:
            self._begin(now)
        elif order == self._arrival:  # else of a rate that is no more
            self._begin(now)
            self._next_arrival(now)

    def _next_arrival(self, now: int) -> None:
        if self.rate:
            self._arrival = next(self._orders)
            heappush(self._events, (now + round(self._arrivals.expovariate(self.rate) * NS), self._arrival, None))

    def _begin(self, now: int) -> None:
        turns, group = self._kind.drawn(self._draws), self._draws.randrange(self._kind.groups)
        self.begun.append(now / NS)
        self._send(now, _Session(next(self._numbers), now, turns, group, self._kind.shared))

    def _send(self, now: int, session: _Session) -> None:
        turn, size = session.turns[session.place], self.engine.rules.block_size
        session.context += turn.tokens
        shared, own = self._kind.shared // size, (session.number + 1) * _MOST_BLOCKS
        chain = [-(session.group * _MOST_BLOCKS + block) - 1 for block in range(shared)]
        chain += [own + block for block in range(shared, (session.context + turn.output) // size)]
        job = TokenJob(session.context, turn.output, chain, turn.output)
        self._sent[job] = session, now
        self.engine.offer(now, job)

    def _finish(self, job: TokenJob) -> None:
        session, due = self._sent.pop(job)
        assert job.first_token_ns is not None
        assert job.finish_ns is not None
        self.turns.append((session.place + 1, due / NS, job.first_token_ns / NS, job.finish_ns / NS, job.output))
        session.context += job.output
        session.place += 1
        if session.place < len(session.turns):
            at = job.finish_ns + round(session.turns[session.place].think_s * NS)
            heappush(self._events, (at, next(self._orders), session))
            return
        self.ended.append((job.finish_ns / NS, (job.finish_ns - session.begun_ns) / NS))
        if self._in_users and self._places > self.rate:
            self._places -= 1
        elif self._in_users:
            heappush(self._events, (job.finish_ns, next(self._orders), None))

    def unfinished(self) -> list[tuple[int, float]]:
        """The turns without an answer: number and due."""
        return [(session.place + 1, due / NS) for session, due in self._sent.values()]


class Slices:
    """What a wave had in each second: as it comes in, or by when turns were due and sessions began."""

    def __init__(
        self,
        wave: Histories,
        limits: Sequence[Limit],
        end_s: float = 0.0,
        unfinished: Sequence[tuple[int, float]] = (),
        *,
        by_due: bool,
    ) -> None:
        number = len(limits)
        self.begun: defaultdict[int, int] = defaultdict(int)
        self.ended: defaultdict[int, list[float]] = defaultdict(list)
        self.counts: defaultdict[int, list[list[int]]] = defaultdict(lambda: [[0, 0] for _ in range(number)])
        for at in wave.begun:
            self.begun[int(at)] += 1
        for at, length in wave.ended:
            self.ended[int(at - length if by_due else at)].append(length)
        for turn, due, first, done, output in wave.turns:
            times = {"ttft": first - due, "latency": done - due, "tpot": (done - first) / max(output - 1, 1)}
            self._add(limits, int(due if by_due else done), turn, times)
        for turn, due in unfinished:
            self._add(limits, int(due), turn, dict.fromkeys(("ttft", "latency"), end_s - due), unfinished=True)

    def _add(
        self, limits: Sequence[Limit], second: int, turn: int, times: dict[str, float], *, unfinished: bool = False
    ) -> None:
        for pair, limit in zip(self.counts[second], limits, strict=True):
            if limit.turns is not None and not limit.turns.first <= turn <= limit.turns.last:
                continue
            over = limit.bound_s is not None and times.get(limit.metric, 0.0) >= limit.bound_s
            if over or not unfinished:
                pair[0] += 1
                pair[1] += over

    def slice(self, second: int) -> Slice:
        """The slice of a second."""
        lengths = self.ended.get(second, [])
        counts = tuple(Count(*pair) for pair in self.counts[second])
        return Slice(second, second + 1, self.begun.get(second, 0), len(lengths), counts, sum(lengths))


class Feed:
    """The last second of a wave, as it comes in."""

    def __init__(self, wave: SessionWave, limits: Sequence[Limit]) -> None:
        self._wave, self._limits, self._seen = wave, limits, (0, 0, 0)

    def slice(self, second: int) -> Slice:
        """What came since the last one."""
        wave = self._wave
        begun, ended, turns = self._seen
        news = Histories(wave.begun[begun:], wave.ended[ended:], wave.turns[turns:])
        self._seen = len(wave.begun), len(wave.ended), len(wave.turns)
        return Slices(news, self._limits, by_due=False).slice(second)


@dataclass(frozen=True, slots=True)
class Searched:
    """A search: its answer, its stretches, and how long a session alone took.

    ``counted``: what it sent itself, against other limits.
    """

    answer: Answer
    stretches: tuple[Stretch, ...]
    session_s: float
    counted: Counted


def session_alone_s(kind: Kind, seed: int, number: int = 8) -> float:
    """The mean length of sessions of which few are open."""
    wave = SessionWave(kind, seed, in_users=True)
    wave.change(0, 2)
    now = 0.0
    while len(wave.ended) < number:
        now += 1.0
        wave.run_until(now)
    return sum(length for _, length in wave.ended) / len(wave.ended)


def searched(
    kind: Kind,
    seed: int,
    lengths: float | None = None,
    *,
    in_users: bool = False,
    session_s: float | None = None,
    earlier: Sequence[Stretch] = (),
) -> Searched:
    """A search for so many lengths of a session alone, or for the command's time; reports come in a second late.

    ``earlier``: what another tier's search sent, with the counts of this one's limits, of which the session's length is
    known, too.
    """
    session_s, limits = session_s or session_alone_s(kind, -1 - seed), kind.limits
    search_s = Settings().load_s(session_s) if kind.single else time_for(session_s)
    settings = Settings(time_s=search_s if lengths is None else lengths * session_s)
    slower = slower_of(limits, session_s / kind.drawn(random.Random(0))[0].output) if kind.single else USUALLY_SLOWER
    search = SessionSearch(limits, settings, session_s, in_users=in_users, single=kind.single, slower=slower)
    counted = _driven(kind, seed, search, in_users=in_users, earlier=earlier)
    stretches = (*earlier, *counted(limits))
    answer = answer_in_sessions(
        limits, settings, stretches, session_s, in_users=in_users, single=kind.single, slower=slower
    )
    return Searched(answer, stretches, session_s, counted)


def searched_as_queue(kind: Kind, seed: int, lengths: float | None = None) -> Searched:
    """The same by the search for a queue's saturation."""
    session_s, limits = session_alone_s(kind, -1 - seed), kind.limits
    settings = Settings(time_s=Settings().load_s(session_s) if lengths is None else lengths * session_s)
    counted = _driven(kind, seed, Search(limits, settings))
    stretches = counted(limits)
    return Searched(answer_of_queue(limits, settings, stretches), stretches, session_s, counted)


def _driven(
    kind: Kind,
    seed: int,
    search: SessionSearch | Search,
    *,
    in_users: bool = False,
    earlier: Sequence[Stretch] = (),
) -> Counted:
    """What a search sent, which is counted by when it was due; it goes on after the ``earlier`` stretches."""
    limits, wave, track = kind.limits, SessionWave(kind, seed, in_users=in_users), Track()
    number, now = (earlier[-1].number + 1, int(earlier[-1].end_s)) if earlier else (0, 0)
    rate = search.resume(earlier) if earlier else search.first_rate
    if rate == "end":
        return lambda _: ()
    wave.change(now, rate)
    track.change(number, now, rate, search.purpose)
    feed = Feed(wave, limits)
    while True:
        now += 1
        wave.run_until(now)
        track.add(number, feed.slice(now - 1))
        stretches = track.stretches(now, wave.open)
        order = search.order(Moment(now, (*earlier, *stretches), wave.open))
        if order == "end":
            break
        if order is not None:
            number += 1
            track.change(number, now, order, search.purpose, wave.open)
            ended = sum(stretch.answered for stretch in stretches)
            wave.change(now, order, sum(stretch.spent_s for stretch in stretches) / max(1, ended))

    def counted(limits: Sequence[Limit]) -> tuple[Stretch, ...]:
        exact = Slices(wave.histories, limits, now, wave.unfinished(), by_due=True)
        slices = ((each, range(int(each.start_s), int(each.end_s))) for each in track.stretches(now, wave.open))
        return tuple(replace(each, slices=tuple(map(exact.slice, seconds))) for each, seconds in slices)

    return counted


def share_over(kind: Kind, seed: int, rate: float, seconds: int, *, in_users: bool = False) -> tuple[float, float]:
    """The share over the first limit at a rate, in the long run, and its standard error by 20 batches."""
    alone_s = session_alone_s(kind, seed)
    wave, begin = SessionWave(kind, seed, in_users=in_users), int(6 * alone_s)
    wave.change(0, rate, alone_s)
    wave.run_until(begin + seconds)
    exact = Slices(wave.histories, kind.limits, begin + seconds, wave.unfinished(), by_due=True)
    counts = [exact.counts[second][0] for second in range(begin, begin + seconds)]
    batches = [counts[place * seconds // 20 : (place + 1) * seconds // 20] for place in range(20)]
    sums = [(sum(of for of, _ in batch), sum(over for _, over in batch)) for batch in batches]
    share = sum(over for _, over in sums) / sum(of for of, _ in sums)
    residuals = sum((over - share * of) ** 2 for of, over in sums)
    return share, math.sqrt(residuals * 20 / 19) / sum(of for of, _ in sums)
