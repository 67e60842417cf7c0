"""Capacities of several tiers: a search of each, one after the other, that begins with all that was sent before.

Whatever was sent for one tier is counted against the limits of the next one, too: a search finds growth done, and near
its own answer the evidence of the others.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.wave.run_dir import OWNER_ONLY
from server_capacity.experiments.capacity.confirmation import judgements
from server_capacity.experiments.capacity.run import search_with
from server_capacity.experiments.measurements.client_limit import ClientWatch, void_if_late
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.evidence import SearchEvidence, name_of
from server_capacity.experiments.measurements.recorded_feed import recorded_feed
from server_capacity.search.growth import AROUND
from server_capacity.search.recovery import AFTER, CONFIRM
from server_capacity.search.stretch import DRAIN, PAUSE, SHARED, SHARED_OVERLOAD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.run import Searched
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.search.stretch import Stretch

OVERLOADED = "the search for an earlier tier ended with overload, which shows nothing from below"


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier's name, which is that of its folder, too, and its search."""

    name: str
    question: Question


def find_tiers(tiers: Sequence[Tier], waves: Waves) -> Iterator[tuple[Tier, Path, CapacityResult]]:
    """The answer of each tier, as soon as it is there, and its folder; an interrupt ends them all."""
    before: Searched | None = None
    top = waves.folder
    for tier in tiers:
        waves = replace(waves, folder=top / tier.name)
        waves.say(f"{tier.name}: {', '.join(each.expression for each in tier.question.limits)}.")
        question = tier.question if before is None else _scouted(tier.question, before.asked)
        known = None if before is None else partial(known_of, before=before)
        with _made(waves.folder):
            before = search_with(question, waves, known)
        yield tier, waves.folder, before.found
        if before.found.outcome == "interrupted":
            return


def _scouted(question: Question, before: Question | None) -> Question:
    """The question of a tier, with what the first sessions or requests showed to the one before, and the time by it."""
    if before is None:
        return question
    return replace(question, alone=before.alone, sessions=before.sessions, settings=before.settings)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder; where a search could not begin in it, it is left empty, and removed."""
    folder.mkdir(mode=OWNER_ONLY)
    try:
        yield
    except (BenchmarkError, KeyboardInterrupt):
        with suppress(OSError):
            folder.rmdir()
        raise


def known_of(question: Question, before: Searched) -> SearchEvidence:
    """Everything that was sent for the tiers before, in its order, compared with the limits of this one.

    A wave that confirmed another tier is evidence as good as a stretch. What showed of the endpoint itself, that it
    warmed up or got slower, is looked at anew: by these limits. So is what this client sent late, which may have been
    little beside the limits of another tier and decide one of this.
    """
    sent = sorted(_sent(before), key=lambda each: each[0].window.start_unix_ns)
    found = SearchEvidence(before.explored.workers, queueing=before.explored.queueing, shared=len(sent))
    for wave, marks in sent:
        stages = [
            replace(stage, stretch=as_known(replace(stage.stretch, purpose=purpose, void=void), question))
            for stage, (purpose, void) in zip(_counted(question, wave), marks, strict=True)
        ]
        number, _ = found.next_place
        found.add(wave, stages)
        found.leave_out(dict(enumerate(_sent_late(question, wave, stages), number)))
    found.leave_out_warm_up(question)
    found.leave_out_slow_down(question)
    return found


def _counted(question: Question, wave: Wave) -> list[Counted]:
    return count_stages(wave, question.limits, question.user_limits)


def as_known(stretch: Stretch, question: Question) -> Stretch:
    """A stretch of another tier, which takes nothing of that one's answer for this one's.

    A pause for another tier does not tell that a rate piled up beside these limits. Nor is a rate near the answer of
    another tier near that of this, or a wave that confirmed it one after this one's overload. What overload left is
    no evidence from below.
    """
    if not question.is_of_streams and question.sessions is None:
        return stretch
    if stretch.purpose in AFTER:
        return replace(stretch, purpose=SHARED_OVERLOAD, void=stretch.void or OVERLOADED)
    others = {DRAIN: PAUSE, CONFIRM: SHARED, **dict.fromkeys(AROUND, SHARED)}
    return replace(stretch, purpose=others.get(stretch.purpose, stretch.purpose))


def _sent_late(question: Question, wave: Wave, stages: Sequence[Counted]) -> list[str]:
    """Why each stage of a wave counts for nothing beside these limits; empty where it does."""
    watch, feed = ClientWatch(question), recorded_feed(wave)
    judged = void_if_late(question, wave, stages, partial(judgements, question))
    return [watch.late(feed, number) or each.stretch.void for number, each in enumerate(judged)]


def _sent(before: Searched) -> Iterator[tuple[Wave, list[tuple[str, str]]]]:
    """Each wave once, with the purposes of its stages and why some of them count for nothing."""
    explored, names = before.explored, {name_of(wave) for wave in before.explored.waves}
    yield from zip(explored.waves, explored.marks, strict=True)
    for each in before.confirmed:
        if name_of(each.wave) not in names:
            yield each.wave, [(each.stage.stretch.purpose, each.spoilt)]
