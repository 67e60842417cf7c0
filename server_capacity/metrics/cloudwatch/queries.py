"""The questions to CloudWatch for a wave: windows, series and queries. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.known_metrics import (
    BALANCER,
    COMPONENT,
    COMPONENTS,
    INSTANCES,
    KNOWN,
    LAMBDA,
    SAGEMAKER,
    VARIANT,
    Kind,
    kind_of,
)
from server_capacity.metrics.cloudwatch.block import Dimensions, Variant, variant_of
from server_capacity.metrics.cloudwatch.buckets import Span, combination, covering, inner, needs, one_bucket

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import Interval
    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock

Publisher = tuple[str, Dimensions]
"""Whoever publishes a metric and its neighbours."""

COUNTERS = {SAGEMAKER: "Invocations", LAMBDA: "Invocations", BALANCER: "RequestCount"}
"""Metrics that count every request of ours, so that their sum tells when everything has arrived."""


@dataclass(frozen=True, slots=True)
class Query:
    """One line of GetMetricData: one statistic of one metric in buckets of ``period`` over ``span``."""

    id: str
    namespace: str
    dimensions: Dimensions
    name: str
    statistic: str
    period: int
    span: Span


@dataclass(frozen=True, slots=True)
class Wanted:
    """One metric and everything that is asked to know it.

    ``around``: the buckets that cover the wave; ``inside``: those wholly in it (gauges only); ``whole``: the one
    bucket for what several cannot give; ``surplus``: it is longer, so that it may hold other requests, too.
    ``series``: statistics asked per bucket; ``wholes``: asked as one bucket. ``counter``: number of the metric that
    counts the same endpoint's requests.
    """

    number: int
    namespace: str
    dimensions: Dimensions
    name: str
    statistics: tuple[str, ...]
    period: int
    lag: float
    wait: float | None
    kind: Kind
    around: Span
    inside: Span | None
    whole: Span | None
    series: tuple[str, ...]
    wholes: tuple[str, ...]
    series_of: str
    surplus: bool = False
    counts: bool = False
    counter: int | None = None
    asked: bool = True

    @property
    def sparse(self) -> bool:
        """Tells whether CloudWatch has it only once it happened."""
        known = KNOWN.get((self.namespace, self.name))
        return known is not None and known.sparse

    @property
    def variant(self) -> Variant | None:
        """The variant whose instances report it."""
        return variant_of(self.namespace, self.dimensions)

    @property
    def publisher(self) -> Publisher:
        """Whoever publishes it."""
        return publisher_of(self.namespace, self.dimensions)

    @property
    def group(self) -> tuple[str, tuple[str, ...]]:
        """Which counters add up to one count of the wave's requests: several endpoints of one kind."""
        return self.namespace, tuple(sorted(name for name, _ in self.dimensions))

    def series_id(self, statistic: str) -> str:
        """The Id of the query for a value a bucket."""
        return f"m{self.number}s{self.series.index(statistic)}"

    def whole_id(self, statistic: str) -> str:
        """The Id of the query for one value."""
        return f"m{self.number}w{self.wholes.index(statistic)}"

    @property
    def surplus_id(self) -> str:
        """The Id of the query for how many samples ``whole`` holds."""
        return f"m{self.number}n"

    def queries(self) -> Iterator[Query]:
        """Everything to ask for this metric."""
        base = ("", self.namespace, self.dimensions, self.name)
        for statistic in self.series:
            query = Query(*base, statistic, self.period, self.around)
            yield replace(query, id=self.series_id(statistic))
        if self.whole is not None:
            for statistic in self.wholes:
                query = Query(*base, statistic, self.whole.length, self.whole)
                yield replace(query, id=self.whole_id(statistic))
            if self.surplus:
                yield Query(self.surplus_id, *base[1:], "SampleCount", self.whole.length, self.whole)


def wanted_of(blocks: Sequence[CloudWatchBlock], interval: Interval) -> tuple[Wanted, ...]:
    """Every metric of the blocks, and the counts of requests of the endpoints they name."""
    wanted: list[Wanted] = []
    for block in blocks:
        for name, statistics in block.metrics:
            wanted.append(_wanted(len(wanted), block, name, statistics, interval))
    for block in blocks:
        if (missing := _missing_counter(block, blocks)) is not None:
            counter = _wanted(len(wanted), missing, *missing.metrics[0], interval)
            if not any(counter.counts and _same(counter, each) for each in wanted):
                wanted.append(replace(counter, asked=False))
    return tuple(replace(each, counter=_counter_of(each, wanted)) for each in wanted)


def _wanted(number: int, block: CloudWatchBlock, name: str, statistics: tuple[str, ...], interval: Interval) -> Wanted:
    kind = kind_of(block.namespace, name)
    counts = _counts(block, name)
    start, loaded = interval.begin if kind == "count" else interval.start, interval.under_load
    around = covering(start, loaded.end if kind == "gauge" else interval.end, block.period)
    inside = inner(loaded.start, loaded.end, block.period) if kind == "gauge" else None
    whole, wholes = _whole(around, inside), tuple(each for each in statistics if combination(each) == "none")
    surplus = kind != "gauge" and bool(wholes) and whole not in (None, around)
    return Wanted(
        number=number,
        namespace=block.namespace,
        dimensions=block.dimensions,
        name=name,
        statistics=statistics,
        period=block.period,
        lag=block.lag,
        wait=block.wait,
        kind=kind,
        around=around,
        inside=inside,
        whole=whole,
        series=_series(statistics, kind, counts=counts, surplus=surplus),
        wholes=wholes,
        surplus=surplus,
        series_of=next((each for each in statistics if combination(each) != "none"), statistics[0]),
        counts=counts,
    )


def _counts(block: CloudWatchBlock, name: str) -> bool:
    """Tells whether the metric counts every request to an endpoint: not those of one of its instances or zones."""
    names = {dimension for dimension, _ in block.dimensions}
    return COUNTERS.get(block.namespace) == name and any(
        names == set(each) for each in KNOWN[block.namespace, name].dimensions
    )


def _series(statistics: tuple[str, ...], kind: Kind, *, counts: bool, surplus: bool) -> tuple[str, ...]:
    """The statistics needed of each bucket, and for the plot; a gauge's SampleCount tells how many reported it."""
    needed = [each for statistic in statistics for each in needs(statistic)] or [statistics[0]]
    if kind == "gauge":
        needed += ["Maximum", "SampleCount"]
    if surplus:
        needed.append("SampleCount")
    if counts:
        needed.append("Sum")
    return tuple(dict.fromkeys(needed))


def _whole(around: Span, inside: Span | None) -> Span | None:
    if inside is not None and one_bucket(inside) == inside:
        return inside
    return one_bucket(around)


def _missing_counter(block: CloudWatchBlock, blocks: Sequence[CloudWatchBlock]) -> CloudWatchBlock | None:
    """The block that asks how many requests the SageMaker endpoint of this block counted."""
    dimensions = endpoint_of(block.namespace, block.dimensions)
    if dimensions is None:
        return None
    periods = [
        each.period
        for each in blocks
        if each.namespace == SAGEMAKER and endpoint_of(SAGEMAKER, each.dimensions) == dimensions
    ]
    return replace(
        block,
        namespace=SAGEMAKER,
        dimensions=dimensions,
        period=min(periods) if periods else max(60, block.period),
        metrics=((COUNTERS[SAGEMAKER], ("Sum",)),),
    )


def endpoint_of(namespace: str, dimensions: Dimensions) -> Dimensions | None:
    """The dimensions under which SageMaker counts the requests of the endpoint that a block reads."""
    if namespace not in (SAGEMAKER, INSTANCES, COMPONENTS):
        return None
    given = dict(dimensions)
    for names in (COMPONENT, VARIANT):
        if all(name in given for name in names):
            return tuple((name, given[name]) for name in names)
    return None


def publisher_of(namespace: str, dimensions: Dimensions) -> Publisher:
    """The publisher of a metric: an endpoint in all of SageMaker's namespaces, else one place."""
    endpoint = endpoint_of(namespace, dimensions)
    return (SAGEMAKER, endpoint) if endpoint else (namespace, tuple(sorted(dimensions)))


def _same(one: Wanted, other: Wanted) -> bool:
    return (one.namespace, one.name, sorted(one.dimensions)) == (
        other.namespace,
        other.name,
        sorted(other.dimensions),
    )


def _counter_of(wanted: Wanted, all_wanted: Sequence[Wanted]) -> int | None:
    dimensions = endpoint_of(wanted.namespace, wanted.dimensions) or wanted.dimensions
    namespace = SAGEMAKER if endpoint_of(wanted.namespace, wanted.dimensions) else wanted.namespace
    for each in all_wanted:
        if each.counts and each.namespace == namespace and sorted(each.dimensions) == sorted(dimensions):
            return each.number
    return None
