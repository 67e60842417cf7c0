"""The server's instances during the wave in words and in summary.json: what changed, when, and what it cost. Pure."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from inference_benchmarker.facts.instances import INFERRED
from inference_benchmarker.facts.scaling import rises, scalings
from inference_benchmarker.report.instance_numbers import (
    FollowedInstances,
    InstanceEvent,
    Instances,
    InstanceStep,
    LimitsMissed,
)
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.wording import INDENT, length_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.scaling import Change, Rise, Scaling
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.verdict.missed_time import MissedTime
    from inference_benchmarker.verdict.verdict import Verdict

_MOST_MOMENTS, _MOST_SPANS, _LONG = 40, 5, 200
_LABEL = f"{INDENT}{'Instances:':<17} "
_STATUSES = ("Failed", "RollingBack", "UpdateRollbackFailed", "OutOfService")
"""The states of an endpoint in which it does not become what was asked for."""


def instance_lines(facts: WaveFacts, verdict: Verdict) -> Iterator[str]:
    """A line that answers first, then the events of each variant whose instances were followed."""
    found = scalings(facts)
    for scaling in found:
        of = f"{one_line(scaling.followed.of)}: " if len(found) > 1 else ""
        yield _LABEL + of + "; ".join(_answer(scaling, verdict.missed))
    for scaling in found:
        if not scaling.is_steady or scaling.changes or scaling.events:
            yield from _table(scaling, rises(facts.plan))
    if verdict.missed is not None and any(not scaling.is_steady or scaling.changes for scaling in found):
        yield from _missed_lines(verdict.missed)
    for scaling in found:
        yield from (f"{INDENT}{one_line(remark, _LONG)}" for remark in scaling.followed.remarks)


def instances_of(facts: WaveFacts, verdict: Verdict) -> Instances | None:
    """The key ``instances`` of summary.json; None where nobody was followed."""
    if not facts.instances:
        return None
    risen, missed = rises(facts.plan), verdict.missed
    return Instances(
        [_followed(scaling, risen) for scaling in scalings(facts)],
        None
        if missed is None
        else LimitsMissed(list(missed.limits), missed.seconds, missed.step_s, list(missed.spans), missed.failed),
    )


def moments(scaling: Scaling, risen: Sequence[Rise]) -> list[InstanceEvent]:
    """Everything that happened, in order: by the plan, by the service that scales, and by the counts."""
    found = [InstanceEvent(rise.at_s, "load", f"the load rose: {rise.text}") for rise in risen]
    changed = {(change.asked_s, change.after) for change in scaling.changes}
    found += [
        InstanceEvent(event.at, event.kind, event.text, _since(event.at, event.kind, scaling.changes))
        for event in scaling.events
        if event.kind != "asked" or (event.at, event.instances) not in changed
    ]
    for change in scaling.changes:
        found.extend(_of_change(change))
    found += [
        InstanceEvent(step.at, "failed", f"the endpoint's status is {step.status}")
        for step in scaling.steps
        if step.status in _STATUSES
    ]
    return sorted(found, key=lambda moment: moment.at_s)


def _of_change(change: Change) -> Iterator[InstanceEvent]:
    rose = change.load_rose_s
    if change.asked_s is not None:
        text = f"{_instances(change.after)} requested instead of {change.before:g}"
        yield InstanceEvent(change.asked_s, "asked", text, None if rose is None else change.asked_s - rose)
    if change.served_s is not None:
        yield InstanceEvent(change.served_s, "served", f"{_instances(change.after)} served", change.from_rise_s)


def _since(at_s: float, kind: str, changes: Sequence[Change]) -> float | None:
    """Of an alarm that a change followed: how long after the load's rise it fired."""
    rose = (change.load_rose_s for change in changes if change.alarm_s == at_s and kind == "alarm")
    known = next((each for each in rose if each is not None), None)
    return None if known is None else at_s - known


def _answer(scaling: Scaling, missed: MissedTime | None) -> Iterator[str]:
    if not scaling.steps:
        yield "not counted"
    elif scaling.is_steady:
        inferred = f" ({INFERRED})" if scaling.followed.is_inferred else ""
        yield f"{scaling.steps[0].current:g} throughout{inferred}"
    else:
        yield scaling.path
    unserved = [change for change in scaling.changes if change.served_s is None][-1:]
    yield from (
        f"{change.after:g} were requested, but not all of them were in service by the end"
        for change in unserved
        if change == scaling.changes[-1]
    )
    if missed is not None and missed.spans:
        yield f"limits were missed for {length_text(missed.seconds)}"
    elif missed is not None and not scaling.is_steady:
        yield "no limit was missed"
    growth = list(takewhile(lambda change: change.is_growth, scaling.changes))
    served = [change.served_s for change in growth if change.served_s is not None]
    if growth and growth[0].load_rose_s is not None and served:
        yield f"in service {length_text(served[-1] - growth[0].load_rose_s)} after the load rose"


def _table(scaling: Scaling, risen: Sequence[Rise]) -> Iterator[str]:
    found = moments(scaling, risen)
    shown = found[:_MOST_MOMENTS]
    texts = [one_line(moment.text, _LONG) for moment in shown]
    times = [f"{moment.at_s:.1f} s" for moment in shown]
    since = ["" if moment.since_s is None else f"+{length_text(moment.since_s)}" for moment in shown]
    wide, long = (max(map(len, column), default=0) for column in (times, since))
    yield f"{INDENT}{one_line(scaling.followed.of)} ({one_line(scaling.followed.source, _LONG)})"
    for time, later, text in zip(times, since, texts, strict=True):
        yield f"{INDENT}  {time:>{wide}}  {later:>{long}}  {text}"
    if len(found) > len(shown):
        yield f"{INDENT}  … and {len(found) - len(shown)} more, in summary.json"


def _missed_lines(missed: MissedTime) -> Iterator[str]:
    """When limits were missed, and what failed then."""
    if not missed.spans:
        return
    spans = [f"{start:g} s to {end:g} s" for start, end in missed.spans[:_MOST_SPANS]]
    more = f" and {len(missed.spans) - _MOST_SPANS} times more" if len(missed.spans) > _MOST_SPANS else ""
    yield f"{INDENT}  Limits ({one_line(', '.join(missed.limits), _LONG)}) were missed from {', '.join(spans)}{more}."
    if missed.failed:
        yield f"{INDENT}  Of the requests due then {missed.failed:,} failed or got no answer."


def _followed(scaling: Scaling, risen: Sequence[Rise]) -> FollowedInstances:
    return FollowedInstances(
        scaling.followed.of,
        scaling.followed.source,
        [InstanceStep(step.at, step.current, step.desired, step.status) for step in scaling.steps],
        [_change(change) for change in scaling.changes],
        moments(scaling, risen),
        list(scaling.followed.remarks),
    )


def _change(of: Change) -> dict[str, float | None]:
    times = {name: getattr(of, name) for name in ("load_rose_s", "alarm_s", "asked_s", "served_s")}
    return {"from": of.before, "to": of.after, **times}


def _instances(number: float) -> str:
    return f"{number:g} instance{'' if number == 1 else 's'}"
