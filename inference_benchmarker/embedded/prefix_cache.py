"""The prefix cache of the embedded endpoint's language model: blocks of tokens that it has computed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.llm.kv_blocks import KvBlocks, chain_of

if TYPE_CHECKING:
    from collections.abc import Sequence

BLOCK = 16
"""Tokens of a block, as in vLLM; a word is a token."""


class PrefixCache:
    """The blocks that begin a text, each known by its words and by all before it; the least recently used goes first.

    ``tokens``: how many there is room for; 0: no cache. The last token of a prompt is always computed.
    """

    def __init__(self, tokens: int) -> None:
        self._blocks = KvBlocks(tokens // BLOCK)

    def take(self, prompt: Sequence[str], answer: Sequence[str]) -> int | None:
        """The tokens of a prompt that are there, which has them kept, and those of its answer; None without a cache."""
        blocks = self._blocks
        if not blocks.count:
            return None
        chain = chain_of((*prompt, *answer), BLOCK)
        found = blocks.find(chain, len(chain))
        blocks.hold(found)
        more = blocks.take(min(len(chain) - len(found), blocks.free))
        blocks.name(more, chain[len(found) :])
        blocks.release([*found, *more], len(found) + len(more))
        return min(len(found), (len(prompt) - 1) // BLOCK) * BLOCK
