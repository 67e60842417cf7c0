"""Stores what a command found in a folder of its own: a JSON file, and the text that is printed of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.files import is_file, replace_file
from inference_benchmarker.json_file import UNREADABLE, foreign, read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stored:
    """The two files of a kind of folder, and how the text is made of the JSON file's object and the folder's path."""

    file: str
    text: str
    to_text: Callable[[dict[str, Any], str], str]

    def write(self, folder: Path, data: dict[str, Any]) -> None:
        """Write both files. Raises OSError."""
        write_json(folder / self.file, data)
        replace_file(folder / self.text, self.to_text(data, str(folder)))

    def save(self, folder: Path, data: dict[str, Any]) -> None:
        """Write both files; BenchmarkError where they cannot be written."""
        with writable(folder):
            self.write(folder, data)

    def is_in(self, folder: Path) -> bool:
        """Tells whether the folder holds one that was written."""
        return is_file(folder / self.file)

    def load(self, folder: Path) -> tuple[dict[str, Any], str]:
        """The content of the JSON file and its text; BenchmarkError for what is none."""
        data = read_json(folder / self.file)
        try:
            int(data["exit_code"])
            return data, self.to_text(data, str(folder))
        except UNREADABLE as error:
            raise foreign(folder / self.file, error) from None


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """BenchmarkError where what is done in it cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise BenchmarkError(
            f"{folder}: cannot be written ({reason}).", "Give another place with --output-dir."
        ) from None
