"""Tests of the exit codes."""

from __future__ import annotations

import pytest

from inference_benchmarker.exit_codes import worst_exit_code


@pytest.mark.parametrize(
    ("codes", "code"), [((0, 0), 0), ((0, 1), 1), ((3, 1), 3), ((3, 130), 130), ((1, 130, 2, 3), 2), ((0,), 0)]
)
def test_the_gravest_exit_code_counts(codes: tuple[int, ...], code: int) -> None:
    assert worst_exit_code(*codes) == code
