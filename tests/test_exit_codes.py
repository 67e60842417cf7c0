"""Tests of the exit codes."""

from __future__ import annotations

from itertools import product

import pytest

from inference_benchmarker.exit_codes import GRAVEST_FIRST, INVALID, worst_exit_code

UNKNOWN = (137, 139, 143, 4, 255, -9, -11)


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((0, 1), 1), ((3, 1), 3), ((3, 130), 130), ((1, 130, 2, 3), 2), ((0,), 0)]
)
def test_the_gravest_exit_code_counts(codes: tuple[int, ...], code: int) -> None:
    assert worst_exit_code(*codes) == code


@pytest.mark.parametrize(("one", "other"), list(product((*UNKNOWN, *GRAVEST_FIRST), repeat=2)))
def test_an_unknown_exit_code_is_graver_than_every_known_one(one: int, other: int) -> None:
    unknown = [code for code in (one, other) if code in UNKNOWN]
    known = next(code for code in (2, 130, 3, 1, 0, None) if code in (one, other, None))
    assert worst_exit_code(one, other) == (unknown[0] if unknown else known)


def test_no_stored_exit_code_is_no_pass() -> None:
    assert worst_exit_code(0, None) == worst_exit_code(None) == INVALID
