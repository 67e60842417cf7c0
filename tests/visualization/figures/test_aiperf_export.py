"""Exports of aiperf that are none: of another program, or damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from visualization.figures.aiperf_export import BLOCK, read_export

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["[1]", "5", "null", '{"records": [1]}', '{"records": "x"}'])
def test_what_is_no_export_is_said_so(text: str, tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(text)
    with pytest.raises(ValueError, match="is not an export of aiperf"):
        read_export(tmp_path / "export.json", tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        '{"request_throughput": 5, "benchmark_duration": [1], "request_count": "x", "input_config": [1]}',
        '{"input_config": {"phases": 5, "loadgen": [1]}}',
        '{"input_config": {"phases": [5]}}',
        '{"input_config": {"phases": []}}',
    ],
)
def test_numbers_that_are_none_are_not_there(text: str, tmp_path: Path) -> None:
    (tmp_path / "export.json").write_text(text)
    found = read_export(tmp_path / "export.json", tmp_path)
    assert set(found[BLOCK].values()) == {None}
