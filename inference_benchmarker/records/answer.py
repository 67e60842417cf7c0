"""The answer that a session receives where ``invoke`` yields it piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.response import Response


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


@dataclass(frozen=True, slots=True)
class Answer:
    """A streamed answer: its ``pieces`` as ``invoke`` yielded them, and the ``text`` of those that are str, joined.

    Reasoning is in the pieces but not in the text. ``response`` is the usage that the answer reported, or None.
    """

    text: str
    pieces: tuple[Any, ...]
    response: Response | None = None

    @classmethod
    def of(cls, pieces: Sequence[Any], response: Response | None) -> Self:
        """The answer of these pieces."""
        said = [answered(piece) for piece in pieces if isinstance(piece, str)]
        return cls("".join(said), tuple(pieces), response)


def answered(piece: str) -> str:
    """The part of a piece that belongs to the answer."""
    return piece.answer if isinstance(piece, Reasoning) else piece
