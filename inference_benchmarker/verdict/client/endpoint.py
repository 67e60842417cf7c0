"""Tells whether the endpoint fell behind; asked of the time in which the client was clean. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.verdict.advice import find_what_it_serves
from inference_benchmarker.verdict.client.counted import CountedQuarters, ends_s, last_ok_ns
from inference_benchmarker.verdict.client.flow import Flow
from inference_benchmarker.verdict.client.standstill import Standstill
from inference_benchmarker.verdict.error_kinds import NO_CAPACITY, OF_ONE_GONE
from inference_benchmarker.verdict.finding import Finding
from inference_benchmarker.words.units import NS
from inference_benchmarker.words.wording import duration_text, percent_text, rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Int64, Records
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.summary.by_name import ErrorRow
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.client.evidence import Evidence

SERVER_LIMITED: Final = "server_limited"
ENDPOINT_STALLED: Final = "endpoint_stalled"
LAG_OF_IT = ", at a schedule lag of"
KEPT_UP_SHARE = 0.96
ANSWERED_SHARE = 0.95
LEAST_REQUESTS = 20
LEAST_ERRORS = 4
LEAST_FLOW_ERRORS = 2
STEADY_SHARE = 0.2
FILLED = 2


def endpoint_findings(evidence: Evidence, clean_ns: int | None = None) -> Iterator[Finding]:
    """The endpoint fell behind: fewer requests were completed than arrived, and one of the reasons below was seen.

    ``clean_ns``: from then on something of this client's own may be the reason, so it must have been seen before; None
    where nothing is.
    """
    measured = _fallen_behind(evidence, clean_ns)
    if measured is not None:
        lag = evidence.summary.lag
        clean = "" if lag is None else f"{LAG_OF_IT} p99 {duration_text(lag.percentile(99))}"
        yield Finding(
            SERVER_LIMITED,
            "warning",
            f"{_completed(evidence.summary)}; {measured}{clean}",
            f"{percent_text(KEPT_UP_SHARE)} completed",
            "Requests arrive faster than the endpoint answers, so latency grows with the length of the wave. "
            f"{find_what_it_serves(evidence.facts.plan.load)}To serve more, scale the endpoint.",
        )


def has_kept_up(summary: Summary) -> bool:
    """Tells whether so much was completed that there is no finding, whatever the requests show."""
    return summary.completed_share is None or summary.completed_share >= KEPT_UP_SHARE


def standstill_findings(evidence: Evidence) -> Iterator[Finding]:
    """The endpoint answered nobody for a while, and nothing of this client's own took half as long."""
    found = Standstill.of(evidence.facts)
    if found is None or found.length_s < 2 * _own_delay_s(evidence):
        return
    yield Finding(
        ENDPOINT_STALLED,
        "warning",
        f"the endpoint answered no request for {duration_text(found.length_s)} from second {found.begin_s:.1f} on, "
        f"with {found.waiting:,} requests waiting by the end",
        "a tenth of the wave, and five times any other pause",
        "The requests that waited make up the highest percentiles: check what the endpoint did then (a restart, a "
        "garbage collection, a new instance; its log), and repeat the wave.",
    )


def _own_delay_s(evidence: Evidence) -> float:
    """The longest that this client itself was late, or did not look at its connections."""
    lag = evidence.summary.lag
    loops = [worker.loop_delay.max_s for worker in evidence.workers if worker.loop_delay]
    return max([0.0 if lag is None else lag.maximum, *loops])


def _fallen_behind(evidence: Evidence, clean_ns: int | None) -> str | None:
    """The evidence that the endpoint fell behind while the client was clean."""
    planned_ns = evidence.facts.window.planned_ns
    if clean_ns is not None and planned_ns is not None and clean_ns < planned_ns:
        return _growth(evidence, clean_ns, f" in the first {duration_text(clean_ns / NS)}")
    refused = (_queue_filled(evidence) or _refusals(evidence)) if _completed_less(evidence, ANSWERED_SHARE) else None
    return refused or _growth(evidence, planned_ns, "")


def _completed_less(evidence: Evidence, limit: float) -> bool:
    """Tells whether less than this of the scheduled rate was completed; failures that say nothing of capacity aside."""
    summary = evidence.summary
    share, scheduled = summary.completed_share, summary.ledger.scheduled
    if share is None or not summary.ledger.ok:
        return False
    unrelated = (summary.ledger.failed - sum(row.count for row in _refused_rows(evidence))) / scheduled
    return share < limit * (1 - unrelated)


def _growth(evidence: Evidence, until_ns: int | None, when: str) -> str | None:
    """The growth of latency or of the requests in flight up to an instant, where it is more than chance.

    An endpoint may also begin to fall behind late: then they grew in the second half, and must have grown more.
    """
    if not evidence.facts.open_loop or not until_ns or not _completed_less(evidence, KEPT_UP_SHARE):
        return None
    flow, least = Flow.of(evidence.facts, until_ns), 1 - KEPT_UP_SHARE
    grown = _latency_growth(evidence, until_ns) if flow.share >= least and flow.errors >= LEAST_FLOW_ERRORS else None
    if grown is None and not (flow.share - flow.slow >= least and flow.is_straight):
        flow = Flow.of(evidence.facts, until_ns, until_ns // 2)
        when = " in the second half" + when.replace(" in", " of")
        if not (flow.share - flow.slow >= 2 * least and flow.begins):
            return None
    first, last = flow.in_flight[[0, -1]]
    what = "the requests in flight grew" if grown is None else f"{grown} and the requests in flight"
    return f"{what} from {first:,} to {last:,}{when}"


def _completed(summary: Summary) -> str:
    """The completed part of the scheduled rate: of requests, or of sessions where those are what arrives."""
    sessions, share = summary.sessions, summary.completed_share
    rates, what = (summary.rates, "") if sessions is None else (sessions.rates, " of sessions")
    assert share is not None  # else nobody fell behind
    assert rates.scheduled is not None
    text = percent_text(share, ANSWERED_SHARE, KEPT_UP_SHARE)
    return f"{rate_text(rates.completed)} of {rate_text(rates.scheduled)} completed during the load ({text}{what})"


def _queue_filled(evidence: Evidence) -> str | None:
    """Arrivals were dropped at the cap while requests waited at the endpoint: latency is twice that of the first ones.

    Where it is not, the cap is too low for an endpoint that is just far away or slow.
    """
    ledger = evidence.summary.ledger
    if ledger.dropped <= (1 - ANSWERED_SHARE) * ledger.scheduled:
        return None
    first, last = _first_and_last_s(evidence.facts)
    if last < FILLED * first:
        return None
    return (
        f"latency grew from {duration_text(first)} to {duration_text(last)} with {sum(evidence.facts.caps):,} in flight"
    )


def _first_and_last_s(facts: WaveFacts) -> tuple[float, float]:
    """The median latencies of the first requests and of the last ones."""
    if facts.counts is not None:
        return ends_s(facts.counts.window, LEAST_REQUESTS) or (0.0, -1.0)
    records, number = facts.records, len(facts.records)
    first = _median_latency(records.between(0, LEAST_REQUESTS))
    return first, _median_latency(records.between(max(number - LEAST_REQUESTS, 0), number))


def _median_latency(records: InParts) -> float:
    return float(np.median(np.concatenate([_latency(part) for part in records.parts("sent", "done")])))


def _latency(records: Records) -> Floats:
    seconds: Floats = (records.int("done") - records.int("sent")) / NS
    return seconds


def _latency_growth(evidence: Evidence, until_ns: int) -> str | None:
    """The growth of latency, where it grew so steadily that fewer than 96% of the arrivals can have been answered.

    A first-come first-served queue with arrivals at rate r and answers at rate c < r grows latency by
    s = r/c - 1 seconds a second, so c/r = 1/(1 + s). s is taken from the median latencies of the time's second
    and last quarter. The growth must be four standard errors of their difference, and a fifth of it at least lie on
    either side of the third quarter: a queue that only fills up at first grows no more by then. Abandoned requests
    count with their age, a lower bound.
    """
    found = _quarters(evidence.facts, until_ns)
    if found is None:
        return None
    before, between, after = found.medians
    growth = after - before
    steady = found.is_cut_off or min(between - before, after - between) >= STEADY_SHARE * growth
    slope = found.slope(growth, until_ns / NS / 2)
    if not steady or 1 / (1 + max(slope, 0.0)) >= KEPT_UP_SHARE or growth < LEAST_ERRORS * found.error():
        return None
    return f"latency grew from {duration_text(before)} to {duration_text(after)}"


def _quarters(facts: WaveFacts, until_ns: int) -> _Quarters | CountedQuarters | None:
    if facts.counts is not None:
        return CountedQuarters.of(facts.counts.window, until_ns, LEAST_REQUESTS)
    return _Quarters.of(facts.records, until_ns)


@dataclass(frozen=True, slots=True)
class _Quarters:
    """Latencies of the second, third and last quarter of the time up to an instant, by when requests were due.

    ``is_cut_off``: most of the last were abandoned, whose ages only shrink towards the end.
    """

    records: InParts
    until_ns: int
    counts: tuple[int, ...]
    medians: tuple[float, ...]
    is_cut_off: bool

    @classmethod
    def of(cls, records: InParts, until_ns: int) -> Self | None:
        """None where one of them has too few requests."""
        tallies, abandoned = [StreamingHistogram(), StreamingHistogram(), StreamingHistogram()], 0
        for part in records.parts("due", "sent", "done", "outcome"):
            quarter, latency = _quarter(part, until_ns), _latency(part)
            for number, tally in enumerate(tallies, 1):
                tally.add(latency[quarter == number])
            abandoned += int(np.count_nonzero(part.outcome("abandoned") & (quarter == 3)))
        found = [each for tally in tallies if (each := tally.distribution()) is not None]
        counts = tuple(each.count for each in found)
        if len(found) < len(tallies) or min(counts) < LEAST_REQUESTS:
            return None
        medians = tuple(each.median for each in found)
        return cls(records, until_ns, counts, medians, abandoned > counts[-1] / 2)

    @staticmethod
    def slope(growth_s: float, time_s: float) -> float:
        """The growth of latency for each second of arrivals."""
        return growth_s / time_s

    def error(self) -> float:
        """The standard error of the growth from the second quarter to the last."""
        return math.hypot(self._median_error(0), self._median_error(2))

    def _median_error(self, place: int) -> float:
        """Standard error of a median: sqrt(pi/2) sigma / sqrt(n), sigma as 1.4826 times the median deviation."""
        deviations = StreamingHistogram()
        for part in self.records.parts("due", "sent", "done"):
            mine = _quarter(part, self.until_ns) == place + 1
            deviations.add(np.abs(_latency(part)[mine] - self.medians[place]))
        found = deviations.distribution()
        assert found is not None
        return 1.2533 * 1.4826 * found.median / math.sqrt(self.counts[place])


def _quarter(records: Records, until_ns: int) -> Int64:
    return records.int("due") * 4 // until_ns


def _refusals(evidence: Evidence) -> str | None:
    sent, rows = evidence.summary.ledger.sent, _refused_rows(evidence)
    refused = sum(row.count for row in rows)
    if not sent or refused / sent <= 1 - ANSWERED_SHARE:
        return None
    return f"{refused:,} of {sent:,} requests were refused or timed out ({rows[0].key})"


def _refused_rows(evidence: Evidence) -> list[ErrorRow]:
    """The errors that mean too little capacity; where all is refused from the first one on, the endpoint is gone."""
    rows = [row for row in evidence.summary.errors if NO_CAPACITY.search(row.key)]
    if not any(OF_ONE_GONE.search(row.key) for row in rows):
        return rows
    last_ok_s = _last_ok_s(evidence.facts)
    return [row for row in rows if row.first_s < last_ok_s or not OF_ONE_GONE.search(row.key)]


def _last_ok_s(facts: WaveFacts) -> float:
    """When the last request was sent that was answered, where requests were counted: when it was; 0 without one."""
    if facts.counts is not None:
        return last_ok_ns(facts.counts.window) / NS
    parts = facts.records.parts("sent", "outcome")
    return max((int(part.int("sent")[part.outcome("ok")].max(initial=0)) for part in parts), default=0) / NS
