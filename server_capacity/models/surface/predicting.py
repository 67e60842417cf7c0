"""Capacities of a fitted engine at lengths that nobody sent, with intervals, where the fit has seen its load. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.fit import engine_of
from inference_benchmarker.summary.statistics.student_t import student_t
from server_capacity.models.surface.lengths import Lengths
from server_capacity.models.surface.serving import Capacity, Load, Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.embedded.llm.fit import Fit
    from inference_benchmarker.records.columns import Floats
    from server_capacity.search.limits import Limit

ARRIVALS, DRAWS = 8, 6
"""Other arrivals with the constants that are served, and other constants with some of these arrivals."""
FURTHER = 1.25
"""Times the load that the fit has seen, to which it is believed."""
_ENDLESS = 1 << 24
"""Tokens of KV cache, and large blocks of it: no prediction is believed where the cache may be full."""
_LARGE_BLOCK = 1024


class Estimate(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Requests/s at some lengths: by each of the arrivals, by other constants, and the engine's load there."""

    lengths: Lengths
    rates: Floats
    drawn: Floats
    load: Load

    @property
    def is_kept(self) -> bool:
        """Tells whether a request alone keeps the limits."""
        return bool(min(self.rates.min(), self.drawn.min()) > 0)

    @property
    def rate(self) -> Estimate:
        """Requests/s: as sure as so many arrivals, and the constants, make it."""
        if not self.is_kept:
            return Estimate(float(np.median(self.rates)), 0.0, float(max(self.rates.max(), self.drawn.max())))
        return _estimate(np.log(self.rates), np.log(self.drawn / self.rates[: len(self.drawn)]))

    def times(self, other: Prediction) -> Estimate:
        """Its rate in those of another one, both by the same arrivals and constants; both are kept."""
        logs = np.log(self.rates / other.rates)
        return _estimate(logs, np.log(self.drawn / other.drawn) - logs[: len(self.drawn)])


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted engine, and the prompts' mean tokens by the length that was asked for."""

    fitted: Fit
    limits: tuple[Limit, ...]
    prompts: Mapping[int, float]
    arrivals: int = ARRIVALS
    draws: int = DRAWS

    def predict(self, lengths: Lengths, near: float | None = None) -> Prediction:
        """The capacity at these lengths; ``near``: it is probably about there."""
        served = np.array([each.value for each in self.fitted.constants])
        found = [self._capacity(lengths, served, 0, near)]
        near = found[0].rate or None
        found += [self._capacity(lengths, served, seed, near) for seed in range(1, self.arrivals)]
        drawn = [
            self._capacity(lengths, constants, seed, found[seed].rate or None)
            for seed, constants in enumerate(self.fitted.drawn(self.draws, seed=1))
        ]
        load = Load(*map(max, zip(*(each.load for each in found), strict=True)))
        return Prediction(lengths, _rates(found), _rates(drawn), load)

    def _capacity(self, lengths: Lengths, constants: Floats, seed: int, near: float | None) -> Capacity:
        rules = replace(engine_of(constants, _ENDLESS), block_size=_LARGE_BLOCK)
        return Server(rules, self.limits, float(constants[-1]) / 1e3).capacity(self.sent(lengths), seed, near)

    def sent(self, lengths: Lengths) -> Lengths:
        """The tokens that the server counts of such requests."""
        asked = sorted(self.prompts)
        prompt = np.interp(lengths.prompt, asked, [self.prompts[each] for each in asked])
        return Lengths(round(float(prompt)), lengths.answer)

    def beyond(self, load: Load) -> str:
        """The reason why a load is further than the fit is believed; "" where it is not."""
        seen = self.fitted
        if load.answers > FURTHER * seen.decodes:
            return f"{load.answers:,} answers at a time, and at most {seen.decodes:,} were measured"
        if load.context > FURTHER * seen.context:
            return f"contexts of {load.context:,.0f} tokens, and at most {seen.context:,.0f} were measured"
        return ""


def _rates(found: Sequence[Capacity]) -> Floats:
    return np.array([each.rate for each in found])


def _estimate(logs: Floats, changes: Floats) -> Estimate:
    """The mean over arrivals, which becomes surer with their number, and what other constants change of it."""
    of_arrivals = student_t(0.95, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    of_constants = student_t(0.95, len(changes) - 1) * changes.std(ddof=1)
    room = np.hypot(of_arrivals, of_constants)
    low, middle, high = np.exp([logs.mean() - room, logs.mean(), logs.mean() + room]).tolist()
    return Estimate(middle, low, high)


def predict_all(model: Model, grid: Sequence[Lengths]) -> list[Prediction]:
    """The prediction of each; the one before is a neighbour."""
    found: list[Prediction] = []
    for lengths in grid:
        near = float(found[-1].rates[0]) if found and found[-1].lengths.prompt == lengths.prompt else None
        found.append(model.predict(lengths, near or None))
    return found
