"""``timeline.csv``, whoever wrote it: its numbers, and what of a long one is kept."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.wave.files import timeline_file
from inference_benchmarker.wave.files.timeline_file import read_timeline

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "second,ok,latency_p50_s,latency_p99_s,ttft_p99_s,stage\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "timeline.csv"
    path.write_text(text)
    return path


def test_its_numbers_are_columns_and_its_names_are_none_of_them(tmp_path: Path) -> None:
    found = read_timeline(written(tmp_path, HEAD + '0,5,0.02,,,calm\n1,6,,0.5,,"a,b"\n'))
    assert found == {
        "second": [0, 1],
        "ok": [5, 6],
        "latency_p50_s": [0.02, None],
        "latency_p99_s": [None, 0.5],
        "ttft_p99_s": [None, None],
    }
    assert read_timeline(written(tmp_path, "")) == {}
    assert read_timeline(written(tmp_path, HEAD))["ok"] == []


def test_seconds_of_a_long_wave_become_rows_that_lose_no_peak(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_file, "MOST_ROWS", 4)
    rows = [f"{second},{second},0.0{second},{second / 10},,\n" for second in range(9)]
    found = read_timeline(written(tmp_path, HEAD + "".join(rows)))
    assert found["second"] == [0, 3, 6]
    assert found["ok"] == [1, 4, 7], "the mean of each three"
    assert found["latency_p50_s"] == pytest.approx([0.01, 0.04, 0.07])
    assert found["latency_p99_s"] == pytest.approx([0.2, 0.5, 0.8])
    assert found["ttft_p99_s"] == [None, None, None]


@pytest.mark.parametrize("row", ["0,1,1e300,,,", "0,1,inf,,,", "0,nan,,,,", "0,x,,,,", "0,1"])
def test_what_is_no_number_is_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_timeline(written(tmp_path, f"{HEAD}{row}\n"))


def test_a_name_longer_than_a_field_may_be_is_refused(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)
    try:
        with pytest.raises(ValueError, match="field larger than field limit"):
            read_timeline(written(tmp_path, f"{HEAD.rstrip()},{'x' * 131_073}\n0,1,,,,,\n"))
    finally:
        csv.field_size_limit(before)


def test_one_that_nobody_would_wait_for_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline_file, "MOST_SECONDS", 2)
    with pytest.raises(ValueError, match="has 3 lines, more than 2"):
        read_timeline(written(tmp_path, HEAD + "0,1,,,,\n1,1,,,,\n"))
