"""Tells of a stretch whether this client was its limit: late, at its CPU's limit, or out of places for requests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inference_benchmarker.records.record import Ledger
from inference_benchmarker.verdict.client.evidence import Evidence
from inference_benchmarker.verdict.client.lateness import SPOILING_S, Lateness, changed_by_lag, limits_spoilt
from inference_benchmarker.verdict.client.network import CONNECTION_POOL, LOCK_WAIT, clear_until_ns
from inference_benchmarker.verdict.client.worker import (
    CPU_LIMIT,
    LAG_FLOOR_S,
    LAG_SHARE_OF_LATENCY,
    LATE_ARRIVALS,
    SCHEDULE_LAG,
)
from inference_benchmarker.wave.spool.host_states import HostStates
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.search.stretch import CLIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.feed import Feed
    from inference_benchmarker.records.histogram import Histogram
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.confirmed import Judgement
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.answer import Answer
    from server_capacity.search.limits import Limit

    Judge = Callable[[Counted], Sequence[Judgement]]
    """Judges each limit of a question, those on values of the user's own last."""

LATE_SHARE = 0.01
LEAST_LATE = 3
"""Fewer late arrivals than make a wave INVALID: a stretch is repeated at little cost, and a late one that is believed
moves the answer."""
LAG_SHARE_OF_BOUND, MOST_SHARE_OF_BOUND = 0.1, 0.25
"""Of the shortest time that is limited: what is late by less changes little, by more it may break the limit itself."""
LEAST_LIMIT_S = 0.001
_WORDS = {"fails": "missed", "cannot_tell": "undecided", "holds": "met"}
FROM_FIRST = "tpot"
"""A time from the first token to the last, over their number: it is no longer for a request that was sent late."""
LEAST_CPU_S = 3.0
"""Seconds over which a worker's CPU is looked at: a report is half a second old."""


def lag_limit_s(question: Question, median_s: float) -> float:
    """The lag that is too much beside answers of this median, and beside the limits."""
    usual = max(LAG_FLOOR_S, LAG_SHARE_OF_LATENCY * median_s)
    times = (each for limit in question.limits for each in _times_of(question, limit))
    bounds = [bound_s for metric, bound_s in times if metric != FROM_FIRST]
    if not bounds:
        return usual
    return min(max(usual, LAG_SHARE_OF_BOUND * min(bounds)), max(MOST_SHARE_OF_BOUND * min(bounds), LEAST_LIMIT_S))


def spoilt(question: Question, wave: Wave, judge: Judge) -> str:
    """Why an ordinary wave shows nothing of its endpoint, in the words of its findings; empty where it does.

    Late arrivals spoil it even where they are no evidence against the client: a search sends the wave again, unless
    every limit was kept in spite of them. So do the few of a pause that alone violate a limit, or make one look
    violated that would be undecided.
    """
    lag, typical = wave.summary.lag, wave.summary.ttft or wave.summary.latency
    for finding in wave.verdict.findings:
        if finding.code in (SCHEDULE_LAG, LATE_ARRIVALS) and lag is not None and typical is not None:
            is_long = lag.percentile(99) > lag_limit_s(question, typical.percentile(50))
            if is_long or limits_spoilt(wave, wave.summary):
                return f"schedule lag {finding.measured}"
        elif finding.severity == "invalid":
            return finding.named
    changed = changed_judgements(question, wave, judge).items()
    found = ((place, pair) for (_, place), pair in changed if pair[0] != "holds")
    return next((_changed(question, wave, place, *pair) for place, pair in found), "")


def changed_judgements(
    question: Question, wave: Wave, judge: Judge
) -> dict[tuple[int, int], tuple[Judgement, Judgement]]:
    """By stage and place among the limits the judgement with this client's lag and without it, where they differ."""

    def judgements(facts: WaveFacts) -> dict[tuple[int, int], Judgement]:
        stages = count_stages(facts, question.limits, question.user_limits)
        return {(number, place): each for number, of in enumerate(stages) for place, each in enumerate(judge(of))}

    return changed_by_lag(wave, wave.summary, judgements)


def void_if_late(question: Question, wave: Wave, stages: Sequence[Counted], judge: Judge) -> list[Counted]:
    """The stages of a search's wave; one that violates a limit with this client's lag and meets it without is void.

    Of which requests a lag was is known only once the wave is over.
    """
    changed = changed_judgements(question, wave, judge).items()
    late = {
        number: question.every_limit[place].expression
        for (number, place), pair in changed
        if pair == ("fails", "holds")
    }
    return [
        replace(each, stretch=replace(each.stretch, void=f"{CLIENT}: {late[number]} is met without its lag"))
        if number in late and not each.stretch.void
        else each
        for number, each in enumerate(stages)
    ]


def _changed(question: Question, wave: Wave, place: int, seen: Judgement, rest: Judgement) -> str:
    late, limit = Lateness.of(wave, SPOILING_S), question.every_limit[place]
    return f"schedule lag {late.text}; {limit.expression} is {_WORDS[seen]} with that lag and {_WORDS[rest]} without it"


def late_alone(question: Question, wave: Wave) -> bool:
    """Tells whether the client was late at worst, where lateness counts as the endpoint's.

    Response times have it in them, and what is sent in clumps waits longer: it speaks against a rate, never for it.
    """
    codes = {finding.code for finding in wave.verdict.findings if finding.severity == "invalid"}
    timed = (metric for limit in question.limits for metric, _ in _times_of(question, limit))
    return codes <= {SCHEDULE_LAG} and all(metric == "response_time" for metric in timed)


@dataclass(frozen=True, slots=True)
class Queueing:
    """Requests queued within this client, for a connection or a lock, from a rate on; ``reason`` says for which."""

    rate: float
    reason: str


def queueing(wave: Wave, stages: Sequence[Counted]) -> Queueing | None:
    """From which rate of an adaptive wave on requests queued within this client, before the endpoint fell behind."""
    clear_ns = clear_until_ns(Evidence(wave, wave.summary))
    waits = [each for each in wave.verdict.findings if each.code in (CONNECTION_POOL, LOCK_WAIT)]
    if clear_ns is None or not waits:
        return None
    nobody = (
        wave.verdict.limited_by is None and waits[0].code == LOCK_WAIT
    )  # a lock queues before anything falls behind
    if wave.verdict.limited_by != "client" and not nobody:
        return None
    begun = [stage.stretch.rate for stage in stages if stage.stretch.rate and stage.stretch.start_s * NS <= clear_ns]
    return Queueing(begun[-1] if begun else 0.0, f"{CLIENT}: {waits[0].measured}")


def without_queueing(answer: Answer, seen: Queueing | None) -> Answer:
    """The answer; where requests queued within this client at its rates already, only that the endpoint takes as much.

    What the client's own queue made of the times is no limit of the endpoint, and where none was violated it may
    be why.
    """
    if seen is None or answer.outcome == "not_kept":
        return answer
    if answer.interval is None:
        return answer if answer.outcome == "at_least" else replace(answer, reason=seen.reason)
    if seen.rate > answer.interval.high:
        return answer
    least = answer.interval.low
    return replace(answer, outcome="at_least", rate=None, interval=None, at_least=least, reason=seen.reason)


class ClientWatch:
    """Watches the client through the stretches of a wave; ``begin`` when another one does."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._before = Ledger()
        self._hosts = HostStates()
        self._of_workers: list[Ledger] = []
        self._cpu: list[tuple[int, float]] = []

    def begin(self, spool_state: SpoolState) -> None:
        """Another stretch begins: what was dropped or used until now is not its."""
        self._before, self._hosts = spool_state.ledger, spool_state.hosts
        self._of_workers = self._ledgers(spool_state)
        self._cpu = [(worker.at, worker.use.get("cpu_s", 0.0)) for worker in spool_state.workers]

    def reason(self, spool_state: SpoolState, stage: int, seconds: float) -> str:
        """Why the stretch that runs, for so many seconds by now, counts for nothing; empty where it does."""
        if (dropped := spool_state.ledger.dropped - self._before.dropped) > 0:
            return (
                f"{CLIENT}: {self._where(spool_state, 'dropped')}{dropped:,} arrivals were dropped at the limit "
                "of requests in flight"
            )
        if spool_state.ledger.late_changes > self._before.late_changes:
            where = self._where(spool_state, "late_changes")
            return f"{CLIENT}: {where}a worker received a change of the rate too late"
        if late := self.late(spool_state.feed, stage):
            return late
        return self._busy(spool_state) if seconds >= LEAST_CPU_S else ""

    def late(self, feed: Feed, stage: int) -> str:
        """Why requests of a stretch were sent too late to count; empty where they were not."""
        cell = feed.stage(stage)
        lag = cell.times.get("lag")
        if lag is None or not lag.count:
            return ""
        typical = cell.times.get("ttft") or cell.times.get("latency")
        limit_s = lag_limit_s(self._question, 0.0 if typical is None else typical.percentile(50) or 0.0)
        tolerated = [(limit_s, LATE_SHARE), *_rare(self._question)]
        too_late = ((by_s, most) for by_s, most in tolerated if _late(lag, by_s) >= max(LEAST_LATE, most * lag.count))
        if (found := next(too_late, None)) is None:
            return ""
        limit_s, most = found
        p99 = duration_text(lag.percentile(99) or 0.0)
        hosts = [name for name, its in feed.lags(stage).items() if _late(its, limit_s) >= most * its.count]
        share = f"{percent_text(_late(lag, limit_s) / lag.count)} of the requests (allowed: {percent_text(most)})"
        return (
            f"{CLIENT}: {_names(hosts)}it sent {share} more than {duration_text(limit_s)} late (p99 schedule lag {p99})"
        )

    def _busy(self, spool_state: SpoolState) -> str:
        for number, (worker, (at, cpu_s)) in enumerate(zip(spool_state.workers, self._cpu, strict=False)):
            elapsed_s = (worker.at - at) / NS
            share = (worker.use.get("cpu_s", 0.0) - cpu_s) / elapsed_s if elapsed_s >= LEAST_CPU_S / 2 else 0.0
            if share > CPU_LIMIT:
                return f"{CLIENT}: {self._on(number)}worker {number} used {percent_text(share, CPU_LIMIT)} of a core"
        return ""

    def _ledgers(self, spool_state: SpoolState) -> list[Ledger]:
        """The workers' ledgers, where they are asked for a host's sake."""
        return [worker.ledger for worker in spool_state.workers] if self._question.plan.hosts else []

    def _where(self, spool_state: SpoolState, key: str) -> str:
        """The words before a count that has grown in the stretch: the hosts whose workers it is of."""
        pairs = zip(self._ledgers(spool_state), self._of_workers, strict=False)
        grown = [number for number, (now, then) in enumerate(pairs) if getattr(now, key) > getattr(then, key)]
        return self._on(*grown)

    def _on(self, *workers: int) -> str:
        """The words before what was seen of these workers: their hosts, where the wave has any."""
        return _names(filter(None, map(self._hosts.name_of, workers)))


def _rare(question: Question) -> Iterator[tuple[float, float]]:
    """The lag that may break a limit of which fewer requests than LATE_SHARE decide, and their share."""
    for limit in question.limits:
        decide = limit.allowed * _share_of_turns(question, limit)
        for metric, bound_s in _times_of(question, limit):
            if metric != FROM_FIRST and decide < LATE_SHARE:
                yield max(MOST_SHARE_OF_BOUND * bound_s, LEAST_LIMIT_S), decide


def _times_of(question: Question, limit: Limit) -> list[tuple[str, float]]:
    """The times that a limit bounds, and where; goodput has as many as a good request."""
    if limit.metric == "goodput":
        return [(each.metric, each.limit) for each in question.plan.goodput]
    return [] if limit.bound_s is None else [(limit.metric, limit.bound_s)]


def _share_of_turns(question: Question, limit: Limit) -> float:
    """About the share of all requests that a limit is on: one on some turns only is decided by as many fewer."""
    if limit.turns is None or question.sessions is None:
        return 1.0
    turns = max(question.sessions.turns, 1.0)
    return min(max(min(limit.turns.last, turns) - limit.turns.first + 1, 1.0) / turns, 1.0)


def _late(lag: Histogram, limit_s: float) -> int:
    return lag.count - round((lag.share_below(limit_s) or 0.0) * lag.count)


def _names(hosts: Iterable[str]) -> str:
    """The words before what was seen of these hosts."""
    names = dict.fromkeys(hosts)
    return f"{', '.join(names)}: " if names else ""
