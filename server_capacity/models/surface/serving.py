"""The rate at which an engine just meets limits when all requests have the same lengths, simulated. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.plan.stage import MAX_RATE
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from inference_benchmarker.records.columns import Floats, Mask
    from server_capacity.models.surface.lengths import Lengths
    from server_capacity.search.limits import Limit

SIMULATED = ("response_time", "latency", "ttft", "tpot")
"""The metrics of limits that a simulated request has."""
REQUESTS, TIMES = 600, 50
"""Simulated at each rate: so many requests, and those of so many times that one may take or that one alone takes."""
MOST_TIMES = 5
"""Times ``REQUESTS``, at most."""
SETTLING = 0.2
"""The share of them that come before the engine is as busy as later."""
NEAR, STEP, CLOSE = 1.04, 2.0, 1.01
"""Of rates: to the next one that is tried at first and at most, and between those that are taken for the same."""
LEAST = 0.01
"""Of the rate of requests one after the other: what is not kept there is not kept at all."""
_FOR_EVER = 1 << 62


class Load(NamedTuple):
    """The most answers that are generated at a time, and the most tokens in all their contexts."""

    answers: int
    context: float


class Capacity(NamedTuple):
    """Requests/s, 0 where a request alone is over a limit; and the load of the engine there."""

    rate: float
    load: Load


@dataclass(frozen=True, slots=True)
class Answered:
    """Requests in order of arrival, in seconds. ``answer``: the tokens of each answer."""

    arrived: Floats
    first: Floats
    last: Floats
    answer: int

    def take(self, which: Mask) -> Answered:
        """Some of them."""
        return Answered(self.arrived[which], self.first[which], self.last[which], self.answer)

    def times(self, metric: str, way_s: float) -> Floats:
        """Seconds of a metric, for a client that is ``way_s`` away."""
        if metric == "tpot":
            return (self.last - self.first) / max(self.answer - 1, 1)
        return (self.first if metric == "ttft" else self.last) - self.arrived + way_s

    def load(self, prompt: int) -> Load:
        """The load of the engine that answered them: an answer grows evenly from its first instant to its last."""
        at, seconds = np.concatenate([self.first, self.last]), np.maximum(self.last - self.first, 1e-9)
        order, pace = np.argsort(at, kind="stable"), self.answer / seconds
        answers, grown, begun = (
            np.cumsum(np.concatenate([each, -each])[order]) for each in (np.ones(len(pace)), pace, pace * self.first)
        )
        before_next = (prompt * answers + grown * np.append(at[order][1:], at.max()) - begun).max()
        return Load(int(answers.max()), float(before_next))


def serve(rules: EngineRules, lengths: Lengths, arrived_s: Floats) -> Answered:
    """Requests of the same lengths at these instants, all of them answered."""
    engine, jobs = Engine(rules), []
    for at in np.rint(arrived_s * NS).astype(int).tolist():
        jobs.append(engine.offer(at, TokenJob(lengths.prompt, lengths.answer, (), lengths.answer)))
        engine.take_ready(at)
    engine.take_ready(_FOR_EVER)
    instants = np.array([(job.arrival_ns, job.first_token_ns, job.finish_ns) for job in jobs], np.float64) / NS
    arrived, first, last = instants.T
    return Answered(arrived, first, last, lengths.answer)


@dataclass(frozen=True, slots=True)
class Server:
    """An engine, the limits that it is to meet, and the time that a client sees beyond the engine's."""

    rules: EngineRules
    limits: tuple[Limit, ...]
    way_s: float

    def capacity(self, lengths: Lengths, seed: int, near: float | None = None) -> Capacity:
        """The rate of random arrivals at which it just meets the limits: the same arrivals, further apart or closer.

        ``near``: it is probably about there.
        """
        alone_s = float(serve(self.rules, lengths, np.zeros(1)).last[0])
        long_s = max([alone_s, *(limit.bound_s or 0.0 for limit in self.limits if limit.metric != "tpot")])

        def served(rate: float) -> Answered:
            number = max(REQUESTS, round(min(TIMES * long_s * rate, MOST_TIMES * REQUESTS)))
            gaps = np.random.default_rng(seed).exponential(size=number)
            return serve(self.rules, lengths, np.cumsum(gaps) / rate)

        def keeps(rate: float) -> bool:
            return not self._is_over(served(rate))

        low, high = _around(keeps, near or 1 / alone_s, NEAR if near else STEP, LEAST / alone_s)
        while high > CLOSE * low > 0:
            middle = float(np.sqrt(low * high))
            low, high = (middle, high) if keeps(middle) else (low, middle)
        return Capacity(low, served(low).load(lengths.prompt)) if low else Capacity(0.0, Load(0, 0.0))

    def _is_over(self, served: Answered) -> bool:
        """Tells whether more are over any limit than it allows; the first requests found a quieter engine."""
        settled = served.take(np.arange(len(served.first)) >= SETTLING * len(served.first))
        return any(
            np.mean(settled.times(limit.metric, self.way_s) > limit.bound_s) > limit.allowed
            for limit in self.limits
            if limit.bound_s is not None
        )


def _around(keeps: Callable[[float], bool], rate: float, step: float, least: float) -> tuple[float, float]:
    """A rate that keeps the limits, 0 where that is below the least, and a higher one that does not."""
    up = keeps(rate)
    while least < rate < MAX_RATE:
        before, rate = rate, rate * step if up else rate / step
        if keeps(rate) != up:
            return (before, rate) if up else (rate, before)
        step = min(step * step, STEP)
    return (rate, rate) if up else (0.0, rate)
