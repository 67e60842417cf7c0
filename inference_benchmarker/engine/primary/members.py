"""The workers of a wave as the primary knows them: why it cannot start with them, and what each may have in flight."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gevent.event import Event

from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inference_benchmarker.plan.plan import WavePlan


@dataclass(slots=True)
class Member:
    """One worker as the primary knows it.

    ``ahead_ns``: by how much a report of it was written after it came, by the clocks of both; below 0 if all is well.
    """

    client_id: str = ""
    payloads: int | None = None
    in_turn: bool = False
    sessions: bool = False
    descriptors: int = 0
    error: dict[str, str] | None = None
    next_sequence: int = 0
    last_report: int = 0
    ahead_ns: int | None = None
    ledger: Ledger = field(default_factory=Ledger)
    ready: bool = False
    armed: bool = False
    over: bool = False
    overdue: bool = False


class Members:
    """All workers of a wave, by number. ``changed`` is set when one of them is ready or over.

    ``on_lost`` is called with the number of each that is gone before its last report. ``canaries``: the answers to
    canaries that one of them got before the load, ``warmed`` what it sent then to warm caches.
    """

    def __init__(self, workers: int, on_lost: Callable[[int], None]) -> None:
        self._members = [Member() for _ in range(workers)]
        self._on_lost = on_lost
        self.changed = Event()
        self.canaries: list[str | None] | None = None
        self.warmed: dict[str, float] | None = None

    def __getitem__(self, number: int) -> Member:
        return self._members[number]

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members)

    @property
    def missing(self) -> list[int]:
        """The numbers of those that have not loaded their target."""
        return [number for number, member in enumerate(self._members) if not member.ready]

    @property
    def unarmed(self) -> list[int]:
        """The numbers of those that cannot fire: they have not acknowledged the start, or are gone."""
        return [number for number, member in enumerate(self._members) if not member.armed or member.over]

    @property
    def any_over(self) -> bool:
        """Tells whether one of them is gone, or has reported all."""
        return any(member.over for member in self._members)

    @property
    def all_over(self) -> bool:
        """Tells whether each of them is gone, or has reported all."""
        return all(member.over for member in self._members)

    @property
    def all_met(self) -> bool:
        """Tells whether each of them is ready or gone."""
        return all(member.ready or member.over for member in self._members)

    def take_ready(self, msg: Any) -> None:
        """A worker has loaded its target, or says why it cannot."""
        member, ready = self._members[msg.sender], msg.data
        member.client_id, member.error = msg.node_id, ready["error"]
        member.payloads, member.in_turn = ready["payloads"], ready["in_turn"]
        member.sessions, member.descriptors = ready["sessions"], ready["descriptors"]
        if ready["canaries"] is not None:
            self.canaries = ready["canaries"]
        self.warmed = ready["warmed"] or self.warmed
        member.ready = True
        self.changed.set()

    def take_armed(self, msg: Any) -> None:
        """A worker acknowledges the start: it would fire if it were reported to."""
        self._members[msg.sender].armed = True
        self.changed.set()

    def lose(self, number: int) -> None:
        """A worker is gone; one that has reported all is not lost."""
        member = self._members[number]
        if not member.over:
            member.over = True
            self._on_lost(number)
        self.changed.set()


def problems(members: Iterable[Member]) -> list[dict[str, Any]]:
    """Why the wave cannot start; the same reason from several workers is one."""
    same = {member.error["message"]: member.error for member in members if member.error}
    found: list[dict[str, Any]] = list(same.values())
    for number, member in enumerate(members):
        if member.over:
            found.append({"message": f"Worker {number} ended before it was ready.", "hint": "", "worker": number})
    counts = {member.payloads for member in members if member.ready and not member.error}
    if len(counts) > 1:
        found.append(
            {
                "message": f"payload_factory returned lists of different lengths in different workers: "
                f"{', '.join(str(count) for count in sorted(counts, key=str))}.",
                "hint": "Arrival i sends payload i mod n in whichever worker: make the list the same everywhere.",
            }
        )
    return found


def unarmed(members: Members) -> list[dict[str, Any]]:
    """Why a wave that was ready did not start: the workers that ended instead, or else those that did not answer."""
    ended = [number for number, member in enumerate(members) if member.over]
    what = "ended before it acknowledged" if ended else "did not acknowledge"
    return [
        {"message": f"Worker {number} {what} the start, so no load was sent.", "hint": "", "worker": number}
        for number in ended or members.unarmed
    ]


def caps(plan: WavePlan, members: Iterable[Member]) -> list[int]:
    """The number of requests that each worker may have in flight."""
    workers = plan.workers
    total = plan.max_in_flight or DEFAULT_MAX_IN_FLIGHT
    shares = [max(1, len(range(number, total, workers))) for number in range(workers)]
    if plan.max_in_flight is not None:
        return shares
    return [min(share, member.descriptors) for share, member in zip(shares, members, strict=True)]
