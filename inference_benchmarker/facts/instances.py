"""The instances of a server as they were followed while a wave ran: counts, and the events of what scales them. Pure.

Instants are unix seconds by this client's clock.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from inference_benchmarker.data.typed import require

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

EventKind = Literal["alarm", "asked", "failed"]
"""An alarm fired; a number of instances was asked for; it was not given, or not asked for, and why."""


@dataclass(frozen=True, slots=True)
class Count:
    """The instances at one instant: ``current`` serve, ``desired`` are asked for (None where it is unknown)."""

    at: float
    current: float
    desired: float | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class ScalingEvent:
    """Reported by the service that scales. ``instances``: asked for; ``done``: when they were there (None: not yet)."""

    at: float
    kind: EventKind
    text: str
    instances: float | None = None
    done: float | None = None


INFERRED = "inferred from SampleCount"
"""The source of numbers that nobody counted."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The instances ``of`` one variant or query. ``source``: who was asked; ``remarks``: what could not be, and why."""

    of: str
    source: str
    counts: tuple[Count, ...] = ()
    events: tuple[ScalingEvent, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_inferred(self) -> bool:
        """Tells whether the numbers follow from CloudWatch's samples."""
        return self.source == INFERRED

    def lines(self) -> Iterable[dict[str, Any]]:
        """It as the objects of ``instances.jsonl``, one a line; ``gathered`` is the way back."""
        yield begun(self.of, self.source)
        yield from (count_row(self.of, count) for count in self.counts)
        yield from ({"of": self.of, "event": asdict(event)} for event in self.events)
        yield from ({"of": self.of, "remark": remark} for remark in self.remarks)


def uncounted(of: str) -> str:
    """The beginning of the remark on instances that could not be counted."""
    return f"The instances of {of} were not counted"


class CannotCountError(Exception):
    """The instances could not be counted; the text is a sentence's part, empty where there is nothing to count.

    ``final``: nor will they be later.
    """

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class InstanceSource(Protocol):
    """Somebody who knows the number of instances of one variant, or of one query's replicas."""

    @property
    def of(self) -> str:
        """The variant or query whose instances they are, for people."""

    @property
    def source(self) -> str:
        """The one that is asked, for people."""

    def count(self) -> Count:
        """The instances now, in a call of a few seconds at most. CannotCountError with the reason."""

    def scaling_events(self, start: float, end: float) -> tuple[list[ScalingEvent], list[str]]:
        """The events of the service that scales them, and sentences on what it did not report. Raises nothing of it."""


def begun(of: str, source: str) -> dict[str, Any]:
    """The line that says whose instances follow."""
    return {"of": of, "source": source}


def count_row(of: str, count: Count) -> dict[str, Any]:
    """The line of one count."""
    return {"of": of, "count": asdict(count)}


def gathered(lines: Iterable[dict[str, Any]]) -> tuple[Followed, ...]:
    """The content of lines that ``Followed.lines`` or a follower wrote, in order.

    ValueError (TypeError, KeyError) for what is none.
    """
    found: dict[str, tuple[str, list[Count], list[ScalingEvent], list[str]]] = {}
    for line in lines:
        of = _made(str, line["of"])
        if "source" in line:
            found.setdefault(of, (_made(str, line["source"]), [], [], []))
            continue
        _, counts, events, remarks = found[of]
        if "count" in line:
            counts.append(_made(Count, line["count"]))
            if counts[-1].current < 0:
                raise ValueError(f"{counts[-1].current:g} instances are too few")
        elif "event" in line:
            events.append(_made(ScalingEvent, line["event"]))
        else:
            remarks.append(_made(str, line["remark"]))
    return tuple(
        Followed(of, source, tuple(counts), tuple(events), tuple(remarks))
        for of, (source, counts, events, remarks) in found.items()
    )


def renewed_instances(before: Iterable[Followed], now: Iterable[Followed]) -> tuple[Followed, ...]:
    """An earlier reading with what a later one brought: counts that were taken stay, events are the last ones."""
    rows = {each.of: each for each in before}
    for each in now:
        old = rows.get(each.of)
        if old is not None:
            inferred = old.counts and each.source == INFERRED != old.source
            newer = each if each.counts and not inferred else old
            counts, source = newer.counts, newer.source
            each = replace(each, source=source, counts=counts, events=each.events or old.events)  # noqa: PLW2901 - the same, renewed
        rows[each.of] = each
    return tuple(rows.values())


def _made(kind: type[T], value: Any) -> T:
    made = value if kind is str else kind(**value)
    require(made, kind, kind.__name__.lower())
    return cast("T", made)
