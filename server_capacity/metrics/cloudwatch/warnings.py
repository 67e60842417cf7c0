"""The oddities of the blocks before anything is sent: by documentation and by the length of the wave. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.known_metrics import kind_of, listed, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from server_capacity.metrics.cloudwatch.block import CloudWatchBlock

PLANNING_PERIODS = 3
"""A wave of that many periods has whole buckets inside, whenever it starts."""


def warnings(blocks: Iterable[CloudWatchBlock], seconds: float | None) -> list[str]:
    """A sentence for each; ``seconds``: how long the wave will take, None where nobody knows."""
    return list(dict.fromkeys(said for block in blocks for said in (*_documented(block), *_short(block, seconds))))


def long_enough(period: int) -> str:
    """The advice where a window has no whole bucket inside."""
    return f"take {PLANNING_PERIODS * period} s or more{', or a shorter Period' if period > 1 else ''}"


def _documented(block: CloudWatchBlock) -> Iterator[str]:
    """The warnings of documentation; one that holds for several metrics of the block is said of the first."""
    dimensions = [name for name, _ in block.dimensions]
    alike: dict[str, list[str]] = {}
    for name, statistics in block.metrics:
        if said := warning(block.namespace, name, dimensions, statistics):
            alike.setdefault(said.replace(name, "\0"), []).append(name)
    for said, (first, *others) in alike.items():
        also = f"; the same holds for {listed(others)}" if others and "\0" in said else ""
        yield said.replace("\0", first) + also


def _short(block: CloudWatchBlock, seconds: float | None) -> Iterator[str]:
    gauges = [name for name, _ in block.metrics if kind_of(block.namespace, name) == "gauge"]
    if gauges and seconds is not None and seconds < PLANNING_PERIODS * block.period:
        yield (
            f"a wave of {seconds:.6g} s is shorter than {PLANNING_PERIODS} periods of {block.period} s, and idle time"
            f" dilutes {listed(gauges)}: {long_enough(block.period)}"
        )
