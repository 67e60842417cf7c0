"""The size of the largest answer that this process takes, whichever of our clients reads it.

A worker sets it to its plan's before it loads the user's file, which makes the clients. An answer's body counts, as it
came and as it is once it is decoded.
"""

from __future__ import annotations

from inference_benchmarker.words.units import MIB
from inference_benchmarker.words.wording import size_text

DEFAULT_ANSWER_SIZE = 256 * MIB
"""In bytes: several times the largest images and recordings that models answer with."""

_most = DEFAULT_ANSWER_SIZE


class AnswerTooLargeError(Exception):
    """The server sent more than is taken of one answer.

    It is no OSError: the connection worked until the client closed it.
    """

    @classmethod
    def of_body(cls, most: int, then: str = "") -> AnswerTooLargeError:
        """The error of a body of more than ``most`` bytes; ``then``: when it has as many."""
        return cls(f"the answer's body has more than {size_text(most)}{then}, which --max-answer-size sets")


def take_at_most(size: int) -> None:
    """Set the size in bytes that holds for connections that are made from now on."""
    global _most  # noqa: PLW0603 - a process has one limit
    _most = size


def largest_answer() -> int:
    """The size of the largest answer that is taken, in bytes."""
    return _most
