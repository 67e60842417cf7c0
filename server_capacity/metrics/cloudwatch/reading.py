"""The data that has come and whether more will: one poll, judged. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from server_capacity.metrics.cloudwatch.buckets import MINUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.facts.server_metric import Interval
    from server_capacity.metrics.aws_failures import Failure
    from server_capacity.metrics.cloudwatch.block import Variant
    from server_capacity.metrics.cloudwatch.fetch import Answer
    from server_capacity.metrics.cloudwatch.hardware import Described
    from server_capacity.metrics.cloudwatch.queries import Wanted
    from server_capacity.metrics.cloudwatch.waits import Waits

PATIENCE_PERIODS = 3
"""A metric of which nothing has come this many periods (and its lag) after the wave is not waited for."""

FIRST_VALUES_S = 120.0
"""But where nothing has come of any, CloudWatch may just be late, often by two minutes."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The answers of one poll at ``now`` (unix seconds), beside those of the poll before.

    ``described``: what SageMaker says of the variants; ``waits``: for how long each metric is waited for.
    """

    wanted: Sequence[Wanted]
    answers: Mapping[str, Answer]
    interval: Interval
    now: float
    waits: Waits
    before: Reading | None = None
    described: Mapping[Variant, Described] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Tells whether nothing more is waited for."""
        return not self.lacking

    @property
    def lacking(self) -> list[Wanted]:
        """The metrics that still miss data which may come."""
        return [each for each in self.wanted if not self.has_all(each)]

    def has_all(self, wanted: Wanted) -> bool:
        """Tells whether the metric's data is all there, or will not come."""
        failure = self.failure(wanted)
        if failure is not None:
            return failure.final
        if self.absence(wanted) is not None and self.now >= self.interval.end + wanted.lag:
            return True
        if self._is_given_up(wanted) or (self.was_never(wanted) and self._published(wanted)):
            return True
        return self.counted(wanted) and self._has_last(wanted)

    def counted(self, wanted: Wanted) -> bool:
        """Tells whether CloudWatch has counted the requests we sent, as far as anything counts them for this metric."""
        counter = self.counter_of(wanted)
        if counter is None or self._final(counter) or self._is_given_up(counter):
            return True
        total = self.total(counter)
        if total is None:
            return self._past_patience(counter)
        settled = self.before is not None and self.before.total(counter) == total
        if self.interval.tasks:
            enough = self._past_patience(counter) or (self.interval.of_others and self._last_published(counter))
            return (settled and enough) or self._long_over(counter)
        if total >= self.interval.sent:
            return settled or self._past_patience(counter)
        answered = self.interval.answered
        return answered is not None and total >= answered and settled and self._past_patience(counter)

    def total(self, counter: Wanted) -> float | None:
        """Requests counted by all counters of one kind, so over several endpoints; None where none has data."""
        sums = [self.points(each, "Sum") for each in self.wanted if each.counts and each.group == counter.group]
        found = [sum(points.values()) for points in sums if points]
        return sum(found) if found else None

    def counter_of(self, wanted: Wanted) -> Wanted | None:
        """The metric that counts the requests of the same endpoint."""
        return None if wanted.counter is None else self.wanted[wanted.counter]

    def points(self, wanted: Wanted, statistic: str) -> Mapping[int, float]:
        """A value a bucket."""
        return self.answers[wanted.series_id(statistic)].points

    def buckets(self, wanted: Wanted) -> set[int]:
        """The buckets in which anything of the metric has come."""
        return {bucket for statistic in wanted.series for bucket in self.points(wanted, statistic)}

    def failure(self, wanted: Wanted) -> Failure | None:
        """The first failure among the metric's queries; one that may pass goes before one that stays."""
        found = [self.answers[query.id].failure for query in wanted.queries()]
        failures = [each for each in found if each is not None]
        return min(failures, key=lambda failure: failure.final, default=None)

    def is_empty(self, wanted: Wanted) -> bool:
        """Tells whether nothing came of the metric."""
        return not self.buckets(wanted)

    def description(self, wanted: Wanted) -> Described | None:
        """The variant whose instances report the metric, as it is known."""
        return None if wanted.variant is None else self.described.get(wanted.variant)

    def absence(self, wanted: Wanted) -> str | None:
        """That SageMaker has no such endpoint or variant, in words: one deleted since the wave has left metrics."""
        described = self.description(wanted)
        if described is None or described.absent is None:
            return None
        came = any(each.variant == wanted.variant and not self.is_empty(each) for each in self.wanted)
        return None if came else described.absent

    def never_came(self, wanted: Wanted) -> bool:
        """Tells whether nothing of its publisher came, neither before the wave nor since; who asks to wait, waits."""
        return wanted.wait is None and wanted.publisher in self.waits.silent and self._is_unheard(wanted)

    def was_never(self, wanted: Wanted) -> bool:
        """Tells whether SageMaker had no such variant before the wave, nor after it: nothing counts its requests."""
        described = self.description(wanted)
        return wanted.variant in self.waits.absent and described is not None and described.absent is not None

    @property
    def ends(self) -> float:
        """The time at which waiting ends in any case, unix seconds."""
        return self.interval.end + max(map(self._most_s, self.lacking), default=0.0)

    def _most_s(self, wanted: Wanted) -> float:
        return self.waits.most_s(wanted, heard=not self._is_unheard(wanted))

    def _is_unheard(self, wanted: Wanted) -> bool:
        """Tells whether CloudWatch has answered that it has nothing of the metric's publisher."""
        same = (each for each in self.wanted if each.publisher == wanted.publisher)
        return all(self.is_empty(each) and (self.failure(each) is None or self._final(each)) for each in same)

    def _is_given_up(self, wanted: Wanted) -> bool:
        """Tells whether an empty metric is not waited for: its time is over, or nobody counts requests there."""
        if self._is_unheard(wanted):
            return self.now >= self.interval.end + self._most_s(wanted)
        return self.was_never(wanted) and not wanted.asked and self.is_empty(wanted)

    def _published(self, wanted: Wanted) -> bool:
        """Tells whether its lag and period are over."""
        return self.now >= self.interval.end + wanted.lag + wanted.period

    def once_a_minute(self, wanted: Wanted) -> bool:
        """Tells whether a metric that was asked with a shorter period has values at full minutes only."""
        buckets = self.buckets(wanted)
        return wanted.period < MINUTE and len(buckets) > 1 and all(bucket % MINUTE == 0 for bucket in buckets)

    def progress(self) -> str:
        """The words for what is waited for; nothing where only the next poll has to agree."""
        parts, lacking = [], self.lacking
        counters = [] if self.interval.tasks else [each for each in lacking if each.counts]
        totals = {each.group: self.total(each) for each in counters}
        if totals and (missing := [total or 0 for total in totals.values() if (total or 0) < self.interval.sent]):
            parts.append(f"{min(missing):,.0f} of {self.interval.sent:,} requests counted")
        if late := sum(not self._has_last(each) for each in lacking):
            parts.append(f"{late} of {len(self.wanted)} metrics without their last values")
        return ", ".join(parts)

    def _has_last(self, wanted: Wanted) -> bool:
        buckets = self.buckets(wanted)
        if not buckets:
            if wanted.sparse and self._counter_has_data(wanted):
                return True
            return self._past_patience(wanted) or self._others_came(wanted)
        if wanted.kind == "gauge":
            return self._long_over(wanted) or self._reaches_the_end(wanted, max(buckets))
        unchanged = self.before is not None and self.before.buckets(wanted) == buckets
        # such as ModelCacheHit: the last value may be of a request that was counted a bucket later
        if wanted.sparse or (unchanged and self._past_patience(wanted)) or self._long_over(wanted):
            return True
        counter = self.counter_of(wanted)
        if counter is not None and (counted := self.buckets(counter)):
            return max(buckets) + wanted.period > max(counted)
        return wanted.around.end - wanted.period in buckets

    def _reaches_the_end(self, wanted: Wanted, last: int) -> bool:
        span = wanted.inside or wanted.around
        reach = MINUTE if self.once_a_minute(wanted) else wanted.period
        return last + reach >= span.end and self.now >= span.end

    def _others_came(self, wanted: Wanted) -> bool:
        """Tells whether others of its publisher were complete a poll ago: a GPU's metric on an instance without one."""
        before = self.before
        return before is not None and any(
            (other.namespace, other.dimensions, other.period) == (wanted.namespace, wanted.dimensions, wanted.period)
            and not before.is_empty(other)
            and before._has_last(other)  # noqa: SLF001 - another reading's, not another's
            for other in self.wanted
        )

    def _counter_has_data(self, wanted: Wanted) -> bool:
        counter = self.counter_of(wanted)
        return counter is not None and bool(self.buckets(counter))

    def _final(self, wanted: Wanted) -> bool:
        failure = self.failure(wanted)
        return failure is not None and failure.final

    def _last_published(self, wanted: Wanted) -> bool:
        """Tells whether the window's last bucket has come, and its lag and period are over: little is added to it."""
        last = wanted.around.end - wanted.period
        return self._published(wanted) and last in self.buckets(wanted)

    def _long_over(self, wanted: Wanted) -> bool:
        """Tells whether the first poll came when nothing more comes: a window of the past is asked for once."""
        return self.before is None and self.now >= self.interval.end + self._most_s(wanted)

    def _past_patience(self, wanted: Wanted) -> bool:
        if wanted.wait is not None:
            return self.now >= self.interval.end + wanted.wait
        patience = float(PATIENCE_PERIODS * wanted.period)
        if self.interval.sent and all(self.is_empty(each) for each in self.wanted):
            patience = max(patience, FIRST_VALUES_S)
        return self.now >= self.interval.end + wanted.lag + patience
