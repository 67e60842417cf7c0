"""The numbers of a wave whose requests were counted: each as its formula says, from buckets and 20 ms. Pure.

Counts are exact and so are the means of measured times; a percentile is within ``PRECISION``, an instant within 20 ms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.records.counting import BIN_NS
from inference_benchmarker.records.counts import PRECISION, LabelCounts, bucket_values
from inference_benchmarker.summary.by_name import ErrorRow, LabelRow
from inference_benchmarker.summary.completed_rate import CompletedSpan
from inference_benchmarker.summary.statistics.buckets import NOTHING, dense, less, more, of_buckets, up_to
from inference_benchmarker.summary.tokens import Tokens
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts, Window
    from inference_benchmarker.records.columns import Int64
    from inference_benchmarker.records.counts import Counts, Series
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.summary.statistics.distribution import Distribution

_ALWAYS = {"cold_start": "whether the first requests were slower"}
_OF_STREAMS = {"tpot": "TPOT", "tokens_out_per_s_per_request": "tokens/s of each request"}


def missing_numbers(facts: WaveFacts) -> dict[str, str]:
    """The numbers that need the record of each request, where there is none: by name, in words."""
    if facts.counts is None:
        return {}
    of_metrics = (
        {"metrics": f"{', '.join(facts.records.metrics)} of the other requests"} if facts.records.metrics else {}
    )
    return {**(_OF_STREAMS if facts.counts.total("tokens_out") else {}), **of_metrics, **_ALWAYS}


@dataclass(frozen=True)
class Counted:
    """The counts of a wave's window, or of a part of it, and the records of its slowest requests."""

    counts: Counts
    slowest: InParts
    window: Window

    @cached_property
    def times(self) -> dict[str, Any]:
        """The distribution of each time, by its name in a summary."""
        waiting = self._waiting if self.counts.total("ttft") else NOTHING
        found = {
            "latency": self._distribution("latency", aged="age"),
            "response_time": self._distribution("response_time", aged="response_age"),
            "failed_latency": self._distribution("failed_latency"),
        }
        return {
            **{name: up_to(found[name], longest) for name, longest in self._longest().items()},
            "lag": self._distribution("lag"),
            "build": self._distribution("build"),
            "ttft": self._distribution("ttft", ages=waiting),
            "itl": self._distribution("itl", ages=self._token_ages),
            "tpot": None,
        }

    @property
    def completed(self) -> float:
        """The completed rate; its span's ends are taken in the middle of what came in their 20 ms."""
        span = self.completed_span
        return self._done_in(span) / span.seconds if span.seconds else 0.0

    @property
    def completed_precision(self) -> float:
        """The share by which that may be off: of what came so near an end of its span that it may lie beyond it.

        An end is as near as the 20 ms that it is in, and the median latency by which the span is shifted.
        """
        span, done = self.completed_span, self.counts["ok_at"]
        number = self.completed * span.seconds
        if math.isinf(span.end_ns) or not done.total:
            return 0.0
        shift = max(self._middle_s or (0.0,)) * NS * PRECISION + BIN_NS
        reach = [(end - shift, end + shift) for end in (span.begin_ns, span.end_ns)]
        at = done.bins * BIN_NS - self.counts.start_ns
        unsure = sum(done.where((at > low - BIN_NS) & (at < high)).total for low, high in reach)
        # A drain that was cut short ends the span at an instant of its own: its length is off by both of its ends.
        cut = shift / NS / span.seconds if self.counts["abandoned_at"].total and span.seconds else 0.0
        return min(unsure / number + cut, 1.0) if number else float(unsure > 0)

    def late(self, by_ns: int) -> int:
        """Requests taken up so long after the end of the plan, or longer, to 20 ms."""
        if self.window.planned_ns is None:
            return 0
        sent = self.counts["sent_at"]
        return sent.where(sent.bins * BIN_NS >= self.counts.start_ns + self.window.planned_ns + by_ns).total

    def tokens(self) -> Tokens | None:
        """The tokens; in a second as many as the completed requests had on average."""
        totals = {name: self.counts.total(name) for name in ("tokens_in", "tokens_out")}
        if not any(totals.values()):
            return None
        sums = {name: self.counts.total(f"{name}_sum") if number else None for name, number in totals.items()}
        ok = self.counts.total("ok")
        rates = {name: None if total is None or not ok else total / ok * self.completed for name, total in sums.items()}
        usage = self.counts.total("usage")
        sources = ("usage" if usage else "", "pieces" if totals["tokens_out"] > usage else "")
        return Tokens(
            tokens_in=sums["tokens_in"],
            tokens_out=sums["tokens_out"],
            tokens_in_per_s=rates["tokens_in"],
            tokens_out_per_s=rates["tokens_out"],
            counted=" and ".join(filter(None, sources)) or None,
            tokens_in_per_request=self._distribution("tokens_in", unit=1),
            tokens_out_per_request=self._distribution("tokens_out", unit=1),
            tokens_out_per_s_per_request=None,
        )

    def errors(self, texts: Mapping[str, Sequence[str]]) -> tuple[ErrorRow, ...]:
        """A row for each error with its first texts, the most frequent first."""
        found = zip(self.counts.errors, self.counts["failed"].by_key.tolist(), strict=False)
        rows = [
            ErrorRow(key, count, (self.counts.first.get(key, 0) - self.counts.start_ns) / NS, tuple(texts.get(key, ())))
            for key, count in found
            if count
        ]
        return tuple(sorted(rows, key=lambda row: (-row.count, row.key)))

    def finish_reasons(self) -> dict[str, int]:
        """Each reason's requests, the most frequent first."""
        return dict(sorted(self.counts.finish_reasons.items(), key=lambda pair: (-pair[1], pair[0])))

    def labels(self, *, open_loop: bool) -> tuple[LabelRow, ...]:
        """A row for each label, the most frequent first; none where no answer has one, or none was asked."""
        found = self.counts.labels
        if not any(each.ok or not self.counts.total("ok") for each in found.values()):
            return ()
        rows = [self._label(name, each, open_loop=open_loop) for name, each in found.items()]
        rest = self._without_label()
        if rest.ok + rest.failed + rest.abandoned:
            rows.append(self._label("(none)", rest, open_loop=open_loop))
        return tuple(sorted(rows, key=lambda row: (-row.sent, row.label)))

    @cached_property
    def completed_span(self) -> CompletedSpan:
        """That of the ok requests."""
        cut = self.counts["abandoned_at"].bins
        first = int(cut.min()) * BIN_NS - self.counts.start_ns if len(cut) else None
        over = sum(self.counts.total(name) for name in ("ok", "failed", "abandoned"))
        span = CompletedSpan.of(self._middle_s, over, first, self.window)
        chosen = span if span.otherwise is None or self._done_in(span) else span.otherwise
        return chosen.with_answers(self._done_in(chosen))

    @cached_property
    def _middle_s(self) -> tuple[float, float] | None:
        """The two latencies in the middle of the ok requests: where some were abandoned, without their ages."""
        ok = of_buckets(less(self.counts["latency"].by_key, self.counts["age"].by_key))
        return None if ok is None else ok.middle

    def _done_in(self, span: CompletedSpan) -> float:
        done = self.counts["ok_at"]
        if math.isinf(span.end_ns):
            return float(done.total)
        return self._until(done, span.end_ns) - self._until(done, span.begin_ns)

    def _until(self, series: Series, instant_ns: float) -> float:
        """The counts before an instant; of the 20 ms that it is in, so much as has passed of them."""
        place = (instant_ns + self.counts.start_ns) / BIN_NS
        passed = np.clip(place - series.bins, 0.0, 1.0)
        return float(passed @ series.count)

    def _distribution(
        self, name: str, *, aged: str = "", ages: Int64 | None = None, unit: int = NS
    ) -> Distribution | None:
        """That of a time. ``aged``: the kind of count of those of its values that are ages; ``ages``: others."""
        counts, total = self.counts[name].by_key, self.counts.total(f"{name}_sum")
        if aged:
            ages, total = self.counts[aged].by_key, total - self.counts.total(f"{aged}_sum")
            counts = less(counts, ages)
        return of_buckets(counts, NOTHING if ages is None else ages, total=total, unit=unit)

    def _longest(self) -> dict[str, float]:
        """The longest times among the slowest requests, in s: of a latency nobody's was longer."""
        longest = {"latency": -1, "response_time": -1, "failed_latency": -1}
        for part in self.slowest.parts("due", "sent", "done", "outcome"):
            done, failed = part.int("done"), part.outcome("failed")
            latency, response = done - part.int("sent"), done - part.int("due")
            of_part = {
                "latency": latency[~failed],
                "response_time": response[~failed],
                "failed_latency": latency[failed],
            }
            longest = {name: max(value, int(of_part[name].max(initial=-1))) for name, value in longest.items()}
        return {name: value / NS for name, value in longest.items()}

    @property
    def _waiting(self) -> Int64:
        """Ages of abandoned streams whose first token had not come; all abandoned ones if all others are streams."""
        counts = self.counts
        first_ages = counts["first_age"].by_key
        if counts.total("streams") != counts.total("ok"):
            return first_ages
        return more(first_ages, less(counts["age"].by_key, counts["stream_age"].by_key))

    @property
    def _token_ages(self) -> Int64:
        """Ages of the last tokens of abandoned streams, those above the median gap."""
        gaps = of_buckets(self.counts["itl"].by_key)
        ages = self.counts["token_age"].by_key
        return np.where(bucket_values(np.arange(len(ages))) / NS > (0.0 if gaps is None else gaps.median), ages, 0)

    def _label(self, name: str, found: LabelCounts, *, open_loop: bool) -> LabelRow:
        """Which of its times are ages is not known: every value from the least age of all on may be one."""
        aged = self.times["latency"], self.times["response_time"]
        names = ("latency", "response_time") if open_loop else ("latency",)
        latency, response = (
            of_buckets(dense(found.times[of])) if of in names else None for of in ("latency", "response_time")
        )
        times = [
            replace(own, lower_bound_from=whole.lower_bound_from) if own and whole and found.abandoned else own
            for own, whole in zip((latency, response), aged, strict=True)
        ]
        return LabelRow(name, found.ok + found.failed + found.abandoned, found.ok, found.failed, *times)

    def _without_label(self) -> LabelCounts:
        """The requests without one: the rest of all. Their times are known where those of all labels are."""
        labels, rest = self.counts.labels.values(), LabelCounts()
        for outcome in ("ok", "failed", "abandoned"):
            named = sum(getattr(each, outcome) for each in labels)
            setattr(rest, outcome, max(self.counts.total(outcome) - named, 0))
        for name in ("latency", "response_time"):
            left = self.counts[name].by_key
            for each in labels:
                left = less(left, dense(each.times[name]))
            if all(each.times[name] or not (each.ok or each.abandoned) for each in labels):
                rest.times[name].update({key: count for key, count in enumerate(left.tolist()) if count})
        return rest
