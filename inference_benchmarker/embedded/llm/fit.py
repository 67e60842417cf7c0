"""The constants of an LLM engine's steps, fitted to streams that a client measured. Pure.

Two times of a stream are linear in the constants once the engine's steps are counted: that from its first token to its
last, and the TTFT of a request that found the engine idle. Both are fitted together by weighted least squares, steps
are counted anew with the result, and so on. Requests that wait for a step under way are used for the steps alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from inference_benchmarker.embedded.llm.rules import EngineRules
from inference_benchmarker.embedded.llm.streams import SAME_STEP_MS, Segments, Streams
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.summary.statistics.student_t import student_t

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Floats, Mask

NAMES = ("prefill A", "prefill B", "prefill C", "step A", "step B", "step C", "step D", "way")
"""Those of ``--prefill-ms`` and ``--step-ms``, and the time that a client sees in a TTFT beyond the engine's."""
OPTIONAL = (0, 3, 4, 6, 7)
"""Constants that an engine need not have: they are served only where the run shows that they are not 0."""
NOT_NEGATIVE = (0, 1, 2, 7)
LEAST_IDLE, LEAST_STREAMS = 20, 100
LEAST_SPREAD = 0.1
"""Of the lengths of prompts, and of the number of streams that decode: standard deviation over mean."""
BLOCKS = 30
"""Streams of one of so many stretches of the run are not independent: intervals are those of blocks."""
WIDER = 1.25
"""Intervals are so much wider: a step that is counted wrongly spoils several times. Found on simulated runs."""
ROUNDS = 6
LEAST_MS = 0.02
"""The standard deviation of a time that a client measures, at least."""
ODD = 6.0
"""Times of the standard deviation: what is further off was held up on its way, and is left out."""
OF_MEDIAN = 1.4826
"""The standard deviation over the median deviation, of normal ones."""
MOST_HELD_UP = 0.1
"""Of the prompts: more of them are no chance."""
MOST_OF_PACES, MOST_OF_TTFTS = 0.04, 0.11
"""The mean deviation from the fit, over the mean, of decodes and of TTFTs of those that found the engine idle.

On simulated runs one engine has 0.026 and 0.105 at most with delays of 4 ms on the way, two behind one address 0.05 or
more of decodes, and a cache that is not reported 0.118 or more of TTFTs where it halves every other prompt.
TTFTs may deviate by ``SAME_STEP_MS`` in any case: those of a fast server are hardly longer than the delays.
"""


@dataclass(frozen=True, slots=True)
class Constant:
    """The value that is served, and its 95% interval: of the fit of all constants, and of the one that is served."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The constants in the order of ``NAMES``, those of contexts for a token of them and not for a share of the cache.

    ``idle``: of how many streams. ``decodes``, ``context``: the most that a step of the run had. ``deviations``:
    of the constants that are served when a stretch of the run is left out, a row each; their squares add up to the
    variance.
    """

    constants: tuple[Constant, ...]
    streams: int
    idle: int
    decodes: int
    context: float
    deviations: Floats = field(compare=False, repr=False)

    def rules(self, kv_tokens: int) -> tuple[tuple[Constant, ...], tuple[Constant, ...]]:
        """The constants of prompts, and of steps for a KV cache of so many tokens."""
        found = tuple(
            Constant(each.name, each.value * unit, each.low * unit, each.high * unit)
            for each, unit in zip(self.constants, _units(kv_tokens), strict=False)
        )
        return found[:3], found[3:]

    def drawn(self, number: int, seed: int) -> Floats:
        """So many sets of the constants, in the order of ``NAMES``, that lie as far from the fit as the truth may."""
        steps = np.random.default_rng(seed).standard_normal((number, len(self.deviations)))
        found = np.array([each.value for each in self.constants]) + WIDER * steps @ self.deviations
        found[:, NOT_NEGATIVE] = np.maximum(found[:, NOT_NEGATIVE], 0.0)
        return np.asarray(found)

    @property
    def way(self) -> Constant:
        """The time that a client's TTFT has beyond the engine's, in ms."""
        return self.constants[-1]


def engine_of(constants: Floats, kv_tokens: int) -> EngineRules:
    """The engine with constants in the order of ``NAMES``, and a KV cache of so many tokens."""
    a, b, c, step_a, step_b, step_c, step_d = (
        float(value) * unit for value, unit in zip(constants, _units(kv_tokens), strict=False)
    )
    return EngineRules(kv_tokens, (a, b, c), (step_a, step_b, step_c, step_d))


def _units(kv_tokens: int) -> tuple[float, ...]:
    """Of the constants as a profile has them: a context is a share of the cache."""
    return (1.0, 1.0, 1.0, float(kv_tokens) ** 2, float(kv_tokens), 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The linear equations: columns of the constants, times in ms, instants, and whether they are of decodes."""

    columns: Floats
    times: Floats
    at: Floats
    of_decodes: Mask

    def take(self, which: Mask) -> Self:
        """Some of them."""
        return type(self)(self.columns[which], self.times[which], self.at[which], self.of_decodes[which])


def fit(streams: Streams) -> Fit:
    """The constants; BenchmarkError where the streams cannot tell them."""
    segments, idle = Segments(streams), streams.found_idle
    _refuse(streams, segments, idle)
    for _ in range(ROUNDS):
        values, _ = _solved(_rows(streams, segments, idle), np.ones(len(NAMES), bool))
        segments.count_by(tuple(values[:3]), tuple(values[3:7]))
    rows = _without_odd(_rows(streams, segments, idle))
    values, low, high, deviations = _served(rows)
    _refuse_misfit(rows, values)
    return Fit(
        tuple(map(Constant, NAMES, values.tolist(), low.tolist(), high.tolist())),
        len(streams),
        int(idle.sum()),
        int(segments.decodes.max()),
        float(segments.context.max()),
        deviations,
    )


def _refuse(streams: Streams, segments: Segments, idle: Mask) -> None:
    if len(streams) < LEAST_STREAMS:
        raise BenchmarkError(
            f"{len(streams)} streams of several tokens are too few for a fit, which takes {LEAST_STREAMS} or more.",
            "Send a longer wave.",
        )
    if np.std(streams.computed) < LEAST_SPREAD * np.mean(streams.computed):
        raise BenchmarkError(
            "About as many tokens of each prompt were computed, so nobody can tell what each of them takes.",
            "Send prompts of several lengths: --replay TRACE, --conversations FILE, or --body @FILE.jsonl.",
        )
    busy = segments.decodes > 0
    weights = segments.length_ms[busy]
    mean = np.average(segments.decodes[busy], weights=weights)
    spread = np.sqrt(np.average((segments.decodes[busy] - mean) ** 2, weights=weights))
    if spread < LEAST_SPREAD * mean:
        raise BenchmarkError(
            f"{mean:.3g} answers were generated at a time throughout: one load does not tell what another one takes.",
            "Send several loads in one wave: --stages '1:30s, 4:30s, 8:30s' --arrivals poisson.",
        )
    if idle.sum() < LEAST_IDLE:
        raise BenchmarkError(
            f"{idle.sum()} requests found the engine idle, and {LEAST_IDLE} are needed to tell what a prompt takes.",
            "Begin the wave with a low rate: --stages '0.5:60s, 4:30s, 8:30s' --arrivals poisson.",
        )


def _rows(streams: Streams, segments: Segments, idle: Mask) -> _Rows:
    """The equations; those of decodes are divided by the root of their steps, over which deviations add up."""
    root = np.sqrt(np.maximum(streams.output - 1, 1))
    decodes = np.zeros((len(streams), len(NAMES)))
    decodes[:, :7] = segments.columns() / root[:, None]
    alone = streams.take(idle)
    prompts = np.zeros((len(alone), len(NAMES)))
    prompts[:, (0, 1, 2, 7)] = np.stack([alone.squares, alone.computed, *np.ones((2, len(alone)))], axis=1)
    return _Rows(
        np.vstack([decodes, prompts]),
        np.r_[segments.paces_ms / root, alone.first - alone.sent],
        np.r_[streams.first, alone.first],
        np.r_[np.ones(len(streams), bool), np.zeros(len(alone), bool)],
    )


def _solved(rows: _Rows, used: Mask) -> tuple[Floats, Floats]:
    """Values of the constants that are used, 0 of the others, and their deviations without each stretch of the run."""
    columns, errors = rows.columns[:, used], _errors(rows, used)
    units = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    columns, times = columns / units / errors[:, None], rows.times / errors
    values = np.linalg.lstsq(columns, times)[0]
    blocks = np.minimum((BLOCKS * (rows.at - rows.at.min()) / max(np.ptp(rows.at), 1e-9)).astype(int), BLOCKS - 1)
    left_out = [np.linalg.lstsq(columns[blocks != each], times[blocks != each])[0] for each in range(BLOCKS)]
    found, deviations = np.zeros(len(used)), np.zeros((BLOCKS, len(used)))
    found[used] = values / units
    deviations[:, used] = np.sqrt((BLOCKS - 1) / BLOCKS) * (np.array(left_out) - values) / units
    return found, deviations


def _errors(rows: _Rows, used: Mask) -> Floats:
    """The standard deviation of each row: one of decodes, and one of prompts."""
    columns, errors = rows.columns[:, used], np.ones(len(rows.times))
    units = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    for _ in range(ROUNDS):
        values = np.linalg.lstsq(columns / units / errors[:, None], rows.times / errors)[0]
        residuals = rows.times - columns / units @ values
        for part in (rows.of_decodes, ~rows.of_decodes):
            errors[part] = max(float(np.std(residuals[part])), LEAST_MS)
    return errors


def _without_odd(rows: _Rows) -> _Rows:
    """The rows without those that were held up."""
    used = np.ones(len(NAMES), bool)
    residuals = rows.times - rows.columns @ _solved(rows, used)[0]
    rows = rows.take(np.abs(residuals) < ODD * _errors(rows, used))
    few = rows
    for _ in range(ROUNDS):
        few = few.take(few.of_decodes | _is_usual(np.abs(few.times - few.columns @ _solved(few, used)[0]), few))
    is_few = np.sum(~few.of_decodes) >= (1 - MOST_HELD_UP) * np.sum(~rows.of_decodes)
    return few if is_few else rows


def _is_usual(deviations: Floats, rows: _Rows) -> Mask:
    """Those not far off by the median: a few of prompts, which are few, would hide in the deviation that they cause."""
    usual = OF_MEDIAN * float(np.median(deviations[~rows.of_decodes]))
    found: Mask = deviations < ODD * max(SAME_STEP_MS, usual)
    return found


def _served(rows: _Rows) -> tuple[Floats, Floats, Floats, Floats]:
    """The values without what the run does not show: the least sure goes first, and the rest is fitted again.

    And the ends of their intervals, which hold those of each fit: without a constant that is small but not 0, the
    others are surer than they are right. Last, the deviations of the constants that are served.
    """
    used, sure = np.ones(len(NAMES), bool), WIDER * student_t(0.95, BLOCKS - 1)
    low, high = np.full(len(NAMES), np.inf), np.full(len(NAMES), -np.inf)
    while True:
        values, deviations = _solved(rows, used)
        errors = np.sqrt(np.sum(deviations**2, axis=0))
        low, high = np.minimum(low, values - sure * errors), np.maximum(high, values + sure * errors)
        scores = np.divide(values, errors, out=np.full(len(values), np.inf), where=errors > 0)
        doubted = [each for each in OPTIONAL if used[each] and abs(scores[each]) < sure]
        doubted += [each for each in NOT_NEGATIVE if used[each] and values[each] < 0]
        if not doubted:
            return values, low, high, deviations
        used[min(doubted, key=lambda each: abs(scores[each]))] = False


def _refuse_misfit(rows: _Rows, values: Floats) -> None:
    """Streams that no such engine can have served: least squares would give constants and intervals of them, too."""
    residuals = rows.times - rows.columns @ values
    mean, deviation = _spread(rows.times, residuals, rows.of_decodes)
    if deviation > MOST_OF_PACES * mean:
        raise BenchmarkError(
            f"The times from first to last tokens are {deviation / mean:.0%} on average off those of an engine whose "
            "answers share its steps, perhaps because of several servers behind one address, a prefix cache whose hits "
            "are not in its usage, speculative decoding, or a proxy that holds streams up.",
            "Send the wave to one server past its balancer, with prompts that are all new.",
        )
    mean, deviation = _spread(rows.times, residuals, ~rows.of_decodes)
    if deviation > max(MOST_OF_TTFTS * mean, SAME_STEP_MS):
        raise BenchmarkError(
            f"TTFTs of requests that found the engine idle are {deviation / mean:.0%} on average off what the "
            "tokens of their prompts explain, perhaps because of a prefix cache whose hits are not in its usage, "
            "several servers behind one address, or a busy client.",
            "Let the server report cached tokens (vLLM: --enable-prompt-tokens-details), or send prompts that are all "
            "new.",
        )


def _spread(times: Floats, residuals: Floats, which: Mask) -> tuple[float, float]:
    """The mean of the times, and the mean deviation of the fit from them."""
    return float(np.mean(times[which])), float(np.mean(np.abs(residuals[which])))
