"""The publishers of metrics: what never came of one before a wave is not waited for long after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.verdict.server.known_metrics import INSTANCES, SAGEMAKER, VARIANT
from server_capacity.metrics.cloudwatch.buckets import LONGEST_PERIOD, Span
from server_capacity.metrics.cloudwatch.fetch import fetch
from server_capacity.metrics.cloudwatch.queries import COUNTERS, Query, endpoint_of, publisher_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock, Dimensions
    from server_capacity.metrics.cloudwatch.queries import Publisher

DAYS = 14
"""So long before a wave is looked at: CloudWatch keeps values of a minute for fifteen days."""


def silent(client: Any, blocks: Sequence[CloudWatchBlock], now: float) -> frozenset[Publisher]:
    """The publishers of which nothing came in the two weeks before ``now`` (unix seconds), as CloudWatch says.

    A publisher of which one query fails is none of them.
    """
    today = int(now) // LONGEST_PERIOD * LONGEST_PERIOD
    span = Span(today - (DAYS - 1) * LONGEST_PERIOD, today + LONGEST_PERIOD)
    series = list(dict.fromkeys(each for block in blocks for each in _series(block)))
    queries = [
        Query(f"b{number}", namespace, dimensions, name, "SampleCount", LONGEST_PERIOD, span)
        for number, (namespace, dimensions, name) in enumerate(series)
    ]
    answers = fetch(client, queries).answers
    by_query = {query.id: publisher_of(query.namespace, query.dimensions) for query in queries}
    heard = {by_query[name] for name, answer in answers.items() if answer.points or answer.failure is not None}
    return frozenset(set(by_query.values()) - heard)


def silence_text(block: CloudWatchBlock, wait_s: float) -> str:
    """A sentence on a block of whose publisher nothing came, which is waited for so long."""
    place = ", ".join(f"{name} {value}" for name, value in block.dimensions) or block.namespace
    return (
        f"CloudWatch has no data for {place} from the last {DAYS} days. After the wave the command waits "
        f"{wait_s:g} s for them (Lag and Period); --metrics-wait allows more"
    )


def _series(block: CloudWatchBlock) -> Iterator[tuple[str, Dimensions, str]]:
    """The metrics of a block, and of an endpoint's variant what it always has: its requests and its use of CPU."""
    for name, _ in block.metrics:
        yield block.namespace, block.dimensions, name
    endpoint = endpoint_of(block.namespace, block.dimensions)
    if endpoint is not None:
        yield SAGEMAKER, endpoint, COUNTERS[SAGEMAKER]
        if {name for name, _ in endpoint} == {*VARIANT}:
            yield INSTANCES, endpoint, "CPUUtilization"
