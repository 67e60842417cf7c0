"""Rows of foreign texts: a spreadsheet runs none of them, and none holds a secret."""

from __future__ import annotations

import csv
import io

import pytest

from inference_benchmarker.words.csv_cells import CleanRows, no_formula
from inference_benchmarker.words.redact import HIDDEN


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", " =1+1", "=", "-", "＝1+1", "=HYPERLINK('x')", "-2+3"],
)
def test_what_a_spreadsheet_would_run_is_a_text(text: str) -> None:
    assert no_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "invoke", "-1.5", "+3", "-0.000000", "1e5", "N/A", "a\n=1", "'=1"])
def test_what_is_none_stays(text: str) -> None:
    assert no_formula(text) == text


def test_rows_are_clean_and_numbers_stay_numbers() -> None:
    file = io.StringIO()
    rows = CleanRows(csv.writer(file, lineterminator="\n"), ["a-secret-value"])
    rows.writerow(iter(["GET", "=a-secret-value", -3, 1.5, None, "api_key=abcdefgh"]))
    rows.writerow(["x" * 10**6])
    rows.writerow(["\x1b[2Ja", "\x1b=1", "\u202eb", "two\nlines"])
    first, second, *strange = file.getvalue().splitlines()
    assert strange == [" [2Ja,' =1, b,\"two", 'lines"']
    assert first == f"GET,'={HIDDEN},-3,1.5,,api_key={HIDDEN}"
    assert len(second) == 10_000
