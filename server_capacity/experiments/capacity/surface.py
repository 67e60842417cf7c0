"""The searches of a surface: at the lengths that the fit is of, then at those that are held out from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.measured import streams_of
from inference_benchmarker.embedded.llm.streams import Streams, one_after_another
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import Bounds, ClosedLoop
from inference_benchmarker.wave.run_dir import OWNER_ONLY
from server_capacity.experiments.capacity.run import search_with

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.models.surface.lengths import Lengths
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.surface import Use

ALONE = 15
"""Requests that are sent one after the other at each length of the fit: they find the engine idle."""
MOST_S = Decimal(900)
LEAST_ANSWERED, MOST_CACHED = 0.95, 0.05
"""Of the tokens that answers may have, and of those of prompts."""
INPUT, OUTPUT = "INPUT_TOKENS", "OUTPUT_TOKENS"
"""The settings of an address's requests that are lengths."""


@dataclass(frozen=True, slots=True)
class Point:
    """The search at some lengths, and what it is for."""

    lengths: Lengths
    use: Use
    question: Question


class PointFound(NamedTuple):
    """The answer at a point, the search's folder, and the streams of its waves; an error where they tell nothing."""

    point: Point
    folder: Path
    found: CapacityResult
    streams: Streams | BenchmarkError | None


def at_lengths(question: Question, lengths: Lengths) -> Question:
    """The question with requests of these lengths."""
    settings = {**question.plan.factory_settings, INPUT: str(lengths.prompt), OUTPUT: str(lengths.answer)}
    name = f"{question.plan.name}, {lengths.text}" if question.plan.name else lengths.text
    return replace(question, plan=replace(question.plan, factory_settings=settings, name=name))


def sent_alone(points: Sequence[Point], waves: Waves) -> dict[int, Streams]:
    """The streams of requests one after the other, by the length of their prompts.

    BenchmarkError where their lengths are not those that were asked for; KeyboardInterrupt where it was interrupted.
    """
    found = {}
    waves.say(f"Sending {ALONE} requests at each of {len(points)} lengths, one after the other.")
    for point in points:
        wave = waves.warm(_alone(point.question, waves))
        if wave.interrupted:
            raise KeyboardInterrupt("Interrupted before the search began; nothing was measured.")
        found[point.lengths.prompt] = _as_asked(streams_of(wave), point.lengths)
    return found


def _as_asked(streams: Streams, lengths: Lengths) -> Streams:
    answered, cached = float(np.mean(streams.output)), 1 - float(np.sum(streams.computed) / np.sum(streams.prompt))
    if answered < LEAST_ANSWERED * lengths.answer:
        raise BenchmarkError(
            f"Answers that may have {lengths.answer} tokens have {answered:.0f} on average, and --over is about their "
            "length.",
            "Have the server go on to the end: --set 'MORE={\"ignore_eos\": true}' (vLLM, SGLang), or lower HIGH.",
        )
    if cached > MOST_CACHED:
        raise BenchmarkError(
            f"{cached:.0%} of the prompts' tokens were in the server's prefix cache, and --over simulates prompts that "
            "are all new.",
            "Begin with longer prompts (input-tokens=LOW:HIGH), or switch the server's prefix cache off.",
        )
    return streams


def find_points(points: Sequence[Point], waves: Waves) -> Iterator[PointFound]:
    """The answer of each search, as soon as it is there; an interrupt ends them all."""
    top = waves.folder
    for place, point in enumerate(points, 1):
        waves = replace(waves, folder=top / point.lengths.text, payloads=None)
        use = "for the fit" if point.use == "fit" else "held out"
        waves.say(f"Search {place} of {len(points)}: {point.lengths.words}, {use}.")
        waves.folder.mkdir(mode=OWNER_ONLY)
        searched = search_with(point.question, waves)
        sent = [*searched.explored.waves, *(each.wave for each in searched.confirmed)]
        yield PointFound(point, waves.folder, searched.found, _streams(sent) if point.use == "fit" else None)
        if searched.found.outcome == "interrupted":
            return


def _streams(waves: Sequence[Wave]) -> Streams | BenchmarkError:
    by_directory = {wave.run_dir.path if wave.run_dir else place: wave for place, wave in enumerate(waves)}
    try:
        return one_after_another([streams_of(wave) for wave in by_directory.values()])
    except BenchmarkError as error:
        return error


def _alone(question: Question, waves: Waves) -> WavePlan:
    """One request after the other; nobody limits what they take."""
    return replace(
        question.plan.with_workers(1),
        load=ClosedLoop(1),
        bounds=Bounds(MOST_S, ALONE),
        max_in_flight=None,
        slos=(),
        server_limits=(),
        goodput=(),
        success_threshold=0.0,
        output_dir=waves.folder,
        name=f"{question.plan.name}, one at a time",
    )
