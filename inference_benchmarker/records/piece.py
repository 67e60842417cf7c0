"""The pieces of a stream of which more is known than their text."""

from __future__ import annotations

from typing import Self


class Piece(str):
    """A piece of a stream of which the server gave the number of ``tokens``; 0: its token came with the one before."""

    __slots__ = ("tokens",)
    tokens: int

    def __new__(cls, text: str, tokens: int) -> Self:
        """The piece with its text."""
        piece = super().__new__(cls, text)
        piece.tokens = tokens
        return piece


class Reasoning(Piece):
    """A piece in which a model reasons: ``answer`` is the part of it that belongs to the answer, mostly none."""

    __slots__ = ("answer",)
    answer: str

    def __new__(cls, text: str, answer: str = "", tokens: int = 1) -> Self:
        """The piece with its text."""
        piece = super().__new__(cls, text, tokens)
        piece.answer = answer
        return piece


def answered(piece: str) -> str:
    """The part of a piece that belongs to the answer."""
    return piece.answer if isinstance(piece, Reasoning) else piece
