"""The tokens of each piece of a stream, by the usage that comes with it. Pure."""

from __future__ import annotations

from typing import Any

from inference_benchmarker.records.pieces import Piece, Reasoning

_HIDDEN = 16
"""Tokens that a piece may have beyond its bytes: those of its template are not shown."""
MOST_COUNTED = 1_000_000
"""Tokens of one stream: the worker keeps an instant of each, so that a text of some MiB would fill its memory."""


class TokenCounter:
    """Counts the tokens of a stream's pieces where the server sends its usage with each (``continuous_usage_stats``).

    A stream whose first piece comes without usage is not counted, and from a piece on that comes without, neither is
    the rest: what the usage grew by would be the tokens of several pieces. Once ``MOST_COUNTED`` are counted, the rest
    is not either. ``pieces``: those that came; ``has_counted`` tells whether one of them has several tokens.
    """

    __slots__ = ("_ahead", "_counts", "_room", "_tokens", "has_counted", "pieces")

    def __init__(self) -> None:
        self._tokens = self._ahead = self.pieces = 0
        self._room = MOST_COUNTED
        self._counts, self.has_counted = True, False

    def counted(self, text: str, usage: Any) -> str:
        """The piece with its number of tokens, if it has several; ``usage`` is what came with it, None for nothing.

        More tokens than the piece can have are not believed: a token of a text has a byte at least. A piece without a
        token of its own, after one with several, has 0: SGLang sends the thought and the answer of a token as two.
        Before one with several it has 1, which the next one with several does not have: its usage counts both, as
        where a server renews the usage every few pieces.
        """
        self.pieces += 1
        if not self._counts:
            return text
        total = usage.get("completion_tokens") if type(usage) is dict else None
        if type(total) is not int or total < self._tokens:
            self._counts = False
            return text
        tokens, self._tokens = total - self._tokens, total
        if tokens == 0 and self.has_counted:
            return _with_tokens(text, 0)
        if tokens:
            already = min(self._ahead, tokens - 1)
            self._ahead, tokens = self._ahead - already, tokens - already
        elif text:
            self._ahead += 1
        if not 1 < tokens <= len(text.encode("utf-8", "surrogatepass")) + _HIDDEN:
            return text
        self._room -= tokens
        if self._room < 0:
            self._counts = False
            return text
        self.has_counted = True
        return _with_tokens(text, tokens)


def _with_tokens(text: str, tokens: int) -> Piece:
    return Reasoning(text, text.answer, tokens) if isinstance(text, Reasoning) else Piece(text, tokens)
