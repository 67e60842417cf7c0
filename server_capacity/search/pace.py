"""The pace of an endpoint: its answers, the most it completes, and its memory for a change of rate. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.search.stretch import Slice, Stretch

UNKNOWN_RELAXATION_ANSWERS = 20.0
MOST_LOAD = 0.997
LEAST_SD, LEAST_COUNT_SD = 0.03, 0.005
CLEAR_BACKLOG = 0.05  # of what was sent, from which a stretch was at saturation all along
FEW_FLOWS = 4
NEAR, NEAR_BACKLOG = ("below", "above"), 0.2  # purposes, and a share of what was sent
CHANCE = 2.5  # standard errors: of some twenty stretches, one in eight times one is beyond them
# The time of an answer follows from so many stretches or answers at low rates, or so many answers anywhere.
CALM, SOME, TELLING, MANY = 8, 8, 20, 100
MOSTLY = 0.8  # of what was sent
FAR_LONGER = 3.0  # times a mean time, which chance does not make it
HARDLY = 0.05  # of the mean time while a backlog grows, at least
GROWN = 1.8  # times as long: within seconds, no load that is kept up with does that often
FILLING = 0.5  # of an answer: so long nothing is completed by an idle endpoint that is overloaded from then on
ABOVE, ROUNDS = 1.04, 4  # over the rate served: where more arrives, the endpoint has hardly ever nothing to do
IDLE = 0.75  # the mean of the variances of what arrives and of what is served, over those of independent requests


@dataclass(frozen=True, slots=True)
class Pace:
    """``answer_s``: the mean time of an answer at low rates; ``most``: the rate completed when overloaded.

    ``most`` is good to ``most_sd`` of itself; ``count_sd`` is the part of it that more counting makes less.
    """

    answer_s: float = 0.0
    most: float | None = None
    most_sd: float = 0.0
    count_sd: float = 0.0

    def relaxation_s(self, rate: float, most_load: float = MOST_LOAD) -> float:
        """The time after which the queue has nearly forgotten the rate before: 1 / (most (1 - sqrt(load))^2).

        ``most_load``: a load above it is taken for it.
        """
        if self.most is None:
            return UNKNOWN_RELAXATION_ANSWERS * self.answer_s
        root = math.sqrt(min(rate / self.most, most_load))
        return max(self.answer_s, 1.0 / (self.most * (1.0 - root) ** 2))

    def answers_in(self, seconds: float) -> float:
        """So many answers, one after the other, come in a time."""
        return seconds / self.answer_s if self.answer_s else math.inf

    def settled_load(self, seconds: float) -> float:
        """The load at which the queue forgets in so many seconds: nearer to saturation it does not settle in them."""
        return 1.0 if self.most is None else max(0.0, 1.0 - 1.0 / math.sqrt(self.most * seconds)) ** 2


class Flow(NamedTuple):
    """Of a stretch, as far as it was counted: seconds, what was sent in it, and what of that was not answered then.

    ``failed``: of what was answered, as far as that is asked for. ``inherited``: what it answered, too.
    """

    seconds: float
    sent: int
    waiting: int
    failed: int = 0
    inherited: int = 0

    @property
    def completed_rate(self) -> float:
        """Answers a second that did not fail."""
        return (self.inherited + self.sent - self.waiting - self.failed) / self.seconds

    @property
    def surely_completed_rate(self) -> float:
        """Less what is chance. Overloaded servers that share their time complete less than when they keep up."""
        return self.completed_rate - CHANCE * math.sqrt(self.completed_rate / self.seconds)


def flow_of(stretch: Stretch, failing: int | None = None, late: Sequence[Slice] = ()) -> Flow | None:
    """The flow of a stretch that counts; None where nothing was sent. Over limit number ``failing`` is what failed.

    ``late``: the answers that came after the end of their own stretch, while the wave runs.
    """
    parts = [part for part in stretch.slices if part.start_s < stretch.end_s - 1e-6]
    sent = sum(part.sent for part in parts)
    if stretch.void or stretch.rate <= 0 or not sent:
        return None
    inherited = sum(part.answered for part in late if stretch.start_s <= part.start_s < stretch.end_s - 1e-6)
    waiting = sent - sum(part.answered for part in parts)
    if not waiting:  # counted by due time every request has its answer, and what was left at either end is known
        waiting, inherited = stretch.in_flight, stretch.inherited
    failed = 0 if failing is None else sum(part.counts[failing].over for part in parts)
    waiting = min(waiting, inherited + sent - failed)
    return Flow(parts[-1].end_s - stretch.start_s, sent, waiting, failed, inherited)


def overloaded(stretch: Stretch, answer_s: float) -> bool:
    """Tells whether a stretch sent more than was completed.

    Then its backlog is beyond what stays in flight anyway, and what it inherited. Near the answer a burst looks like
    that, too, and a stretch that ended with each would show more bursts than there are.
    """
    flow = flow_of(stretch)
    if flow is None:
        return False
    usual = max(1.5 * stretch.rate * answer_s, stretch.inherited)
    grown = NEAR_BACKLOG * flow.sent if stretch.purpose in NEAR else 2.0 * math.sqrt(flow.sent)
    return flow.waiting - usual > max(6.0, grown)


def is_too_much(stretches: Sequence[Stretch], answer_s: float) -> bool:
    """Tells whether every stretch that counts was overloaded."""
    counted = [each for each in stretches if each.rate > 0 and not each.void]
    return bool(counted) and all(overloaded(each, answer_s) for each in counted)


def _is_growing(stretch: Stretch) -> bool:
    """Tells whether ever more waits, and the last requests took far longer than the first: by a backlog.

    Counted by due time only: of what has come in so far, the long answers are the last.
    """
    parts = [part for part in stretch.slices if part.sent]
    if len(parts) < 2 or any(part.answered != part.sent for part in parts) or not overloaded(stretch, 0.0):
        return False
    first, last = _ends_s(parts)
    return last > GROWN * first > 0


def _ends_s(parts: Sequence[Slice]) -> tuple[float, float]:
    return parts[0].spent_s / parts[0].answered, parts[-1].spent_s / parts[-1].answered


def _before_s(stretch: Stretch) -> float:
    """The time of an answer before a backlog grew."""
    parts = [part for part in stretch.slices if part.sent]
    first, last = _ends_s(parts)
    return max(HARDLY * first, first - (last - first) / (2 * len(parts) - 2))


def pace_of(stretches: Sequence[Stretch], failing: int | None = None) -> Pace:
    """The pace of what has been seen; stretches that are void say nothing of it.

    Over limit number ``failing`` is what failed: an endpoint that refuses does not complete it.
    """
    flows = _flows(stretches, failing)
    if not flows:
        return Pace()
    slowest = sorted(flows, key=lambda pair: pair[0].rate)
    answer_s = _unloaded_s([stretch for stretch, _ in slowest])
    answer_s = answer_s or median(flow.waiting / stretch.rate for stretch, flow in slowest[:CALM])  # by Little's law
    first_s = _answer_s(stretches)
    if first_s is not None:
        answer_s = first_s if len(flows) < FEW_FLOWS else min(first_s, answer_s)
    full = [flow for stretch, flow in flows if flow.seconds > 2 * answer_s and overloaded(stretch, answer_s)]
    full = [flow for flow in full if flow.waiting > CLEAR_BACKLOG * flow.sent] or full
    completed = sum(flow.completed_rate * flow.seconds for flow in full)
    if completed <= 0:
        return Pace(answer_s)
    rate = completed / sum(flow.seconds for flow in full)
    seconds = sum(flow.seconds - FILLING * max(0.0, answer_s - flow.inherited / rate) for flow in full)
    count_sd = max(LEAST_COUNT_SD, 1.0 / math.sqrt(completed))
    most = max(completed / seconds, *(flow.surely_completed_rate for _, flow in flows))
    return Pace(answer_s, most, max(LEAST_SD, count_sd), count_sd)


def _flows(stretches: Sequence[Stretch], failing: int | None) -> list[tuple[Stretch, Flow]]:
    late = [part for each in stretches for part in each.slices if part.start_s > each.end_s - 1e-6]
    return [(stretch, flow) for stretch in stretches if (flow := flow_of(stretch, failing, late)) is not None]


class Saturation(NamedTuple):
    """The rate at which a saturated endpoint serves, and its relative standard error."""

    rate: float
    sd: float


def served_of(stretches: Sequence[Stretch], pace: Pace, failing: int | None = None) -> Saturation | None:
    """The rate served by all stretches together at which more arrived; None where none is known to be overloaded.

    They count for the rate that was sent, whatever was completed: the best of many is good by luck.
    """
    flows, found = _flows(stretches, failing), None if pace.most is None else Saturation(pace.most, pace.count_sd)
    for _ in range(ROUNDS if found else 0):
        assert found is not None
        full = [(stretch.rate, flow) for stretch, flow in flows if stretch.rate >= ABOVE * found.rate]
        found = _pooled(full, found, pace.answer_s)
    if found is None:
        return None
    return found._replace(rate=max([found.rate, *(flow.surely_completed_rate for _, flow in flows)]))


def _pooled(full: Sequence[tuple[float, Flow]], guess: Saturation, answer_s: float) -> Saturation:
    """All that was completed, over all the time; with what the endpoint would have completed while it was idle."""
    seconds = [flow.seconds - FILLING * max(0.0, answer_s - flow.inherited / guess.rate) for _, flow in full]
    idle = [_idle(rate / guess.rate - 1.0, flow, guess.rate * answer_s) for rate, flow in full]
    completed = [flow.completed_rate * flow.seconds + lost for (_, flow), lost in zip(full, idle, strict=True)]
    total = sum(completed)
    if total <= 0 or sum(seconds) <= 0:
        return guess
    rate = total / sum(seconds)
    away = sum((one - rate * each) ** 2 / max(rate * each, 1.0) for one, each in zip(completed, seconds, strict=True))
    dispersion = max(1.0, away / max(1, len(full) - 1))
    sd = math.sqrt(dispersion * total + (sum(idle) / 2) ** 2) / total
    return Saturation(rate, max(LEAST_COUNT_SD, sd))


def _idle(above: float, flow: Flow, busy: float) -> float:
    """So many more would have been completed, had there always been something to do, on average.

    That is by how much a random walk upwards would have gone below 0 from the backlog that it began with.
    """
    backlog = max(0.0, flow.inherited - busy)
    return min(IDLE / above, math.sqrt(flow.sent)) * math.exp(-backlog * above / IDLE)


def _unloaded_s(stretches: Sequence[Stretch]) -> float:
    """The mean time of the first answers that are enough, or the least of many; 0 where times are not known."""
    answered, spent_s, usable = 0, 0.0, timed(stretches)
    for stretch in usable:
        answered, spent_s = answered + stretch.answered, spent_s + stretch.spent_s
        if answered >= TELLING:
            break
    return min([spent_s / max(answered, 1), *(each.mean_s for each in usable if each.answered >= MANY)])


def least_answer_s(stretches: Sequence[Stretch]) -> float:
    """The time of an answer, or that of fewer or before a backlog grew, where the rest took far longer.

    It says whether the time of a search is long for an answer. The pace of a search does not follow it: where few
    requests come, it is too short for the queues that build up.
    """
    usual_s = pace_of(stretches).answer_s
    counted = (each for each in stretches if each.rate > 0 and not each.void)
    usable = timed(sorted(counted, key=lambda each: each.rate))
    enough = (usable[: place + 1] for place in range(len(usable)))
    few = [some for some in enough if SOME <= sum(each.answered for each in some) < TELLING]
    less = [sum(each.spent_s for each in some) / sum(each.answered for each in some) for some in few]
    least_s = min([*less, *(_before_s(each) for each in usable if _is_growing(each))], default=usual_s)
    return usual_s if usual_s <= FAR_LONGER * least_s else least_s


def timed(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Those from which the time of an answer follows: of what is open, the slow answers are to come."""
    return [each for each in stretches if each.answered >= MOSTLY * sum(part.sent for part in each.slices)]


def _answer_s(stretches: Sequence[Stretch]) -> float | None:
    """The time of a slow answer: of a few requests at first, none came until the pause that followed was over."""
    if len(stretches) < 2 or stretches[1].rate > 0 or stretches[1].in_flight > 0:
        return None
    if not is_unanswered(stretches[0]):
        return None
    return stretches[0].seconds / 2 + stretches[1].seconds


def is_unanswered(stretch: Stretch) -> bool:
    """Tells whether something was sent, and no answer came while the stretch lasted."""
    flow = flow_of(stretch)
    return flow is not None and flow.waiting >= flow.sent
