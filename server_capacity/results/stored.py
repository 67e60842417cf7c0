"""Stores what a command found in a folder of its own: a JSON file, and the text that is printed of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import KEY, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_there, replace_file
from inference_benchmarker.wave.built_on import KEY as BUILT_ON
from inference_benchmarker.wave.built_on import built_on, require_built_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Stored:
    """The two files of a kind of folder, and how the text is made of the JSON file's object and the folder's path."""

    file: str
    text: str
    to_text: Callable[[dict[str, Any], str], str]
    check: Callable[[dict[str, Any]], object]
    """Decodes the object; ValueError for what does not fit its type or contradicts itself."""
    hold: Callable[[Path, Any], None] = lambda *_: None
    """Holds what was decoded against what lies below the folder; ValueError where they disagree."""

    def write(self, folder: Path, data: dict[str, Any]) -> None:
        """Write both files, and put the digest into the object, and those of what it is built on. Raises OSError."""
        if below := built_on(folder, folder.iterdir()):
            data[BUILT_ON] = below
        data[KEY] = write_with_digest(folder / self.file, data)
        replace_file(folder / self.text, self.to_text(data, str(folder)))

    def save(self, folder: Path, data: dict[str, Any]) -> None:
        """Write both files; BenchmarkError where they cannot be written."""
        with writable(folder):
            self.write(folder, data)

    def is_in(self, folder: Path) -> bool:
        """Tells whether the folder holds one that was written; reading tells where that is no file any more."""
        return is_there(folder / self.file)

    def load(self, folder: Path) -> tuple[dict[str, Any], str]:
        """The content of the JSON file, checked whole, and its text; BenchmarkError for what is none."""
        data = self.read(folder)
        try:
            return data, self.to_text(data, str(folder))
        except UNREADABLE as error:
            raise foreign(folder / self.file, error) from None

    def read(self, folder: Path, file: Path | None = None) -> dict[str, Any]:
        """The content of the JSON file: each value in its bounds, none contradicting another, all as its digest says.

        BenchmarkError otherwise. ``file``: another one of this kind.
        """
        path = file or folder / self.file
        data = read_json(path)
        try:
            require_digest(data)
            found = self.check(data)
            require_built_on(path.parent, data)
            self.hold(path.parent, found)
        except UNREADABLE as error:
            raise foreign(path, error) from None
        return data


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
