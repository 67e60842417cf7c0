"""Sizes as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.cli.core.flags import parse_size
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.units import BYTES
from inference_benchmarker.words.wording import size_text


@given(st.integers(0, 10**9), st.sampled_from(["", " "]), st.sampled_from(sorted(BYTES)))
def test_a_size_has_its_unit_in_any_case(number: int, space: str, unit: str) -> None:
    for spelled in (unit, unit.lower(), unit.upper()):
        assert parse_size("--size", f" {number}{space}{spelled} ") == number * BYTES[unit]
    assert parse_size("--size", str(number)) == number


@pytest.mark.parametrize(("text", "size"), [("1.5KiB", 1536), ("0.5 GB", 500_000_000), ("1.9", 1)])
def test_a_fraction_is_of_whole_bytes(text: str, size: int) -> None:
    assert parse_size("--size", text) == size


@pytest.mark.parametrize("text", ["", "MiB", "-1MiB", "1e3", "1,000", "1TiB", "10s", "NaN", "１KiB", "1_000"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--size must be a size, as in 64MiB or 1GB, not"):
        parse_size("--size", text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (256 << 20, "256 MiB"),
        (3 << 30, "3 GiB"),
    ],
)
def test_a_size_is_reported_in_the_unit_that_fits(size: int, text: str) -> None:
    assert size_text(size) == text
