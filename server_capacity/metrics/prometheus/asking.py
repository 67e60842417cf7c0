"""Adds a metric to the blocks of the stream "prometheus", where a limit names one that they do not ask for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.verdict.server.known_metrics import nearest
from server_capacity.metrics.prometheus.block import STATISTICS, WINDOW, percent_of, preset_names
from server_capacity.metrics.prometheus.exposition import ExpositionError, parse_selector
from server_capacity.metrics.prometheus.presets import PRESETS, RATIOS

if TYPE_CHECKING:
    from collections.abc import Iterator

    Blocks = list[dict[str, Any]]

_SLIP = 0.9
"""As alike to one that is asked for, a name is a slip of the pen."""


def asking(blocks: Blocks, name: str, statistic: str) -> Blocks | None:
    """The blocks with that metric and statistic in them (empty: the usual one); None where it is nothing to ask for.

    What is neither asked for nor in a preset must be a name as metrics pages have it: with a colon or an underscore.
    """
    for place, block in enumerate(blocks):
        if name in _names(block):
            return [*blocks[:place], _with_statistic(block, name, statistic), *blocks[place + 1 :]]
    if not blocks or not _is_metric(name) or nearest(name, list(names(blocks)), _SLIP):
        return None
    return [_with_metric(blocks[0], name, statistic), *blocks[1:]]


def names(blocks: Blocks) -> Iterator[str]:
    """The metrics that the blocks ask for."""
    return (name for block in blocks for name in _names(block))


def _names(block: dict[str, Any]) -> list[str]:
    presets = preset_names(block)
    items = [each.name for preset in presets for each in PRESETS[preset]]
    ratios = [each.name for preset in presets for each in RATIOS.get(preset, ())]
    return [*block.get("queries", {}), *block.get("metrics", {}), *items, *ratios]


def _is_metric(name: str) -> bool:
    try:
        parse_selector(name)
    except ExpositionError:
        return False
    return ":" in name or "_" in name


def _with_statistic(block: dict[str, Any], name: str, statistic: str) -> dict[str, Any]:
    """The block; its metric with the statistic beside those that it has, where these are written down."""
    metrics = block.get("metrics")
    if name not in (metrics or ()) or not _is_statistic(statistic):
        return block
    if isinstance(metrics, dict):
        return {**block, "metrics": {**metrics, name: list(dict.fromkeys([*metrics[name], statistic]))}}
    return {**block, "metrics": {**dict.fromkeys(metrics or (), ()), name: ["Average", statistic]}}


def _with_metric(block: dict[str, Any], name: str, statistic: str) -> dict[str, Any]:
    if "url" in block:
        return {**block, "queries": {**block.get("queries", {}), name: f"avg_over_time({name}[{WINDOW}])"}}
    metrics = block.get("metrics", {})
    listed = metrics if isinstance(metrics, dict) else dict.fromkeys(metrics, ())
    asked = list(dict.fromkeys(["Average", statistic])) if _is_statistic(statistic) else []
    return {**block, "metrics": {**listed, name: asked}}


def _is_statistic(statistic: str) -> bool:
    return statistic in STATISTICS or percent_of(statistic) is not None
