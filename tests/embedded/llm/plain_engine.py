"""The engine's rules once more, as plainly as can be: every request in every step, and a list of tokens a block.

It is slow and has no code of the product's but the rules and their step lengths.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inference_benchmarker.embedded.llm.rules import EngineRules


@dataclass
class Asked:
    """A request: its tokens and those of its answer."""

    at_ns: int
    prompt: list[int]
    answer: list[int]


@dataclass
class Plain:
    """One request on its way."""

    asked: Asked
    done: int = 0
    is_filling: bool = False
    produced: int = 0
    blocks: list[Block] = field(default_factory=list)
    token_ns: list[int] = field(default_factory=list)
    cached: int = -1
    preemptions: int = 0
    computed: int = 0

    @property
    def text(self) -> list[int]:
        return self.asked.prompt + self.asked.answer[: self.produced]


@dataclass
class Block:
    """A block of the cache, with the text up to its end where it is full."""

    holders: int = 1
    text: tuple[int, ...] | None = None


class PlainEngine:
    """Runs requests to their ends."""

    def __init__(self, rules: EngineRules) -> None:
        self.rules = rules
        self.free: list[Block] = [Block(0) for _ in range(rules.blocks)]
        self.known: defaultdict[tuple[int, ...], list[Block]] = defaultdict(list)
        self.waiting: list[Plain] = []
        self.running: list[Plain] = []

    def run(self, asked: list[Asked]) -> list[Plain]:
        found = [Plain(each) for each in asked]
        coming = list(found)
        now = 0
        while coming or self.waiting or self.running:
            if not (self.waiting or self.running):
                now = coming[0].asked.at_ns
                self.waiting.append(coming.pop(0))
            now += self._step(now)
            while coming and coming[0].asked.at_ns < now:
                self.waiting.append(coming.pop(0))
        return found

    def _step(self, now: int) -> int:
        size, budget = self.rules.block_size, self.rules.max_num_batched_tokens
        work: list[tuple[Plain, int, int]] = []
        preempted = False
        for plain in list(self.running):
            if plain not in self.running:
                continue
            new = min(len(plain.text) - plain.done, budget)
            need = -(-(plain.done + new) // size) - len(plain.blocks)
            while plain in self.running and need > len(self.free):
                self._preempt(self.running.pop())
                preempted = True
            if plain in self.running and new:
                self._compute(plain, new, need, work)
                budget -= new
        while not preempted and self.waiting and budget and len(self.running) < self.rules.max_num_seqs:
            plain = self.waiting[0]
            hits = self._hits(plain)
            new = min(len(plain.text) - len(hits) * size, budget)
            need = -(-(len(hits) * size + new) // size) - len(hits)
            whole = -(-len(plain.text) // size) - len(hits)
            if whole + sum(block.holders == 0 for block in hits) > len(self.free):
                break
            self.waiting.pop(0)
            self.running.append(plain)
            plain.is_filling = True
            for block in hits:
                if not block.holders:
                    self.free = [other for other in self.free if other is not block]
                block.holders += 1
            plain.blocks, plain.done = hits, len(hits) * size
            plain.cached = plain.done if plain.cached < 0 else plain.cached
            self._compute(plain, new, need, work)
            budget -= new
        return self._end(now, work)

    def _compute(self, plain: Plain, new: int, need: int, work: list[tuple[Plain, int, int]]) -> None:
        for _ in range(need):
            block = self.free.pop(0)
            if block.text is not None:
                self.known[block.text] = [other for other in self.known[block.text] if other is not block]
            block.holders, block.text = 1, None
            plain.blocks.append(block)
        work.append((plain, plain.done, new))
        self._name(plain, plain.done + new)

    def _name(self, plain: Plain, done: int) -> None:
        size = self.rules.block_size
        for number, block in enumerate(plain.blocks[: done // size]):
            text = tuple(plain.text[: (number + 1) * size])
            if block.text is None:
                self.known[text].append(block)
                block.text = text

    def _hits(self, plain: Plain) -> list[Block]:
        size, hits = self.rules.block_size, []
        for end in range(size, len(plain.text), size):
            found = self.known[tuple(plain.text[:end])]
            if not found:
                break
            hits.append(found[0])
        return hits

    def _release(self, plain: Plain) -> None:
        for block in reversed(plain.blocks):
            block.holders -= 1
            if not block.holders:
                self.free.insert(0 if block.text is None else len(self.free), block)
        plain.blocks = []

    def _preempt(self, plain: Plain) -> None:
        self._release(plain)
        plain.done = 0
        plain.preemptions += 1
        self.waiting.insert(0, plain)

    def _end(self, now: int, work: list[tuple[Plain, int, int]]) -> int:
        """The length of the step, and what came of each that it computed."""
        contexts = [done for plain, done, _ in work if not plain.is_filling]
        chunks = [(done, new) for plain, done, new in work if plain.is_filling]
        length = 0.0
        if chunks:
            length += self.rules.prefill_ms[2] + sum(self.rules.chunk_ms(done, new) for done, new in chunks)
        if contexts:
            length += self.rules.decode_ms(sum(contexts), len(contexts))
        passed = round(length * 1_000_000)
        for plain, done, new in work:
            plain.done = done + new
            plain.computed += new
            if plain.done == len(plain.text):
                plain.is_filling = False
                plain.produced += 1
                plain.token_ns.append(now + passed)
            if plain.produced == len(plain.asked.answer):
                self.running.remove(plain)
                self._release(plain)
        return passed
