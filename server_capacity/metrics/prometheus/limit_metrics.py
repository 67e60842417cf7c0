"""Adds a metric to the blocks of the stream "prometheus", where a limit names one that they do not ask for. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.known_metrics import nearest
from server_capacity.metrics.prometheus.block import STATISTICS, WINDOW, PageBlock, percent_of
from server_capacity.metrics.prometheus.exposition import ExpositionError, parse_selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.metrics.prometheus.block import Block

_SLIP = 0.9
"""As alike to one that is asked for, a name is a slip of the pen."""


def asking(blocks: Sequence[Block], name: str, statistic: str) -> list[Block] | None:
    """The blocks with that metric and statistic in them (empty: the usual one); None where it is nothing to ask for.

    What is neither asked for nor in a preset must be a name as metrics pages have it: with a colon or an underscore.
    """
    for place, block in enumerate(blocks):
        if name in block.names:
            return [*blocks[:place], _with_statistic(block, name, statistic), *blocks[place + 1 :]]
    if not blocks or not _is_metric(name) or nearest(name, [each for block in blocks for each in block.names], _SLIP):
        return None
    return [_with_metric(blocks[0], name, statistic), *blocks[1:]]


def _is_metric(name: str) -> bool:
    try:
        parse_selector(name)
    except ExpositionError:
        return False
    return ":" in name or "_" in name


def _with_statistic(block: Block, name: str, statistic: str) -> Block:
    """The block; its metric with the statistic beside those that it has, where these are written down."""
    if not isinstance(block, PageBlock) or not _is_statistic(statistic):
        return block
    metrics = ((each, _beside(given, statistic) if each == name else given) for each, given in block.metrics)
    return replace(block, metrics=tuple(metrics))


def _with_metric(block: Block, name: str, statistic: str) -> Block:
    if not isinstance(block, PageBlock):
        return replace(block, queries=(*block.queries, (name, f"avg_over_time({name}[{WINDOW}])")))
    statistics = _beside((), statistic) if _is_statistic(statistic) else ()
    return replace(block, metrics=(*block.metrics, (name, statistics)))


def _beside(given: tuple[str, ...], statistic: str) -> tuple[str, ...]:
    """The statistic beside those given; without any, beside the Average."""
    return tuple(dict.fromkeys([*(given or ("Average",)), statistic]))


def _is_statistic(statistic: str) -> bool:
    return statistic in STATISTICS or percent_of(statistic) is not None
