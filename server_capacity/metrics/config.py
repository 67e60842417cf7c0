"""Reads --endpoint-config: a JSON list of blocks, each asking one stream for metrics of the wave's window."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from inference_benchmarker.data.json_text import parse_json
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.system.given import read_given
from inference_benchmarker.verdict.server.known_metrics import nearest
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from inference_benchmarker.facts.server_metric import Source
    from inference_benchmarker.plan.server_limit import ServerLimit

STREAMS = {
    "cloudwatch": "server_capacity.metrics.cloudwatch",
    "prometheus": "server_capacity.metrics.prometheus",
}
"""The package of each stream, as configurations call a source: a new one is a package and a line here.

A package is imported by the configuration that names it.
"""

_MOST_BYTES = 4 * MIB
_EXAMPLES = "Examples are in server_capacity/server_metrics_configs/."


class MetricsBlock(Protocol):
    """A checked block of a stream: what it asks for."""

    @property
    def stream(self) -> str:
        """The stream that reads it."""

    @property
    def dimensions(self) -> tuple[tuple[str, str], ...]:
        """The names and values that narrow a metric of CloudWatch; none elsewhere."""

    @property
    def is_live_only(self) -> bool:
        """Tells whether it can be read only while a wave runs."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it asks for."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables of its credentials."""

    @property
    def bucket_s(self) -> float:
        """The seconds that one of its values is of; 0 where values are of an instant, or of the wave."""

    def waiting(self, wait_s: float) -> MetricsBlock:
        """The block, whose values are waited for that many seconds after the wave at most."""

    def of_endpoint(self, name: str) -> MetricsBlock:
        """The block with that endpoint in place of the one that it names."""


class Stream(Protocol):
    """The functions that the module of a stream gives."""

    def check_block(self, block: Mapping[str, object], where: str) -> list[str]:
        """Everything wrong with a block, each sentence beginning with ``where``."""

    def read_block(self, block: dict[str, Any]) -> MetricsBlock:
        """The block that ``check_block`` found nothing wrong with."""

    def asking(self, blocks: Sequence[MetricsBlock], name: str, statistic: str) -> list[MetricsBlock] | None:
        """The blocks with that metric and statistic in them (empty: the usual one); None where they cannot have it."""

    def make_source(self, blocks: Sequence[MetricsBlock], environment: Mapping[str, str]) -> Source:
        """The checked blocks, ready to be asked; BenchmarkError for what the wave need not be started with."""


def load_config(path: str | Path) -> list[MetricsBlock]:
    """The blocks of the file, checked; one BenchmarkError that names everything wrong by block number and key."""
    doubles: list[str] = []
    data = _parse(Path(path), doubles)
    if not isinstance(data, list) or not data:
        kind = "an empty list" if data == [] else f"{type(data).__name__}"
        kind = {"dict": "an object", "str": "a text"}.get(kind, kind)
        raise BenchmarkError(f"{path}: must be a JSON list of blocks, not {kind}.", _EXAMPLES)
    problems = [*doubles, *(each for number, block in enumerate(data, 1) for each in _check(block, number))]
    problems += [] if problems else _asked_twice(data)
    if problems:
        raise BenchmarkError("\n".join(f"{path}: {problem}" for problem in problems), _EXAMPLES)
    return [_stream(block["stream"]).read_block(block) for block in data]


def with_limits(blocks: list[MetricsBlock], limits: Iterable[ServerLimit], path: str | Path) -> list[MetricsBlock]:
    """The blocks of the file, and in them the metrics that limits are on; BenchmarkError for one that none can have."""
    problems = []
    for limit in limits:
        names = {name: [each for block in _of(blocks, name) for each in block.names] for name in _streams(blocks)}
        more = _asking(blocks, limit, names)
        if more is None:
            there = [name for several in names.values() for name in several]
            asked = f"it asks for {', '.join(there)}" if there else "it names none"
            close = nearest(limit.name, there)
            problems.append(f"--slo {limit.expression}: {path} has no metric {limit.name!r}; {asked}.{close}")
        blocks = more or blocks
    refuse(problems)
    return blocks


def _asking(
    blocks: list[MetricsBlock], limit: ServerLimit, names: Mapping[str, Collection[str]]
) -> list[MetricsBlock] | None:
    """The stream that asks already for such a metric goes before one that could."""
    for name in sorted(names, key=lambda name: limit.name not in names[name]):
        if (more := _stream(name).asking(_of(blocks, name), limit.name, limit.statistic)) is not None:
            return [*(block for block in blocks if block.stream != name), *more]
    return None


def _streams(blocks: Iterable[MetricsBlock]) -> list[str]:
    return list(dict.fromkeys(block.stream for block in blocks))


def _of(blocks: Iterable[MetricsBlock], stream: str) -> list[MetricsBlock]:
    return [block for block in blocks if block.stream == stream]


def make_sources(blocks: Iterable[MetricsBlock], environment: Mapping[str, str]) -> list[Source]:
    """A source for each stream that the blocks name, in their order; BenchmarkError with what each stream misses.

    ``environment``: where blocks name the variables of their secrets.
    """
    sources, problems = [], []
    for name in _streams(blocks):
        try:
            sources.append(_stream(name).make_source(_of(blocks, name), environment))
        except BenchmarkError as error:
            problems.append(str(error))
    refuse(problems)
    return sources


def _parse(path: Path, doubles: list[str]) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen = dict(pairs)
        if len(seen) < len(pairs):
            keys = [key for key, _ in pairs]
            doubles.extend(f'"{key}" appears twice in one object.' for key in seen if keys.count(key) > 1)
        return seen

    try:
        return parse_json(read_given(path, _MOST_BYTES), unique, float)
    except OSError as error:
        raise BenchmarkError(f"{path}: cannot be read ({error.strerror}).", "Give the path of a JSON file.") from None
    except UnicodeDecodeError:
        raise BenchmarkError(f"{path}: is not UTF-8 text.", _EXAMPLES) from None
    except json.JSONDecodeError as error:
        place = f"{path}, line {error.lineno}, column {error.colno}"
        raise BenchmarkError(f"{place}: not valid JSON ({error.msg}).", _EXAMPLES) from None
    except ValueError as error:
        raise BenchmarkError(f"{path}: {error}.", _EXAMPLES) from None


def _check(block: Any, number: int) -> Iterable[str]:
    where = f"block {number}"
    if not isinstance(block, dict):
        yield f"{where}: must be an object, not {block!r}."
        return
    names = ", ".join(STREAMS)
    stream = block.get("stream")
    if "stream" not in block:
        yield f'{where}: "stream" is missing; streams are {names}.'
    elif not isinstance(stream, str) or stream not in STREAMS:
        close = nearest(stream, STREAMS) if isinstance(stream, str) else ""
        yield f'{where}: "stream" is {stream!r}; streams are {names}.{close}'
    else:
        yield from _stream(stream).check_block(block, where)


def _asked_twice(blocks: list[dict[str, Any]]) -> Iterable[str]:
    """A metric that stands in two blocks of the same source would be printed twice and counted twice."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, block in enumerate(blocks, 1):
        if "Namespace" not in block:
            continue
        dimensions = tuple(sorted((each["Name"], each["Value"]) for each in block.get("Dimensions", [])))
        for name in block["Metrics"]:
            first = seen.setdefault((block["stream"], block["Namespace"], dimensions, name), number)
            if first != number:
                yield f'block {number}: "Metrics" asks for {name!r} as block {first} does; give it once.'


def _stream(name: str) -> Stream:
    return cast("Stream", import_module(STREAMS[name]))
