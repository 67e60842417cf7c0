"""The quick ways of reading times give what the careful ones give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.recording.clock import UNITS, clock_of, iso_ns

if TYPE_CHECKING:
    from decimal import Decimal

ZONES = st.sampled_from(["", "Z", "+00:00", "+02:00", "-0330", " UTC"])
SECONDS = st.sampled_from(["2026-11-23T10:00:00", "2026-11-23 10:00:00", "2026-11-23T10:00:01", "2026-12-31T23:59:59"])
FRACTIONS = st.text("0123456789", min_size=1, max_size=12).map(lambda digits: f".{digits}")
STAMPS = st.builds("{}{}{}".format, SECONDS, FRACTIONS | st.just("") | st.just(",5"), ZONES)


@given(st.lists(STAMPS | STAMPS.map(lambda text: f" {text} "), min_size=1, max_size=20))
def test_each_stamp_is_read_as_if_it_were_alone(stamps: list[str]) -> None:
    read = clock_of("timestamp", stamps).read
    assert [read(stamp) for stamp in stamps] == [iso_ns(stamp) for stamp in stamps]


@given(st.decimals(0, 10**11, places=9) | st.decimals(0, 10**6, places=3), st.sampled_from(list(UNITS)))
def test_a_number_is_read_to_the_last_digit(number: Decimal, unit: str) -> None:
    text = f"{number:f}"
    assert clock_of("t", [text], unit).read(text) == int(number * UNITS[unit])
