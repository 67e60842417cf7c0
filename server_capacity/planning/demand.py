"""The load that a plan is for: its target, its peak and its least. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.wording import length_text

if TYPE_CHECKING:
    import numpy.typing as npt

    from inference_benchmarker.plan.stage import Stage
    from server_capacity.planning.request import PlanRequest

MINUTE_S = 60
_LEAST_S = 1.0
"""A shorter recording has no rate of its own: its requests are taken as those of a second."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording as a plan reads it: arrivals of each whole minute, and every instant in seconds after its begin.

    ``least_rps`` is None for a recording of less than a minute.
    """

    arrivals_s: npt.NDArray[np.float64]
    length_s: float
    peak_rps: float
    least_rps: float | None
    peak_second: int

    @property
    def peak_text(self) -> str:
        """The place of its peak, as a sentence begins."""
        if self.least_rps is None:
            length = "less than a second" if self.length_s < _LEAST_S else length_text(self.length_s)
            return f"The recording of {length} has on average"
        return "The recording's busiest minute has"


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests/s: the ``target`` that is to be held, the highest rate and, where it is known, the lowest.

    ``peak_text``: where the peak comes from, as a sentence says it; empty where it is the target.
    """

    target_rps: float
    peak_rps: float
    least_rps: float | None
    peak_text: str = ""
    stages: tuple[Stage, ...] = ()
    recorded: Recorded | None = None


def demand_of(asked: PlanRequest, recording: Recorded | None) -> Demand:
    """The load that is asked for; a target that is not given is the peak of the stages or of the recording."""
    least: float | None
    if asked.stages:
        rates = [float(rate) for stage in asked.stages for rate in (stage.from_rps, stage.to_rps)]
        peak, least, text = max(rates), min(rates), "The stages reach"
    elif recording is not None:
        peak, least, text = recording.peak_rps, recording.least_rps, recording.peak_text
    else:
        assert asked.target_rps is not None
        return Demand(asked.target_rps, asked.target_rps, None)
    target = asked.target_rps or peak
    text = "" if target > peak else text
    return Demand(target, max(peak, target), least, text, asked.stages, recording)


def recorded(arrivals_s: npt.NDArray[np.float64], length_s: float, peak_second: int) -> Recorded:
    """A recording by the instants of its arrivals, in seconds after its begin, and its length in seconds."""
    whole = int(length_s // MINUTE_S)
    if not whole:
        rate = len(arrivals_s) / max(length_s, _LEAST_S)
        return Recorded(arrivals_s, length_s, rate, None, peak_second)
    minutes = np.bincount((arrivals_s // MINUTE_S).astype(np.int64), minlength=whole)[:whole] / MINUTE_S
    return Recorded(arrivals_s, length_s, float(minutes.max()), float(minutes.min()), peak_second)
