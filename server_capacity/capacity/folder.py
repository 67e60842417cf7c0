"""The folder of a search: ``capacity.json``, its text, and the run directories of its waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.files import is_file, replace_file
from inference_benchmarker.json_file import UNREADABLE, foreign, read_json, write_json
from server_capacity.capacity.text import to_text

if TYPE_CHECKING:
    from pathlib import Path

FILE, TEXT = "capacity.json", "capacity.txt"


def save(folder: Path, data: dict[str, Any]) -> None:
    """Write capacity.json and capacity.txt; where they cannot be written, that joins the ``failures`` of the answer.

    What was measured for minutes is told whatever the disk does.
    """
    try:
        write_json(folder / FILE, data)
        replace_file(folder / TEXT, to_text(data, str(folder)))
    except OSError as error:
        reason = error.strerror or str(error)
        told = f"{folder}: cannot be written ({reason}). What is printed is all there is."
        data["failures"] = [*(each for each in data.get("failures") or [] if each != told), told]


def is_capacity(folder: Path) -> bool:
    """Tells whether it is the folder of a search that was written."""
    return is_file(folder / FILE)


def load(folder: Path) -> tuple[dict[str, Any], str]:
    """The content of capacity.json and its text; BenchmarkError for what is none."""
    data = read_json(folder / FILE)
    try:
        int(data["exit_code"])
        return data, to_text(data, str(folder))
    except UNREADABLE as error:
        raise foreign(folder / FILE, error) from None
