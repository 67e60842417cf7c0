"""The share of a trace's input tokens that stand in blocks which a prompt before had, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_BITS = 1 << 27
_MASK, _SHIFT = _BITS - 1, 32


class Reuse:
    """Counts the tokens of prompts, and those of the blocks at their beginning that were there before.

    It remembers blocks as three bits each of 16 MiB: of ten million, three in a thousand seem to be known.
    """

    def __init__(self) -> None:
        self._bits = bytearray(_BITS >> 3)
        self.tokens = self.known = 0

    def add(self, own: int, blocks: Sequence[int], block_tokens: int, tokens: int, kept: int = 0) -> None:
        """A prompt of so many tokens. The last one is computed by any server, whatever it has.

        ``own``: whose blocks these are. The first ``kept`` of them were those of a prompt before, and are known.
        """
        known, new = kept, False
        bits = self._bits
        for block in blocks[kept:] if kept else blocks:
            first = hash((own, block))
            step = first >> _SHIFT | 1
            second, third = first + step, first + 2 * step
            a, b, c = (first & _MASK) >> 3, (second & _MASK) >> 3, (third & _MASK) >> 3
            bit_a, bit_b, bit_c = 1 << (first & 7), 1 << (second & 7), 1 << (third & 7)
            if bits[a] & bit_a and bits[b] & bit_b and bits[c] & bit_c:
                known += not new
            else:
                new = True
                bits[a] |= bit_a
                bits[b] |= bit_b
                bits[c] |= bit_c
        self.tokens += tokens
        self.known += min(known * block_tokens, tokens - 1)

    @property
    def share(self) -> float | None:
        """Of all tokens; None where there were no blocks."""
        return self.known / self.tokens if self.tokens else None
