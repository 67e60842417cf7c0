"""Limits on values of the user's own: what requests reported at each rate, and where a limit is violated. Pure.

While a wave runs, a stretch that surely misses one counts as if all its requests were over. What is answered comes
from the stretches when the wave is over, and from the waves that confirm.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.wording import number_text
from server_capacity.search.answer import Estimate, Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.records.columns import Floats

SAME_RATE = 0.05
"""Stretches whose rates differ by less than this share are judged together."""
SURELY = 2.6
"""A mean is on its side of a limit by so many standard errors: of many stretches one in a hundred may err."""
LEAST_BLOCKS = 5
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Sums(NamedTuple):
    """The number of a second's requests that reported a value, the sums of their scores and of the squares."""

    of: int
    total: float
    squares: float


@dataclass(frozen=True, slots=True)
class UserLimit:
    """A limit on the mean of a metric or, where a share is ``allowed``, on the share of requests beyond ``bound``."""

    expression: str
    metric: str
    op: str
    bound: float
    allowed: float | None = None

    @classmethod
    def of(cls, slo: Slo) -> UserLimit:
        """The limit that an ``--slo`` is for a search. BenchmarkError for what a search cannot keep."""
        if slo.stage or slo.stat in ("min", "max"):
            raise BenchmarkError(
                f"--slo {slo.expression!r} is not a limit that a capacity can be searched for.",
                f"Write the mean or a percentile: {slo.metric}.mean{slo.op}{slo.limit:g}.",
            )
        if slo.stat == "mean":
            return cls(slo.expression, slo.metric, slo.op, slo.limit)
        below = Decimal(slo.stat[1:]) / 100
        allowed = 1 - below if slo.op in ("<", "<=") else below
        return cls(slo.expression, slo.metric, slo.op, slo.limit, float(allowed))

    @property
    def target(self) -> float:
        """The mean of scores at which the limit is just kept, or just not."""
        return self.bound if self.allowed is None else self.allowed

    def scores(self, values: Floats) -> Floats:
        """The values whose mean is compared with the target: themselves, or 1 for each that is beyond the bound."""
        return values if self.allowed is None else 1.0 - _OPERATORS[self.op](values, self.bound)

    def kept(self, mean: float) -> bool:
        """Tells whether a mean of scores keeps the limit."""
        return bool(_OPERATORS[self.op](mean, self.bound)) if self.allowed is None else mean <= self.allowed


@dataclass(frozen=True, slots=True)
class UserEstimate:
    """A limit's estimate; ``reason``: why it has no rate, or what of it."""

    limit: UserLimit
    estimate: Estimate
    reason: str = ""


class _Group(NamedTuple):
    """Stretches at about one rate: the mean of their scores, and whether that is surely kept, or surely not."""

    rate: float
    mean: float
    kept: bool
    sure: bool


def judge_user(limit: UserLimit, sums: Sequence[Sums]) -> Literal["holds", "fails", "cannot_tell"]:
    """Tells whether a wave kept a limit; it fails where chance does not explain it."""
    found = _judged(limit, 0.0, sums)
    if found is None:
        return "cannot_tell"
    return "holds" if found.kept else "fails" if found.sure else "cannot_tell"


def user_estimate(limit: UserLimit, stretches: Iterable[tuple[float, Sequence[Sums]]]) -> UserEstimate:
    """Between which rates a limit is violated: the highest that surely kept it below all that surely did not.

    ``stretches``: the rate of each and what was reported in it.
    """
    groups = [group for rate, sums in _pooled(stretches) if (group := _judged(limit, rate, sums)) is not None]
    if not groups:
        return _unknown(limit, f"no ok request reported {limit.metric}")
    broken = next((group for group in groups if group.sure and not group.kept), None)
    kept = [group for group in groups if group.sure and group.kept]
    if broken is None and not kept:
        return _unknown(limit, f"{_group_text(limit, groups[-1])} is too close to the limit to decide")
    if broken is None:
        return UserEstimate(limit, Estimate(limit.expression, kept_everywhere=True))
    below = [group for group in kept if group.rate < broken.rate]
    if not below:
        return _never(limit, groups, broken, kept)
    last = below[-1]
    share = (limit.target - last.mean) / (broken.mean - last.mean)
    rate = last.rate + (broken.rate - last.rate) * min(max(share, 0.0), 1.0)
    return UserEstimate(limit, Estimate(limit.expression, rate, Interval(last.rate, broken.rate)))


def _never(limit: UserLimit, groups: Sequence[_Group], broken: _Group, kept: Sequence[_Group]) -> UserEstimate:
    """It was missed at a rate, and kept surely at none below."""
    reason = f"{_group_text(limit, broken)} at {broken.rate:.4g}"
    if kept:
        reason += f", although {kept[-1].rate:.4g} met it: it may change with time, for example while a cache fills"
    if groups[0] is broken:
        return UserEstimate(limit, Estimate(limit.expression, 0.0, Interval(0.0, broken.rate)), reason)
    return _unknown(limit, f"{reason}; below that, it is too close to the limit to decide")


def _group_text(limit: UserLimit, group: _Group) -> str:
    value = number_text(group.mean, limit.target)
    return f"{limit.metric} has a mean of {value}" if limit.allowed is None else f"{value} of the requests are over it"


def _unknown(limit: UserLimit, reason: str) -> UserEstimate:
    return UserEstimate(limit, Estimate(limit.expression), reason)


def _pooled(stretches: Iterable[tuple[float, Sequence[Sums]]]) -> list[tuple[float, list[Sums]]]:
    """The seconds at about one rate together, by rate; that of a group is the mean over its requests."""
    groups: list[list[tuple[float, Sequence[Sums]]]] = []
    for rate, sums in sorted(stretches, key=lambda stretch: stretch[0]):
        if groups and rate <= groups[-1][0][0] * (1 + SAME_RATE):
            groups[-1].append((rate, sums))
        else:
            groups.append([(rate, sums)])
    found = []
    for group in groups:
        counts = [sum(each.of for each in sums) for _, sums in group]
        if sum(counts):
            rate = sum(rate * count for (rate, _), count in zip(group, counts, strict=True)) / sum(counts)
            found.append((rate, [each for _, sums in group for each in sums]))
    return found


def _judged(limit: UserLimit, rate: float, sums: Sequence[Sums]) -> _Group | None:
    """The mean over some seconds, and whether it is on its side of the limit; None where nothing was reported.

    Scores that are all 0 or 1 have the variance of such with the limit's own share; that of others is what was seen.
    Seconds that resemble each other more than independent requests would make the error larger (a ratio's, as Cochran
    has it: Sampling Techniques, 1977, 6.4).
    """
    of, total, squares = (sum(each[place] for each in sums) for place in range(3))
    if not of:
        return None
    mean, target = total / of, limit.target
    are_shares = squares == total and 0 <= target <= 1
    variance = target * (1 - target) if are_shares else max(squares / of - mean * mean, 0.0) * of / max(of - 1, 1)
    blocks = [each for each in sums if each.of]
    residuals = sum((each.total - mean * each.of) ** 2 for each in blocks)
    by_block = residuals * len(blocks) / (len(blocks) - 1) if len(blocks) >= LEAST_BLOCKS else 0.0
    error = math.sqrt(max(variance * of, by_block)) / of
    kept = limit.kept(mean)
    few = of < LEAST_BLOCKS and not are_shares
    return _Group(rate, mean, kept, not few and abs(mean - target) >= SURELY * error)
