"""Waves -> what was measured at each load: repetitions together, and a name for each that no other one has. Pure."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.facts.stages import stages_of
from inference_benchmarker.plan.load import ARRIVALS_IN_WORDS, ClosedLoop, OpenLoop
from visualization.comparison.conditions import Condition, in_words, load_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.wave.wave import Wave

_LOAD = "load"


class Part(NamedTuple):
    """A wave, or a steady stage of it, with its conditions by name: first of all its load."""

    wave: Wave
    facts: WaveFacts
    summary: Summary
    stage: str
    conditions: Mapping[str, Condition]


class Load(NamedTuple):
    """The parts that were measured in the same way. ``text``: ``8 in flight``, and what tells it from others of that.

    ``offered``: the number by which loads are put in order.
    """

    text: str
    offered: float
    parts: tuple[Part, ...]


def loads_of(waves: Sequence[Wave]) -> list[Load]:
    """Repetitions have the same load, prompts, settings and all else that shapes requests."""
    groups: list[list[Part]] = []
    for wave, conditions in zip(waves, in_words(waves), strict=True):
        for part in parts_of(wave, conditions):
            same = next((group for group in groups if not any(_apart(group[0], part))), None)
            if same is None:
                groups.append([part])
            else:
                same.append(part)
    names = _names([group[0] for group in groups])
    return [Load(name, _offered(group[0].facts), tuple(group)) for name, group in zip(names, groups, strict=True)]


def parts_of(wave: Wave, conditions: Mapping[str, Condition]) -> Iterator[Part]:
    """The wave, or its stages of one rate; none of a load that changes all the time."""
    load = wave.plan.load
    if isinstance(load, ClosedLoop) or not load.stages:
        if isinstance(load, OpenLoop) or not load.populations:
            yield Part(wave, wave, wave.summary, "", {**conditions, _LOAD: _load(wave.plan)})
        return
    for found, row in zip(stages_of(wave), wave.summary.stages, strict=True):
        if row.from_rps == row.to_rps > 0:
            own = {**conditions, _LOAD: _load(found.facts.plan)}
            yield Part(wave, found.facts, row.summary, found.name, own)


def _load(plan: WavePlan) -> Condition:
    """Its words say what the name of a load leaves out."""
    load, found = plan.load, load_of(plan)
    if isinstance(load, OpenLoop) and load.replay is None:
        return Condition(found.key, ARRIVALS_IN_WORDS[load.arrivals])
    return found


def _apart(one: Part, other: Part) -> Iterator[str]:
    """The names of the conditions that they do not have in common."""
    for name in dict.fromkeys([*one.conditions, *other.conditions]):
        found, beside = one.conditions.get(name), other.conditions.get(name)
        if found is None or beside is None or found.key != beside.key:
            yield name


def _names(parts: Sequence[Part]) -> list[str]:
    """The load of each; where two of one load differ, all have the words of what these differ by."""
    texts = [_load_text(part) for part in parts]
    pairs = combinations(zip(texts, parts, strict=True), 2)
    telling = dict.fromkeys(name for (a, one), (b, other) in pairs if a == b for name in _apart(one, other))
    names = [
        ", ".join([text, *(_words(part, name) for name in telling)]) for text, part in zip(texts, parts, strict=True)
    ]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: at + 1].count(name)})" for at, name in enumerate(names)
    ]


def _words(part: Part, name: str) -> str:
    found = part.conditions.get(name)
    return f"no {name}" if found is None else found.text


def _offered(facts: WaveFacts) -> float:
    load = facts.plan.load
    return float(load.concurrency) if isinstance(load, ClosedLoop) else float(load.rate)


def _load_text(part: Part) -> str:
    """``8 in flight``, ``6/s``, ``peak 24/s``."""
    load = part.facts.plan.load
    if part.stage and isinstance(load, OpenLoop):
        return f"{part.stage} {load.rate.normalize():f}/s"
    return part.facts.load_text.replace(" requests/s", "/s")
