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
    from inference_benchmarker.records.columns import Floats, Int64, Mask, Records
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

    Tokens are those of the completed rate's requests. ``cached`` and ``uncached`` ones are the parts of ``input``;
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
    """Tokens a second by kind; None of a kind that nobody counted."""
    rates = _Rates(facts, span)
    gather(facts.records, rates)
    gather(facts.begun_before, rates)
    if not span.seconds:
        return
    sums = {kind: rates.sums[kind] for kind in rates.known}
    if INPUT in sums and OUTPUT in sums:
        sums[TOTAL] = sums[INPUT] + sums[OUTPUT]
    if INPUT in sums and CACHED in sums:
        sums[UNCACHED] = sums[INPUT] - sums[CACHED]
    parts = lengths(span.seconds)
    blocks = len(parts) if blocks_show_error(facts) else 0
    for kind, each in sums.items():
        yield kind, Ratio(float(each.sum()) / span.seconds, error_of(each, parts), blocks)


class _Rates:
    """Gathers the tokens of the requests that completed in each second of the completed rate's interval."""

    def __init__(self, facts: WaveFacts, span: CompletedSpan) -> None:
        self._cached = [_CACHED] if CACHED_TOKENS in facts.records.metrics else []
        self.columns = ("outcome", "done", "chunks", "tokens_in", "tokens_out", *self._cached)
        self._span, self._begin_ns = span, int(np.ceil(span.begin_ns))
        self.sums = {kind: np.zeros(len(lengths(span.seconds))) for kind in (INPUT, CACHED, OUTPUT)}
        self.known: dict[str, None] = {}

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        done = part.int("done")
        inside = part.outcome("ok") & self._span.holds(done)
        output, given = output_tokens(part), part.int("tokens_in")
        self._add(OUTPUT, done, np.where(inside & (output > 0), output, 0))
        self._add(INPUT, done, np.where(inside & part.has("tokens_in"), given, 0))
        if CACHED_TOKENS in part.metrics:
            reported = _reports_cached(part)
            self._add(CACHED, done, np.where(inside & reported, part.metric(CACHED_TOKENS), 0))
            if reported.any():  # all of them may be 0
                self.known[CACHED] = None

    def _add(self, kind: str, done: Int64, tokens: Int64 | Floats) -> None:
        chosen = tokens > 0
        if chosen.any():
            self.known[kind] = None
            sums = self.sums[kind]
            add_to(sums, blocks_of(done[chosen] - self._begin_ns, len(sums)), tokens[chosen])


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
