"""The tokens of each piece of a stream, by the usage that came with it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.clients.piece_tokens import MOST_COUNTED, TokenCounter
from inference_benchmarker.records.pieces import Piece, Reasoning


def tokens_of(*pieces: tuple[str, Any]) -> tuple[list[int | None], TokenCounter]:
    """Of each piece and its usage the tokens that it is said to have, None for a piece that says nothing."""
    counter = TokenCounter()
    texts = [counter.counted(text, usage) for text, usage in pieces]
    assert texts == [text for text, _ in pieces]
    return [getattr(text, "tokens", None) for text in texts], counter


def reported(tokens: Any) -> dict[str, Any]:
    return {"prompt_tokens": 5, "completion_tokens": tokens}


@pytest.mark.parametrize(
    ("pieces", "tokens"),
    [
        ([("ab", reported(2)), ("c", reported(3)), ("defg", reported(7))], [2, None, 4]),
        ([("a", None), ("b", None), ("cd", reported(4))], [None] * 3),  # the usage of the end, in the last piece
        ([("ab", reported(2)), ("cd", None), ("ef", reported(6))], [2, None, None]),  # four tokens are of two pieces
        (
            [("ab", reported(2)), ("c", reported(2)), ("de", reported(4))],
            [2, 0, 2],
        ),  # the second one has a part of the same token
        ([("a", reported(1)), ("b", reported(1)), ("cd", reported(3))], [None] * 3),  # the second one was given a token
        ([("a", reported(1)), ("b", reported(1)), ("cde", reported(4)), ("f", reported(4))], [None, None, 2, 0]),
        (
            [("ab", reported(4)), ("cd", reported(2)), ("ef", reported(6))],
            [4, None, None],
        ),  # a count that falls is none
        ([("ab", reported(10**9)), ("cd", reported(10**9 + 2))], [None, 2]),  # more than a text can have
        ([("a" * 2000, reported(1000)), ("b", reported(1018))], [1000, None]),
        ([("ab", reported("2")), ("cd", reported(4))], [None, None]),
        ([("ab", reported(True))], [None]),
        ([("ab", [2])], [None]),
        ([("", reported(0)), ("é" * 5, reported(10))], [None, 10]),
    ],
)
def test_a_piece_has_what_the_count_grew_by(pieces: list[tuple[str, Any]], tokens: list[int | None]) -> None:
    found, counter = tokens_of(*pieces)
    assert found == tokens
    assert counter.has_counted is any(tokens)
    assert counter.pieces == len(pieces)


def test_reasoning_is_still_reasoning() -> None:
    counter = TokenCounter()
    piece = counter.counted(Reasoning("hm so", "so"), reported(3))
    assert isinstance(piece, Reasoning)
    assert (piece, piece.answer, piece.tokens) == ("hm so", "so", 3)


def test_a_stream_has_no_more_tokens_than_a_worker_has_room_for() -> None:
    half = MOST_COUNTED // 2
    text = "x" * half
    found, counter = tokens_of(*[(text, reported(half * number)) for number in range(1, 5)])
    assert found == [half, half, None, None]
    assert counter.pieces == 4


@given(st.integers(1, 9), st.integers(1, 50))
def test_a_usage_that_is_renewed_every_few_pieces_counts_each_piece_once(every: int, pieces: int) -> None:
    counter = TokenCounter()
    found = [counter.counted("word", reported(max(number // every * every, 1))) for number in range(1, pieces + 1)]
    assert sum(piece.tokens if isinstance(piece, Piece) else 1 for piece in found) <= pieces


@given(st.lists(st.integers(1, 6), min_size=1, max_size=30))
def test_counts_that_are_true_are_those_of_the_pieces(sizes: list[int]) -> None:
    counter = TokenCounter()
    pieces = [
        counter.counted("x" * size, reported(total))
        for size, total in zip(sizes, itertools.accumulate(sizes), strict=True)
    ]
    assert [piece.tokens if isinstance(piece, Piece) else 1 for piece in pieces] == sizes
