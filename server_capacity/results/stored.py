"""Stores what a command found in a folder of its own: a JSON file, and the text that is printed of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.digest import require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_there, replace_file
from inference_benchmarker.wave.provenance import built_on, require_built_on
from server_capacity.results.types.capacity import CapacityResult
from server_capacity.results.types.plan import PlanResult
from server_capacity.results.types.proof import ProofResult
from server_capacity.results.types.ranking import RankingResult
from server_capacity.results.types.surface import SurfaceResult
from server_capacity.results.types.tiers import TiersResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

T = TypeVar("T", CapacityResult, PlanResult, ProofResult, RankingResult, SurfaceResult, TiersResult)


class Loaded(NamedTuple, Generic[T]):
    """A stored result, its text, and its object as it stands in the file, whatever a later version wrote there."""

    found: T
    text: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored(Generic[T]):
    """The two files of a kind of folder, and how the text is made of the result and the folder's path."""

    file: str
    text: str
    to_text: Callable[[T, str], str]
    decode: Callable[[dict[str, Any]], T]
    """ValueError for what does not fit its type or contradicts itself."""
    hold: Callable[[Path, T], None] = lambda *_: None
    """Checks what was decoded against what lies below the folder; ValueError where they disagree."""
    below: Callable[[Path, T], Iterable[Path]] = lambda folder, _: folder.iterdir()
    """The folders that it is built on, as far as they hold results."""

    def write(self, folder: Path, found: T) -> T:
        """Write both files, and give the result with its digest and those of what it is built on. Raises OSError."""
        found = replace(found, built_on=built_on(folder, self.below(folder, found)) or found.built_on)
        found = replace(found, digest=write_with_digest(folder / self.file, encoded(found)))
        replace_file(folder / self.text, self.to_text(found, str(folder)))
        return found

    def save(self, folder: Path, found: T) -> T:
        """The same; BenchmarkError where they cannot be written."""
        with writable(folder):
            return self.write(folder, found)

    def is_in(self, folder: Path) -> bool:
        """Tells whether the folder holds one that was written; reading tells where that is no file any more."""
        return is_there(folder / self.file)

    def load(self, folder: Path) -> Loaded[T]:
        """The result, checked whole; BenchmarkError for what is none."""
        data, found = self._read(folder / self.file)
        try:
            return Loaded(found, self.to_text(found, str(folder)), data)
        except UNREADABLE as error:
            raise foreign(folder / self.file, error) from None

    def read(self, folder: Path, file: Path | None = None) -> T:
        """The result: each value in its bounds, none contradicting another, all as its digest says.

        BenchmarkError otherwise. ``file``: another one of this kind.
        """
        return self._read(file or folder / self.file)[1]

    def _read(self, path: Path) -> tuple[dict[str, Any], T]:
        data = read_json(path)
        try:
            require_digest(data)
            found = self.decode(data)
            require_built_on(path.parent, data)
            self.hold(path.parent, found)
        except UNREADABLE as error:
            raise foreign(path, error) from None
        return data, found


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
