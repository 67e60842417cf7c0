"""JSON that anybody may have written: what is refused, and what is not."""

from __future__ import annotations

import json

import pytest

from inference_benchmarker.data.json_text import parse_json


@pytest.mark.parametrize(
    "value",
    [
        10**40 - 1,
        -(10**40) + 1,
        [1, [2.5e300, "a"], {"b": None}],
        {"digits in a text": "7" * 500, "n": 3},
        "\N{DEVANAGARI DIGIT ONE}" * 60,
    ],
)
def test_what_is_within_bounds_is_read(value: object) -> None:
    assert parse_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ["1" * 41, f"[3, {'9' * 5_000}]", f'{{"a": [{"12345678901" * 4}]}}', f"-{'1' * 41}"])
def test_a_number_of_many_digits_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a number of"):
        parse_json(text.encode())


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_the_depth_is_bounded_and_not_the_number_of_lists(opening: str, closing: str) -> None:
    parse_json(f"{opening * 64}1{closing * 64}".encode())
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(f"{opening * 65}1{closing * 65}".encode())
    assert parse_json(b"[" + b",".join([b"[1]"] * 1_000) + b"]") == [[1]] * 1_000


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "1e999", "", "{", '{"a": 1,}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        parse_json(text.encode())
