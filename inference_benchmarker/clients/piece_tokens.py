"""The tokens of each piece of a stream, by the usage that comes with it. Pure."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.records.answer import Piece, Reasoning

_HIDDEN = 16
"""Tokens that a piece may have beyond its bytes: those of its template are not shown."""


class TokenCounter:
    """Counts the tokens of a stream's pieces where the server sends its usage with each (``continuous_usage_stats``).

    A stream whose first piece comes without usage is not counted, and from a piece on that comes without, neither is
    the rest: what the usage grew by would be the tokens of several pieces. ``pieces``: those that came; ``has_counted``
    tells whether one of them has several tokens.
    """

    __slots__ = ("_counts", "_tokens", "has_counted", "pieces")

    def __init__(self) -> None:
        self._tokens = self.pieces = 0
        self._counts, self.has_counted = True, False

    def counted(self, text: str, usage: Any) -> str:
        """The piece with its number of tokens, if it has several; ``usage`` is what came with it, None for nothing.

        More tokens than the piece can have are not believed: a token of a text has a byte at least.
        """
        self.pieces += 1
        if not self._counts:
            return text
        told = usage.get("completion_tokens") if type(usage) is dict else None
        if type(told) is not int or told < self._tokens:
            self._counts = False
            return text
        tokens, self._tokens = told - self._tokens, told
        if not 1 < tokens <= len(text.encode("utf-8", "surrogatepass")) + _HIDDEN:
            return text
        self.has_counted = True
        return Reasoning(text, text.answer, tokens) if isinstance(text, Reasoning) else Piece(text, tokens)
