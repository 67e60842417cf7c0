"""The tokens of a wave, or of a stage of it, as a user and a GPU see them: estimates from one-second blocks. Pure.

Times per token are estimated, and speeds are their inverses: the p90 of such a time is the speed that 90% of the
requests reach. docs/how-to/pareto.md is this module in words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.user_metrics import CACHED_TOKENS, PREFIX
from inference_benchmarker.summary.gathering import gather
from inference_benchmarker.summary.request_times import TIME_COLUMNS, Times, output_tokens, request_times
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram
from inference_benchmarker.words.units import NS
from visualization.comparison.blocks import Values, add_to, blocks_of, lengths
from visualization.comparison.estimates import Percentile, Ratio
from visualization.comparison.intervals import blocks_show_error, error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.columns import Floats, Mask, Records
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.summary.completed_rate import CompletedSpan
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from visualization.comparison.estimates import Estimate

TPOT, PER_TOKEN, GAP = "tpot", "latency_per_token", "gap"
INPUT, CACHED, UNCACHED, OUTPUT, TOTAL = "input", "cached", "uncached", "output", "total"
_CACHED = PREFIX + CACHED_TOKENS
_COLUMNS = tuple(dict.fromkeys(("outcome", *TIME_COLUMNS[TPOT], *TIME_COLUMNS["latency"])))


def estimates_of(facts: WaveFacts, summary: Summary) -> dict[str, Estimate]:
    """The estimates ``tpot.p50``, ``tpot.p90``, ``latency_per_token.p90`` and ``gap`` in seconds, tokens a second.

    Tokens are those of successful requests. ``cached`` and ``uncached`` ones are the parts of ``input``;
    where the server reported none, nobody knows. Of requests that were counted instead of recorded there is nothing.
    """
    if facts.counts is not None:
        return {}
    return {**dict(_times(facts)), **dict(_rates(facts, summary.completed_span))}


def cached_reports(facts: WaveFacts) -> tuple[int, int]:
    """The number of successful requests of which the server reported cached tokens, and of all of them."""
    reports = _Reports(facts)
    gather(facts.records, reports)
    return reports.reported, reports.ok


def _times(facts: WaveFacts) -> Iterator[tuple[str, Estimate]]:
    whole = _Whole()
    gather(facts.records, whole)
    found = {name: held.distribution() for name, held in whole.held.items()}
    known = {name: each for name, each in found.items() if each is not None}
    seconds = _Seconds(facts, {name: [each.percentile(p) for p in _PERCENTS[name]] for name, each in known.items()})
    gather(facts.records, seconds)
    usable = blocks_show_error(facts)
    for name, distribution in known.items():
        for percent in _PERCENTS[name]:
            yield f"{name}.p{percent:g}", _percentile(distribution, percent, seconds.times[name], usable=usable)
    has_gap = seconds.gaps > 0
    if has_gap.any():
        streaming, gaps = seconds.streaming[has_gap], seconds.gaps[has_gap]
        blocks = len(gaps) if usable else 0
        yield GAP, Ratio(float(streaming.sum() / gaps.sum()), error_of(streaming, gaps), blocks)


def _percentile(distribution: Distribution, percent: float, values: Values, *, usable: bool) -> Percentile:
    below = values.at_most(distribution.percentile(percent))
    return Percentile(distribution, percent, error_of(below, values.counts), len(values.counts) if usable else 0)


def _per_token(part: Records) -> Times:
    """The latency over the output tokens: the time until the first token counts, too."""
    latency, tokens = request_times(part)["latency"].values, output_tokens(part)
    return Times(latency / np.maximum(tokens, 1), (tokens >= 1) & (latency > 0))


def _generating(part: Records) -> Times:
    time = request_times(part)[TPOT]
    return Times(time.values, time.has & (time.values > 0))


_OF: Mapping[str, Callable[[Records], Times]] = {TPOT: _generating, PER_TOKEN: _per_token}
_PERCENTS: Mapping[str, tuple[float, ...]] = {TPOT: (50.0, 90.0), PER_TOKEN: (90.0,)}


class _Whole:
    """Gathers the distribution of each time of the successful requests."""

    columns = _COLUMNS

    def __init__(self) -> None:
        self.held = {name: StreamingHistogram() for name in _OF}

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok = part.outcome("ok")
        for name, of in _OF.items():
            time = of(part)
            self.held[name].add(time.values[ok & time.has])


class _Seconds:
    """Gathers what each second had: a request belongs to the one it was due in, in the closed loop sent in."""

    def __init__(self, facts: WaveFacts, limits: Mapping[str, Collection[float]]) -> None:
        self._begin = "due" if facts.open_loop else "sent"
        self.columns = (*_COLUMNS, self._begin)
        number = len(lengths((facts.window.planned_ns or facts.window.duration_ns) / NS))
        self.times = {name: Values(number, found) for name, found in limits.items()}
        self.streaming, self.gaps = np.zeros(number), np.zeros(number)

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, seconds = part.outcome("ok"), blocks_of(part.int(self._begin), len(self.gaps))
        for name, values in self.times.items():
            time = _OF[name](part)
            chosen = ok & time.has
            values.add_values(seconds[chosen], time.values[chosen])
        several = ok & (part.int("chunks") >= 2)
        add_to(self.gaps, seconds[several], part.int("chunks")[several] - 1)
        streaming: Floats = (part.int("last_token") - part.int("first_token")) / NS
        add_to(self.streaming, seconds[several], streaming[several])


def _rates(facts: WaveFacts, span: CompletedSpan) -> Iterator[tuple[str, Estimate]]:
    """Tokens a second by kind; none of a kind that nobody counted."""
    spread = _Completed(span) if facts.open_loop else _InFlight(facts)
    if not spread.seconds:
        return
    for records in (facts.records, facts.begun_before if facts.open_loop else facts.warmup):
        gather(records, spread.gatherer(records))
    parts = lengths(spread.seconds)
    blocks = len(parts) if blocks_show_error(facts) else 0
    for kind, sums in _kinds(spread.sums):
        yield kind, Ratio(float(sums.sum()) / spread.seconds, error_of(sums, parts), blocks)


def _kinds(sums: Mapping[str, Floats]) -> Iterator[tuple[str, Floats]]:
    """The kinds that were counted, and those that follow from them."""
    yield from sums.items()
    if INPUT in sums and OUTPUT in sums:
        yield TOTAL, sums[INPUT] + sums[OUTPUT]
    if INPUT in sums and CACHED in sums:
        yield UNCACHED, sums[INPUT] - sums[CACHED]


class _Spread:
    """The tokens of successful requests in each second of a time; a kind that nobody reports has none."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.sums: dict[str, Floats] = {}

    def gatherer(self, records: InParts) -> _Tokens:
        """A gatherer of some records, which may lack the column of cached tokens."""
        return _Tokens(records, self)

    def put(self, part: Records, kind: str, tokens: Floats) -> None:
        """Take in the tokens of each request of a part."""
        if kind not in self.sums:
            self.sums[kind] = np.zeros(len(lengths(self.seconds)))
        chosen = tokens > 0
        self._put(self.sums[kind], part.where(chosen), tokens[chosen])

    def _put(self, sums: Floats, part: Records, tokens: Floats) -> None:
        raise NotImplementedError


class _Completed(_Spread):
    """In the open loop a request's tokens are in the second in which it completed, as in the report."""

    def __init__(self, span: CompletedSpan) -> None:
        super().__init__(span.seconds)
        self._span, self._begin_ns = span, int(np.ceil(span.begin_ns))

    def _put(self, sums: Floats, part: Records, tokens: Floats) -> None:
        done = part.int("done")
        inside = self._span.holds(done)
        add_to(sums, blocks_of(done[inside] - self._begin_ns, len(sums)), tokens[inside])


class _InFlight(_Spread):
    """In the closed loop a request's tokens are spread evenly over the time in which it was in flight.

    Requests that begin together end together: whether so many of them end just before the wave does or just after it
    would move the rate by all of their tokens, and make its seconds differ by nothing but that.
    """

    def __init__(self, facts: WaveFacts) -> None:
        super().__init__((facts.window.planned_ns or facts.window.duration_ns) / NS)

    def _put(self, sums: Floats, part: Records, tokens: Floats) -> None:
        edges = np.append(np.arange(len(sums), dtype=np.float64), self.seconds)
        begin, end = part.int("sent") / NS, np.maximum(part.int("done"), part.int("sent") + 1) / NS
        rate = tokens / (end - begin)
        sums += np.diff(_since(begin, rate, edges) - _since(end, rate, edges))


def _since(begin: Floats, rate: Floats, instants: Floats) -> Floats:
    """The sum, at each instant, of what so many rates made since each of them began."""
    order = np.argsort(begin, kind="stable")
    begin, rate = begin[order], rate[order]
    rates, products = (np.append(0.0, np.cumsum(each)) for each in (rate, rate * begin))
    begun = np.searchsorted(begin, instants)
    made: Floats = instants * rates[begun] - products[begun]
    return made


class _Tokens:
    """Gathers the tokens of each kind of the successful requests."""

    def __init__(self, records: InParts, spread: _Spread) -> None:
        cached = [_CACHED] if CACHED_TOKENS in records.metrics else []
        self.columns = ("outcome", "sent", "done", "chunks", "tokens_in", "tokens_out", *cached)
        self._spread = spread

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok, output = part.outcome("ok"), output_tokens(part)
        for kind, tokens, known in (
            (OUTPUT, output, ok & (output > 0)),
            (INPUT, part.int("tokens_in"), ok & part.has("tokens_in")),
        ):
            if known.any():
                self._spread.put(part, kind, np.where(known, tokens, 0).astype(np.float64))
        if CACHED_TOKENS in part.metrics and (reported := ok & _reports_cached(part)).any():
            self._spread.put(part, CACHED, np.where(reported, part.metric(CACHED_TOKENS), 0.0))


def _reports_cached(part: Records) -> Mask:
    """The requests of which the server reported cached tokens that can be true: they are a part of the prompt."""
    cached = part.metric(CACHED_TOKENS)
    possible: Mask = part.has("tokens_in") & (cached >= 0) & (cached <= part.int("tokens_in"))  # nan is none
    return possible


class _Reports:
    """Gathers how many successful requests report cached tokens."""

    def __init__(self, facts: WaveFacts) -> None:
        cached = [_CACHED] if CACHED_TOKENS in facts.records.metrics else []
        self.columns = ("outcome", "tokens_in", *cached)
        self.reported = self.ok = 0

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        ok = part.outcome("ok")
        self.ok += int(np.count_nonzero(ok))
        if CACHED_TOKENS in part.metrics:
            self.reported += int(np.count_nonzero(ok & _reports_cached(part)))
