"""The answer that a session receives where ``invoke`` yields it piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.records.response import Response


@dataclass(frozen=True, slots=True)
class Answer:
    """A streamed answer: its ``pieces`` as ``invoke`` yielded them, and the ``text`` of those that are str, joined.

    ``response`` is the usage that it told; None where it told none.
    """

    text: str
    pieces: tuple[Any, ...]
    response: Response | None = None

    @classmethod
    def of(cls, pieces: Sequence[Any], response: Response | None) -> Self:
        """The answer of these pieces."""
        return cls("".join(piece for piece in pieces if isinstance(piece, str)), tuple(pieces), response)
