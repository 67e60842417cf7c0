"""The wait for each metric after a wave: one rule for the warning, the announcement, the progress and the end. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from server_capacity.metrics.cloudwatch.block import Variant
    from server_capacity.metrics.cloudwatch.queries import Publisher, Wanted

LIMIT_PERIODS, LEAST_LIMIT_S, MOST_LIMIT_S = 5, 120.0, 900.0
"""Beyond its lag a metric is waited for this many periods, within these limits."""


def wait_limit(period: float) -> float:
    """The seconds after the wave and its lag for which a metric is waited."""
    return min(MOST_LIMIT_S, max(LEAST_LIMIT_S, LIMIT_PERIODS * period))


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds after the end of the wave.

    ``absent``: the variants that SageMaker does not have; ``silent``: the publishers of which CloudWatch had nothing in
    the days before the wave.
    """

    wanted: Sequence[Wanted]
    absent: Collection[Variant] = ()
    silent: Collection[Publisher] = ()

    def usual_s(self, wanted: Wanted) -> float:
        """The time by which a metric has usually come; 0 where it is not waited for."""
        if self._is_skipped(wanted):
            return 0.0
        usual = self.first_s(wanted.publisher) if wanted.publisher in self.silent else wanted.lag + wanted.period
        return usual if wanted.wait is None else min(usual, wanted.wait)

    def most_s(self, wanted: Wanted, *, heard: bool) -> float:
        """The time for which it is waited for at most; ``heard``: something of its publisher has come, or may have."""
        if not heard and self.is_nowhere(wanted):
            return 0.0
        if wanted.wait is not None:
            return wanted.wait
        if not heard and wanted.publisher in self.silent:
            return self.first_s(wanted.publisher)
        return wanted.lag + wait_limit(wanted.period)

    def first_s(self, publisher: Publisher) -> float:
        """The time for which a publisher that never had anything is waited for: by the metrics that were asked for."""
        return max(each.lag + each.period for each in self.wanted if each.asked and each.publisher == publisher)

    def is_nowhere(self, wanted: Wanted) -> bool:
        """Tells whether neither SageMaker nor CloudWatch knows the metric's endpoint."""
        return wanted.variant in self.absent and wanted.publisher in self.silent

    def announcement(self, over_s: float) -> str:
        """The words for the wait that begins so long after the wave; nothing where it is shorter than a second."""
        left = max(map(self.usual_s, self.wanted)) - over_s
        if left < 1:
            return ""
        usual = max(each.lag + each.period for each in self.wanted if not self._is_skipped(each))
        arrival = f"they usually arrive {usual:g} s after the wave"
        given = [each.wait for each in self.wanted if each.wait is not None]
        if len(given) < len(self.wanted):
            return f", waiting {left:.0f} s more ({arrival})"
        if max(given) <= usual:
            return f", waiting {left:.0f} s at most ({arrival})"
        return f", waiting {left:.0f} s more ({arrival}, {max(given):g} s at most)"

    def _is_skipped(self, wanted: Wanted) -> bool:
        """Tells whether it does not lengthen the wait; nor does a count that nobody asked for, where nobody counts."""
        counts_nothing = wanted.publisher in self.silent or wanted.variant in self.absent
        return self.is_nowhere(wanted) or (counts_nothing and not wanted.asked)
