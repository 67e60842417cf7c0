"""The schedule of a load model: of its recording, its stages, or its rate. Pure."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from inference_benchmarker.plan.schedule import NO_END, Schedule, Segment

if TYPE_CHECKING:
    from inference_benchmarker.plan.load import OpenLoop


def schedule_of(load: OpenLoop) -> Schedule:
    """The schedule of a load model: its recording or its stages, else its rate for ever."""
    if load.replay is not None:
        if load.replay.schedule is None:
            raise ValueError(f"{load.replay.file} has not been read")
        return load.replay.schedule
    if not load.stages:
        rate = Fraction(load.rate)
        return Schedule([Segment(0, NO_END, Fraction(0), rate, rate)])
    segments: list[Segment] = []
    start, before = 0, Fraction(0)
    for stage in load.stages:
        end = start + stage.duration_ns
        segments.append(Segment(start, end, before, Fraction(stage.from_rps), Fraction(stage.to_rps)))
        start, before = end, segments[-1].after
    return Schedule(segments)
