"""The twin judged on a wave it has not seen: what it foretells for the very arrivals, beside what came. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from server_capacity.models.twin.queue import Queues
from server_capacity.models.twin.twin import bounds
from server_capacity.results.types.twin import Prediction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from server_capacity.models.twin.trace import Floats, Trace
    from server_capacity.models.twin.twin import Twin
    from server_capacity.search.limits import Limit

_REPEATS = 96
_ARRIVALS = 40_000  # of a longer wave, the first so many
_SIGMAS = 3.5
_NEAR, _NEAR_SHARE = 0.03, 0.3  # what a time may be off beyond chance, as a share of it, and what a share over a limit
_PERCENTS = (50, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure: ``measured``, and ``predicted`` from ``low`` to ``high`` by chance. Seconds, or a share."""

    name: str
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def fits(self) -> bool:
        """True where it is as predicted."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Misfit:
    """All figures compared; ``reason``: which are not as predicted, empty where all are."""

    compared: tuple[Compared, ...]
    reason: str

    @property
    def fits(self) -> bool:
        """True where the twin predicted the wave."""
        return not self.reason

    def by_name(self) -> dict[str, Prediction]:
        """All figures by their names."""
        return {
            each.name: Prediction(each.name, each.measured, each.predicted, each.low, each.high, each.fits)
            for each in self.compared
        }


def judge(twin: Twin, wave: Trace, limits: Sequence[Limit] = ()) -> Misfit:
    """The wave, which began with an empty queue and is none that the twin was fitted on, compared with the twin."""
    wave = wave.part(0, _ARRIVALS)
    there = wave.answered
    if not there.any():
        return Misfit((), "no request was answered")
    predicted = responses(twin, wave.sent_s)[there]
    measured = wave.latency_s[there]
    compared = [
        _compared(f"p{p}", np.quantile(measured, p / 100), np.quantile(predicted, p / 100, axis=0)) for p in _PERCENTS
    ]
    for bound in bounds(limits):
        share = float((measured > bound.time_s).mean()) + 0.5 / len(measured)
        shares = (predicted > bound.time_s).mean(axis=0) + 0.5 / len(measured)
        compared.append(_compared(f"share over {bound.limit}", share, shares, _NEAR_SHARE))
    off = [each for each in compared if not each.fits]
    return Misfit(tuple(compared), "; ".join(map(_misfit_text, off)))


def _compared(name: str, measured: float, predicted: Floats, near: float = _NEAR) -> Compared:
    """Bounds by the spread of the repeats' logarithms: what bursts make of a percentile is skewed."""
    logs = np.log(predicted)
    middle, width = float(logs.mean()), _SIGMAS * float(logs.std(ddof=1)) + near
    return Compared(
        name, float(measured), float(np.exp(middle)), float(np.exp(middle - width)), float(np.exp(middle + width))
    )


def _misfit_text(off: Compared) -> str:
    format_value = "{:.2%}".format if off.name.startswith("share") else lambda value: f"{value * 1e3:.3g} ms"
    return f"{off.name} was {format_value(off.measured)}, predicted {format_value(off.low)} to {format_value(off.high)}"


def responses(twin: Twin, sent_s: Floats) -> NDArray[np.float32]:
    """The answers of repeats of the twin to these arrivals: seconds, by request and repeat."""
    draws = np.random.default_rng(len(sent_s))
    variants = twin.variants
    which = np.arange(_REPEATS) % len(variants.services_s)
    services = variants.services_s.astype(np.float32)
    gaps = np.diff(sent_s, prepend=sent_s[:1]).astype(np.float32)
    queues = Queues(np.zeros((twin.servers, _REPEATS), np.float32))
    found = np.empty((len(sent_s), _REPEATS), np.float32)
    for number, gap in enumerate(gaps):
        queues.let_pass(gap)
        found[number] = queues.arrive(services[which, draws.integers(0, services.shape[1], _REPEATS)])
    return found + variants.overhead_s[which].astype(np.float32)
