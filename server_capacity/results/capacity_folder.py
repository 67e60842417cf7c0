"""The folder of a search: ``capacity.json``, its text, and the run directories of its waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from server_capacity.results.codec import check_capacity
from server_capacity.results.stored import Stored
from server_capacity.results.text.capacity import to_text
from server_capacity.results.waves_below import require_waves

if TYPE_CHECKING:
    from pathlib import Path

FILE = "capacity.json"
_STORED = Stored(FILE, "capacity.txt", to_text, check_capacity, require_waves)
load, read, is_capacity = _STORED.load, _STORED.read, _STORED.is_in


def save(folder: Path, data: dict[str, Any]) -> None:
    """Write capacity.json and capacity.txt; where they cannot be written, that joins the ``failures`` of the answer.

    What was measured for minutes is told whatever the disk does.
    """
    try:
        _STORED.write(folder, data)
    except OSError as error:
        reason = error.strerror or str(error)
        told = f"{folder}: cannot be written ({reason}). What is printed is all there is."
        data["failures"] = [*(each for each in data.get("failures") or [] if each != told), told]
