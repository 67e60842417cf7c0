"""The numbers of each host of a wave, and by how much one of them is worse than the others. Pure.

Each is of differences on one host's own clock, so no offset and no uncertainty is in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.summary.statistics.student_t import student_t
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.hosts import HostFacts
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.summary.statistics.distribution import Distribution

BLOCKS = 20
FEWEST_BLOCKS = 6
IN_A_BLOCK = 10  # requests of a host, on average
CONFIDENCE = 0.98  # of an interval with two sides: a host is called worse without cause once in a hundred waves
WORSE_BY = 0.2
_LEAST_NS = 1_000.0  # of a latency whose logarithm is taken


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much a host's value is above the others'. ``share``: of theirs; ``at_least``: the interval's lower end."""

    mine: float
    others: float
    share: float
    at_least: float

    @property
    def is_worse(self) -> bool:
        """Tells whether it is worse by more than a fifth, beyond noise."""
        return self.at_least > WORSE_BY


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host's part of a wave; times in seconds.

    ``lag`` of all it sent, ``latency`` of its ok requests, and by how much each is above the other hosts'. None where
    requests were counted, or there is too little to tell it from noise.
    """

    host: HostFacts
    ledger: Ledger
    lag: Distribution | None
    latency: Distribution | None
    more_lag: Excess | None = None
    more_latency: Excess | None = None


class HostsGathered:
    """Gathers the requests of each host, in blocks of the wave's time: what all hosts see at one time cancels out."""

    columns = ("worker", "outcome", "due", "sent", "done", "build_ns")

    def __init__(self, facts: WaveFacts) -> None:
        self._facts = facts
        hosts = len(facts.hosts)
        self._host_of = np.zeros(facts.plan.workers, np.int64)
        for place, host in enumerate(facts.hosts):
            self._host_of[list(host.workers)] = place
        fewest = min((_ledger(facts, host).sent for host in facts.hosts), default=0)
        self._blocks = min(BLOCKS, fewest // IN_A_BLOCK)
        self._length_ns = max(facts.window.planned_ns or facts.window.duration_ns, 1)
        self._lag = _Blocks(hosts, self._blocks)
        self._latency = _Blocks(hosts, self._blocks)
        self._tallies = [(StreamingHistogram(), StreamingHistogram()) for _ in range(hosts)]

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        host, ok = self._host_of[part.int("worker")], part.outcome("ok")
        lag = (part.int("sent") - part.int("build_ns") - part.int("due")) / NS
        latency = (part.int("done") - part.int("sent")) / NS
        for place, (lags, latencies) in enumerate(self._tallies):
            mine = host == place
            lags.add(lag[mine])
            latencies.add(latency[mine & ok])
        if self._blocks:
            block = np.clip(part.int("due") * self._blocks // self._length_ns, 0, self._blocks - 1)
            self._lag.add(host, block, lag)
            self._latency.add(host[ok], block[ok], np.log(np.maximum(latency[ok], _LEAST_NS / NS)))

    def rows(self) -> tuple[HostRow, ...]:
        """A row a host."""
        return tuple(self._row(place, host) for place, host in enumerate(self._facts.hosts))

    def _row(self, place: int, host: HostFacts) -> HostRow:
        lag, latency = (tally.distribution() for tally in self._tallies[place])
        return HostRow(
            host,
            _ledger(self._facts, host),
            lag,
            latency,
            None if not self._facts.paced else self._lag.excess(place),
            None if _own_payloads(self._facts) else self._latency.excess(place, logarithms=True),
        )


class _Blocks:
    """Sums and numbers of values by host and block."""

    def __init__(self, hosts: int, blocks: int) -> None:
        self._shape = (hosts, blocks)
        self._sums = np.zeros(self._shape)
        self._numbers = np.zeros(self._shape)

    def add(self, host: Int64, block: Int64, values: Floats) -> None:
        cells, size = host * self._shape[1] + block, math.prod(self._shape)
        self._sums += np.bincount(cells, values, size).reshape(self._shape)
        self._numbers += np.bincount(cells, minlength=size).reshape(self._shape)

    def excess(self, place: int, *, logarithms: bool = False) -> Excess | None:
        """A host's mean against that of all others, block by block: Student's interval of the mean difference.

        Of ``logarithms`` the difference is that of geometric means, so that a few slow answers decide nothing; else of
        means, in shares of the others'. None where there are too few blocks with requests of both, or one host.
        """
        mine, number = self._sums[place], self._numbers[place]
        others, of_others = self._sums.sum(axis=0) - mine, self._numbers.sum(axis=0) - number
        both = (number > 0) & (of_others > 0)
        count = int(both.sum())
        if count < FEWEST_BLOCKS:
            return None
        mean, other_mean = mine[both] / number[both], others[both] / of_others[both]
        middle, other_middle = float(mean.mean()), float(other_mean.mean())
        differences = mean - other_mean
        if not logarithms:
            if other_middle <= 0:
                return None
            differences = differences / other_middle
        step = float(differences.mean())
        error = float(differences.std(ddof=1)) / math.sqrt(count)
        low = step - student_t(_confidence(self._shape[0]), count - 1) * error
        if logarithms:
            return Excess(math.exp(middle), math.exp(other_middle), math.expm1(step), math.expm1(low))
        return Excess(middle, other_middle, step, low)


def host_rows(facts: WaveFacts) -> tuple[HostRow, ...]:
    """A row a host; of a wave whose requests were counted it has what was sent alone."""
    if not facts.hosts or facts.counts is not None:
        return tuple(HostRow(host, _ledger(facts, host), None, None) for host in facts.hosts)
    gathered = HostsGathered(facts)
    gather(facts.records, gathered)
    return gathered.rows()


def _ledger(facts: WaveFacts, host: HostFacts) -> Ledger:
    return sum((facts.ledgers[number] for number in host.workers), Ledger())


def _confidence(hosts: int) -> float:
    """Of an interval, so that all hosts together are as rarely called worse without cause as one (Bonferroni)."""
    return 1 - (1 - CONFIDENCE) / max(hosts, 1)


def _own_payloads(facts: WaveFacts) -> bool:
    """Tells whether hosts send payloads of their own: then their latencies differ by what they send.

    Arrival i has payload i mod n and worker i mod W: with a common divisor, a worker sends some of them alone.
    """
    payloads, load = facts.environment.get("payloads"), facts.plan.load
    if isinstance(load, OpenLoop) and load.arrivals == "poisson":  # whose hosts are drawn
        return False
    return isinstance(payloads, int) and math.gcd(payloads, facts.plan.workers) > 1
