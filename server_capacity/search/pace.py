"""The pace of an endpoint: its answers, the most it completes, and its memory for a change of rate. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.stretch import Stretch

UNKNOWN_RELAXATION_ANSWERS = 20.0
MOST_LOAD = 0.94


@dataclass(frozen=True, slots=True)
class Pace:
    """``answer_s``: the mean time of an answer, by Little's law; ``most``: the rate completed when overloaded.

    ``most`` is good to ``most_sd`` of itself.
    """

    answer_s: float = 0.0
    most: float | None = None
    most_sd: float = 0.0

    def relaxation_s(self, rate: float) -> float:
        """The time after which the queue has nearly forgotten the rate before: 1 / (most (1 - sqrt(load))^2)."""
        if self.most is None:
            return UNKNOWN_RELAXATION_ANSWERS * self.answer_s
        root = math.sqrt(min(rate / self.most, MOST_LOAD))
        return max(self.answer_s, 1.0 / (self.most * (1.0 - root) ** 2))


class Flow(NamedTuple):
    """Of a stretch, as far as it was counted: seconds, what was sent in it, and what of that was not answered then."""

    seconds: float
    sent: int
    waiting: int

    @property
    def completed_rate(self) -> float:
        """Answers a second."""
        return (self.sent - self.waiting) / self.seconds


def flow_of(stretch: Stretch) -> Flow | None:
    """The flow of a stretch that counts; None where nothing was sent."""
    parts = [part for part in stretch.slices if part.start_s < stretch.end_s - 1e-6]
    sent = sum(part.sent for part in parts)
    if stretch.void or stretch.rate <= 0 or not sent:
        return None
    waiting = sent - sum(part.answered for part in parts)
    # Counted by due time every request has its answer: what was left when the stretch ended is known, then.
    return Flow(parts[-1].end_s - stretch.start_s, sent, waiting or min(sent, stretch.in_flight))


def overloaded(stretch: Stretch, answer_s: float) -> bool:
    """Tells whether a stretch sent more than was completed: its backlog is beyond what stays in flight anyway."""
    flow = flow_of(stretch)
    return flow is not None and flow.waiting - 1.5 * stretch.rate * answer_s > max(6.0, 2.0 * math.sqrt(flow.sent))


def pace_of(stretches: Sequence[Stretch]) -> Pace:
    """The pace of what has been seen; stretches that are void say nothing of it."""
    flows = [(stretch, flow) for stretch in stretches if (flow := flow_of(stretch)) is not None]
    if not flows:
        return Pace()
    answer_s = median(flow.waiting / stretch.rate for stretch, flow in flows)
    full = [flow for stretch, flow in flows if flow.seconds > 2 * answer_s and overloaded(stretch, answer_s)]
    completed, seconds = sum(flow.sent - flow.waiting for flow in full), sum(flow.seconds for flow in full)
    if completed <= 0:
        return Pace(answer_s)
    return Pace(answer_s, completed / seconds, max(0.02, 1.0 / math.sqrt(completed)))
