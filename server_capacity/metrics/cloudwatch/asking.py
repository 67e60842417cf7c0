"""Adds a metric to the blocks of the stream "cloudwatch", where a limit names one that they do not ask for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.verdict.server.known_metrics import KNOWN, NAMESPACES, kind_of
from server_capacity.metrics.cloudwatch.buckets import is_statistic

if TYPE_CHECKING:
    from collections.abc import Iterator

    Blocks = list[dict[str, Any]]


def asking(blocks: Blocks, name: str, statistic: str) -> Blocks | None:
    """The blocks with that metric and statistic in them (empty: the usual one); None where nobody publishes it here.

    A metric that AWS documents is asked for under the dimensions that a block has already.
    """
    if statistic and not is_statistic(statistic):
        return None
    for place, block in enumerate(blocks):
        if name in block["Metrics"]:
            return [*blocks[:place], _with_statistic(block, name, statistic), *blocks[place + 1 :]]
    for place, block in enumerate(blocks):
        if (block["Namespace"], name) in KNOWN:
            return [*blocks[:place], _with_metric(block, name, statistic), *blocks[place + 1 :]]
    for block in blocks:
        given = {each["Name"] for each in block.get("Dimensions", [])}
        for namespace in NAMESPACES:
            known = KNOWN.get((namespace, name))
            if known is not None and given in map(set, known.dimensions):
                alone = {**block, "Namespace": namespace, "Metrics": [], "Statistics": []}
                return [*blocks, _with_metric(alone, name, statistic)]
    return None


def names(blocks: Blocks) -> Iterator[str]:
    """The metrics that the blocks ask for."""
    return (name for block in blocks for name in block["Metrics"])


def _with_statistic(block: dict[str, Any], name: str, statistic: str) -> dict[str, Any]:
    place = block["Metrics"].index(name)
    statistics = [list(each) for each in block["Statistics"]]
    wanted = _first(block, name, statistic)
    statistics[place] = list(dict.fromkeys([*wanted, *statistics[place]]))
    return {**block, "Statistics": statistics}


def _with_metric(block: dict[str, Any], name: str, statistic: str) -> dict[str, Any]:
    metrics, statistics = [*block["Metrics"], name], [*block["Statistics"], _first(block, name, statistic)]
    return {**block, "Metrics": metrics, "Statistics": statistics}


def _first(block: dict[str, Any], name: str, statistic: str) -> list[str]:
    """The statistics to ask for; a gauge's Average comes first, since the values of each bucket are the first one's."""
    average = kind_of(block["Namespace"], name) == "gauge"
    usual = ["Average"] if average or not statistic else []
    return list(dict.fromkeys([*usual, *([statistic] if statistic else [])]))
