"""The prefix cache of the embedded endpoint's language model: blocks of tokens that it has computed. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = 16
"""Tokens of a block, as in vLLM; a word is a token."""


class PrefixCache:
    """The blocks that begin a text, each known by its words and by all before it; the least recently used goes first.

    ``tokens``: how many there is room for; 0: no cache. The last token of a prompt is always computed.
    """

    def __init__(self, tokens: int) -> None:
        self._room = tokens // BLOCK
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def take(self, prompt: Sequence[str], answer: Sequence[str]) -> int | None:
        """The tokens of a prompt that are there, which has them kept, and those of its answer; None without a cache."""
        if not self._room:
            return None
        chain = _chain((*prompt, *answer))
        known = next((place for place, block in enumerate(chain) if block not in self._blocks), len(chain))
        for block in reversed(chain):  # so that the end of a text goes before its beginning
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._room:
            self._blocks.popitem(last=False)
        return min(known, (len(prompt) - 1) // BLOCK) * BLOCK


def _chain(words: Sequence[str]) -> list[int]:
    chain, before = [], 0
    for begin in range(0, len(words) - BLOCK + 1, BLOCK):
        before = hash((before, *words[begin : begin + BLOCK]))
        chain.append(before)
    return chain
