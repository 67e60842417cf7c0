"""Stores what a command found in a folder of its own: a JSON file, and the text that is printed of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import KEY, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import is_file, is_there, replace_file
from inference_benchmarker.wave.built_on import KEY as BUILT_ON
from inference_benchmarker.wave.built_on import built_on, require_built_on
from server_capacity.results.types.standing import standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

_CAPACITY = "capacity.json"


@dataclass(frozen=True, slots=True)
class Stored:
    """The two files of a kind of folder, and how the text is made of the JSON file's object and the folder's path."""

    file: str
    text: str
    to_text: Callable[[dict[str, Any], str], str]
    check: Callable[[dict[str, Any]], object]
    """Decodes the object; ValueError for what does not fit its type or contradicts itself."""

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
            self.check(data)
            require_waves(path.parent, data)
            require_built_on(path.parent, data)
            require_searches(path.parent, data)
        except UNREADABLE as error:
            raise foreign(path, error) from None
        return data


def require_waves(folder: Path, data: Mapping[str, Any]) -> None:
    """Hold the waves of a search that are there against what is said of them; ValueError where they disagree."""
    told = {each["directory"]: each for each in data.get("confirmation") or [] if each.get("directory")}
    sent: dict[str, int] = {}
    for each in data.get("stretches") or []:
        if each.get("wave"):
            sent[each["wave"]] = sent.get(each["wave"], 0) + each.get("sent", 0)
    if data.get("directory") and "sent" in data:  # of a proof, which is one wave
        sent[data["directory"]] = data["sent"]
    for name in {*told, *sent}:
        if name in (".", "..") or "/" in name:
            raise ValueError(f"{name[:40]!r} is no folder of its own")
        summary = folder / name / "summary.json"
        if not is_file(summary):
            continue
        found = read_json(summary, inside=folder)
        if sent.get(name, 0) > found["ledger"]["sent"]:
            raise ValueError(f"{name} sent {found['ledger']['sent']:,} requests, and its stretches {sent[name]:,}")
        code = told[name].get("exit_code") if name in told else None
        if code is not None and code != found["exit_code"]:
            raise ValueError(f"{name} has exit code {found['exit_code']}, and is said to have {code}")


def require_searches(folder: Path, data: Mapping[str, Any]) -> None:
    """Hold the searches of a ranking that are there against its rows; ValueError where they disagree."""
    for row in data.get("rows") or []:
        name = row.get("capacity")
        if not name or "/" in name or name in (".", ".."):  # which no search is read by
            continue
        if not is_file(folder / name / _CAPACITY):
            continue
        found = read_json(folder / name / _CAPACITY, inside=folder)
        told, code = row.get("exit_code"), standing(found)["exit_code"]
        if told is not None and told != code:
            raise ValueError(f"{name} has exit code {code}, and is said to have {told}")
        arguments = (found.get("endpoint") or {}).get("arguments") or {}
        for key, value in (row.get("variant") or {}).items():
            if key in arguments and not _is_same(value, arguments[key]):
                raise ValueError(f"{name} was searched with {key}={arguments[key]}, and is said to be {key}={value}")
        rates = {found.get("rate"), (found.get("at_least") or {}).get("rate")}
        if row.get("rate") is not None and row["rate"] not in rates:
            raise ValueError(f"{name} found another rate than the {row['rate']:g} that it is said to have")


def _is_same(text: object, value: object) -> bool:
    """Tells whether a value of a variant, which is a text there, is this argument: 1e3 is 1000.0, and true is True."""
    try:
        return float(str(text)) == float(str(value))
    except ValueError:
        return str(text).lower() == str(value).lower()


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
