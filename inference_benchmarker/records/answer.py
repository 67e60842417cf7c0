"""The answer that a session receives where it came piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from inference_benchmarker.records.piece import answered
from inference_benchmarker.records.shown_text import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.records.response import Response


@dataclass(frozen=True, slots=True)
class Answer:
    """A streamed answer: its ``pieces`` as they came, and the ``text`` that they show, joined.

    It is iterated as the stream that ``invoke`` returned: its pieces, as often as one likes. Reasoning is in the pieces
    but not in the text. ``response`` is the usage that the answer reported, or None.
    """

    text: str
    pieces: tuple[Any, ...]
    response: Response | None = None

    @classmethod
    def of(cls, pieces: Sequence[Any], response: Response | None) -> Self:
        """The answer of these pieces."""
        said = (piece if isinstance(piece, str) else shown_text(piece) for piece in pieces)
        return cls("".join(map(answered, said)), tuple(pieces), response)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.pieces)
