"""The share of a trace's input tokens that stand in blocks which a prompt before had, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_BITS = 1 << 27
_PROBES = 3


class Reuse:
    """Counts the tokens of prompts, and those of the blocks at their beginning that were there before.

    It remembers blocks as three bits each of 16 MiB: of ten million, three in a thousand seem to be known.
    """

    def __init__(self) -> None:
        self._bits = bytearray(_BITS >> 3)
        self.tokens = self.known = 0

    def add(self, blocks: Iterable[tuple[int, int]], block_tokens: int, tokens: int) -> None:
        """A prompt of so many tokens. The last one is computed by any server, whatever it has."""
        known, new = 0, False
        for block in blocks:
            new = not self._had(block) or new
            known += not new
        self.tokens += tokens
        self.known += min(known * block_tokens, tokens - 1)

    @property
    def share(self) -> float | None:
        """Of all tokens; None where there were no blocks."""
        return self.known / self.tokens if self.tokens else None

    def _had(self, block: tuple[int, int]) -> bool:
        had = True
        for probe in range(_PROBES):
            place = hash((probe, *block)) % _BITS
            byte, bit = place >> 3, 1 << (place & 7)
            had = had and bool(self._bits[byte] & bit)
            self._bits[byte] |= bit
        return had
