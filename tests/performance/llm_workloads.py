"""Ten workloads for the LLM engine: arrivals in ms, lengths, and the blocks of 16 tokens of each prompt by number."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules

BLOCK = 16


class Asked(NamedTuple):
    """One request; ``blocks``: those of its prompt, the last of which may not be full."""

    at_ms: float
    prompt: int
    output: int
    blocks: list[int]


Shape = tuple[float, "Sequence[int]", int, int]
"""Ms since the request before, the blocks that are known, and the tokens of prompt and answer."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked of an engine whose cache has room for ``kv_tokens``; ``shapes`` are drawn, the rest is numbered."""

    shapes: Callable[[random.Random], Iterator[Shape]]
    kv_tokens: int = 426_784

    def rules(self, rules: EngineRules) -> EngineRules:
        """These with its cache."""
        return replace(rules, kv_tokens=self.kv_tokens)

    def drawn(self, seed: int) -> list[Asked]:
        """The requests in the order of their arrival."""
        asked: list[Asked] = []
        at, fresh = 0.0, count(1 << 32)
        for gap, known, prompt, output in self.shapes(random.Random(seed)):
            at += gap
            needed = -(-prompt // BLOCK)
            blocks = [*known[:needed], *(next(fresh) for _ in range(needed - len(known)))]
            asked.append(Asked(round(at, 3), prompt, output, blocks))
        return asked


def _independent(rate: float, prompts: tuple[int, int], outputs: tuple[int, int], number: int = 400) -> Workload:
    def shapes(draws: random.Random) -> Iterator[Shape]:
        for _ in range(number):
            yield 1000 * draws.expovariate(rate), (), draws.randrange(*prompts), draws.randrange(*outputs)

    return Workload(shapes)


def _agents(draws: random.Random) -> Iterator[Shape]:
    """Twenty agents in turn, 20 times each: what they asked before, and 100 to 500 tokens more."""
    lengths = [600] * 20
    for _ in range(20):
        for agent, length in enumerate(lengths):
            lengths[agent] = length + draws.randrange(100, 500)
            known = [agent << 20 | block for block in range(lengths[agent] // BLOCK)]
            yield 1000 * draws.expovariate(4), known, lengths[agent], draws.randrange(20, 150)


def _shared(draws: random.Random) -> Iterator[Shape]:
    for _ in range(400):
        group = draws.randrange(4)
        known = [group << 20 | block for block in range(125)]
        yield 1000 * draws.expovariate(15), known, 2000 + draws.randrange(20, 400), draws.randrange(30, 200)


def _mixed(draws: random.Random) -> Iterator[Shape]:
    for _ in range(400):
        prompt, output = draws.lognormvariate(6.5, 1.2), draws.lognormvariate(4.8, 1)
        yield 1000 * draws.expovariate(6), (), round(min(16_000, prompt)) + 1, round(min(1500, output)) + 1


def _bursts(draws: random.Random) -> Iterator[Shape]:
    for number in range(400):
        yield 0.5 if number % 40 else 4000, (), draws.randrange(100, 1500), draws.randrange(50, 200)


WORKLOADS = {
    "short chat, light": _independent(4, (50, 400), (50, 250)),
    "short chat, heavy": _independent(25, (50, 400), (50, 250)),
    "long documents": _independent(1, (4000, 30_000), (50, 300), 200),
    "agents of 20 turns": Workload(_agents),
    "shared system prompts": Workload(_shared),
    "mixed lengths": Workload(_mixed),
    "bursts of 40": Workload(_bursts),
    "long answers": _independent(4, (20, 100), (500, 2000), 200),
    "cache nearly full": replace(_independent(6, (500, 2500), (100, 400)), kv_tokens=90_000),
    "cache too small": replace(_independent(6, (500, 2500), (100, 400), 200), kv_tokens=30_000),
}
