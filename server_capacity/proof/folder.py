"""The folder of a proof: ``proof.json``, its text, and the run directory of its wave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import is_file, replace_file
from inference_benchmarker.json_file import UNREADABLE, foreign, read_json, write_json
from server_capacity.proof.text import to_text

if TYPE_CHECKING:
    from pathlib import Path

KIND = "proof"
FILE, TEXT = "proof.json", "proof.txt"


def save(folder: Path, data: dict[str, Any]) -> None:
    """Write proof.json and proof.txt; BenchmarkError where they cannot be written."""
    try:
        write_json(folder / FILE, data)
        replace_file(folder / TEXT, to_text(data, str(folder)))
    except OSError as error:
        reason = error.strerror or str(error)
        raise BenchmarkError(
            f"{folder}: cannot be written ({reason}).", "Give another place with --output-dir."
        ) from None


def is_proof(folder: Path) -> bool:
    """Tells whether it is the folder of a proof that was written."""
    return is_file(folder / FILE)


def load(folder: Path) -> tuple[dict[str, Any], str]:
    """The content of proof.json and its text; BenchmarkError for what is none."""
    data = read_json(folder / FILE)
    try:
        int(data["exit_code"])
        return data, to_text(data, str(folder))
    except UNREADABLE as error:
        raise foreign(folder / FILE, error) from None
