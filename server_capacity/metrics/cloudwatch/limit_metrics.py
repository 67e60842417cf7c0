"""Adds a metric to the blocks of the stream "cloudwatch", where a limit names one that they do not ask for. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.known_metrics import KNOWN, NAMESPACES, kind_of
from server_capacity.metrics.cloudwatch.buckets import is_statistic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock


def asking(blocks: Sequence[CloudWatchBlock], name: str, statistic: str) -> list[CloudWatchBlock] | None:
    """The blocks with that metric and statistic in them (empty: the usual one); None where nobody publishes it here.

    A metric that AWS documents is asked for under the dimensions that a block has already.
    """
    if statistic and not is_statistic(statistic):
        return None
    for place, block in enumerate(blocks):
        if name in block.names:
            return [*blocks[:place], _with_statistic(block, name, statistic), *blocks[place + 1 :]]
    for place, block in enumerate(blocks):
        if (block.namespace, name) in KNOWN:
            return [*blocks[:place], _with_metric(block, name, statistic), *blocks[place + 1 :]]
    for block in blocks:
        given = {dimension for dimension, _ in block.dimensions}
        for namespace in NAMESPACES:
            known = KNOWN.get((namespace, name))
            if known is not None and given in map(set, known.dimensions):
                alone = replace(block, namespace=namespace, metrics=())
                return [*blocks, _with_metric(alone, name, statistic)]
    return None


def _with_statistic(block: CloudWatchBlock, name: str, statistic: str) -> CloudWatchBlock:
    wanted = _first(block, name, statistic)
    metrics = (
        (each, tuple(dict.fromkeys([*wanted, *given])) if each == name else given) for each, given in block.metrics
    )
    return replace(block, metrics=tuple(metrics))


def _with_metric(block: CloudWatchBlock, name: str, statistic: str) -> CloudWatchBlock:
    return replace(block, metrics=(*block.metrics, (name, _first(block, name, statistic))))


def _first(block: CloudWatchBlock, name: str, statistic: str) -> tuple[str, ...]:
    """The statistics to ask for; a gauge's Average comes first, since the values of each bucket are the first one's."""
    average = kind_of(block.namespace, name) == "gauge"
    usual = ["Average"] if average or not statistic else []
    return tuple(dict.fromkeys([*usual, *([statistic] if statistic else [])]))
