"""A duration in a sentence: its two largest units, and no unit of 0."""

from __future__ import annotations

import pytest

from inference_benchmarker.words.wording import length_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (200, "3 min 20 s"),
        (900, "15 min"),
        (3600, "1 h"),
        (3659, "1 h"),
        (3900, "1 h 5 min"),
        (90000, "25 h"),
    ],
)
def test_a_length_has_no_unit_of_zero(seconds: float, text: str) -> None:
    assert length_text(seconds) == text
