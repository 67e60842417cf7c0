"""A server that scales while a wave runs: how many instances it had when, and how long each step took. Pure.

Times are seconds after wave start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.instances import Count, Followed, ScalingEvent
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan

SAME_MOMENT_S = 15.0
"""A service that scales stamps what it did so near to when we saw it: polls and clocks are not exact."""

_ASKED_FOR = re.compile(r"(?:desired|minimum) instance count to (\d{1,9})\b")


@dataclass(frozen=True, slots=True)
class Rise:
    """The load rose at ``at_s``: ``text`` says from what to what, and in which stage."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """A number of instances that was asked for in place of another, and what went before and after; None: not seen.

    ``asked_s`` is None where only those that serve are counted. ``load_rose_s``, ``alarm_s``: the last before it.
    """

    before: float
    after: float
    asked_s: float | None
    served_s: float | None
    load_rose_s: float | None = None
    alarm_s: float | None = None

    @property
    def is_growth(self) -> bool:
        """Tells whether it is more instances."""
        return self.after > self.before

    @property
    def from_rise_s(self) -> float | None:
        """From the load's rise until they served."""
        return None if self.served_s is None or self.load_rose_s is None else self.served_s - self.load_rose_s


@dataclass(frozen=True, slots=True)
class Scaling:
    """The instances of one variant or query during the wave.

    ``steps``: the counts where they differ from the one before, on the wave's clock, the first at its start or at the
    first count.
    """

    followed: Followed
    steps: tuple[Count, ...]
    events: tuple[ScalingEvent, ...]
    changes: tuple[Change, ...]

    @property
    def is_steady(self) -> bool:
        """Tells whether as many instances served all the time."""
        return len({step.current for step in self.steps}) < 2

    @property
    def path(self) -> str:
        """2 -> 5: the numbers that served, of many the first, the extremes and the last."""
        served = [step.current for step in self.steps]
        levels = [level for place, level in enumerate(served) if place == 0 or level != served[place - 1]]
        if len(levels) > _MOST_LEVELS:
            levels = [levels[0], max(levels), min(levels), levels[-1]]
        return " -> ".join(f"{level:g}" for level in levels)


_MOST_LEVELS = 6
_MOST_STEPS, _FEWEST_STEPS = 10_000, 10
"""Of all servers together and of each: a number that never rests is looked at less often than it was counted."""


def scalings(facts: WaveFacts) -> list[Scaling]:
    """Each followed number of instances on the wave's clock."""
    start, risen = facts.window.start_unix_ns / NS, rises(facts.plan)
    most = max(_FEWEST_STEPS, _MOST_STEPS // max(len(facts.instances), 1))
    return [_scaling(each, start, risen, most) for each in facts.instances]


def rises(plan: WavePlan) -> list[Rise]:
    """When the load rose, by the plan: at the beginning, and where a stage has a higher rate than the one before."""
    load, begin = plan.load, -plan.warmup_ns / NS
    if not isinstance(load, OpenLoop):
        return [Rise(begin, load.text if load.has_users else f"{load.concurrency:,} requests in flight")]
    if load.replay is not None:
        return [Rise(0.0, load.text)]
    if not load.stages:
        return [Rise(begin, f"{load.rate.normalize():f} requests/s")]
    found: list[Rise] = []
    at = rate = 0.0
    for name, stage in zip(load.stage_names, load.stages, strict=True):
        first, last = float(stage.from_rps), float(stage.to_rps)
        if max(first, last) > rate:
            text = f"{rate:g} to {max(first, last):g} requests/s (stage {name})"
            found.append(Rise(begin if not found and at == 0 else at, text))
        at, rate = at + float(stage.duration_s), last
    return found


def _scaling(followed: Followed, start: float, risen: Sequence[Rise], most: int) -> Scaling:
    every = list(_steps([replace(count, at=_since(start, count.at)) for count in followed.counts]))
    steps = every if len(every) <= most else list(_steps(every[:: -(-len(every) // most)]))
    events = sorted((_moved(event, start) for event in followed.events), key=lambda event: event.at)
    changes_in = _asked if any(step.desired is not None for step in steps) else _served
    changes = tuple(_explained(change, events, risen) for change in changes_in(steps))
    return Scaling(followed, tuple(steps), tuple(events), changes)


def _moved(event: ScalingEvent, start: float) -> ScalingEvent:
    return replace(event, at=_since(start, event.at), done=None if event.done is None else _since(start, event.done))


def _since(start: float, at: float) -> float:
    """To the millisecond: unix seconds have no more to tell."""
    return round(at - start, 3)


def _steps(counts: Sequence[Count]) -> Iterator[Count]:
    """The counts that differ from the one before. What was counted before the wave is its state at its start."""
    ordered = sorted(counts, key=lambda count: count.at)
    earlier = [count for count in ordered if count.at <= 0]
    last = None
    for count in [*(replace(each, at=0.0) for each in earlier[-1:]), *ordered[len(earlier) :]]:
        state = (count.current, count.desired, count.status)
        if state != last:
            yield count
        last = state


def _asked(steps: Sequence[Count]) -> Iterator[Change]:
    """A change each time another number is asked for; it is served when as many are there, before the next is asked."""
    wanted = [step for step in steps if step.desired is not None]
    at = [place for place, (a, b) in enumerate(pairwise(wanted), 1) if a.desired != b.desired]
    for place, until in pairwise([*at, len(wanted)]):
        step, before = wanted[place], wanted[place - 1]
        goal, had = step.desired or 0.0, before.desired or 0.0
        there = (each.at for each in wanted[place:until] if _reached(each.current, had, goal))
        yield Change(had, goal, step.at, next(there, None))


def _reached(current: float, had: float, goal: float) -> bool:
    return current >= goal if goal > had else current <= goal


def _served(steps: Sequence[Count]) -> Iterator[Change]:
    """A change each time another number serves: nobody reports what was asked for."""
    for before, after in pairwise(steps):
        if before.current != after.current:
            yield Change(before.current, after.current, None, after.at)


def _explained(change: Change, events: Sequence[ScalingEvent], risen: Sequence[Rise]) -> Change:
    """The change with what the service and the plan report about it: its own stamps are more exact than our polls."""
    seen = change.asked_s if change.asked_s is not None else change.served_s
    assert seen is not None
    instants = [event.at for event in events if event.kind == "asked" and event.instances == change.after]
    if change.asked_s is None:  # then we saw them serve, which is when it was done
        near = [at for at in instants if at <= seen][-1:]
    else:
        there = seen if change.served_s is None else change.served_s
        near = [at for at in instants if seen - SAME_MOMENT_S <= at <= max(seen, there)]
        near.sort(key=lambda at: abs(at - seen))
    asked = near[0] if near else change.asked_s
    until = (seen if asked is None else asked) + 1
    alarms = [event.at for event in events if event.kind == "alarm" and event.at <= until]
    rose = [rise.at_s for rise in risen if rise.at_s <= (alarms[-1] if alarms else until)]
    return replace(
        change,
        asked_s=asked,
        alarm_s=alarms[-1] if alarms else None,
        load_rose_s=rose[-1] if rose and change.is_growth else None,
    )
