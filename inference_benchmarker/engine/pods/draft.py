"""The results of a wave from pods, as they come home: blocks, each with its digest, in a folder that is not yet a run.

What is in it was checked, so that another command goes on where one was cut off. The other side may be anybody.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
from io import BufferedWriter, FileIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from inference_benchmarker.engine.pods.objects import FILES, RUNS
from inference_benchmarker.engine.pods.terms import BLOCK
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.system.files import OWNER_ONLY as FILE_MODE
from inference_benchmarker.wave.run_dir import OWNER_ONLY, STAMPED, cannot_write
from inference_benchmarker.words.redact import quoted
from inference_benchmarker.words.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.engine.hosts.transport import Message

MOST_FILES = 100_000  # of A and B in hundreds of rounds, from tens of workers
_DEEPEST = 6
_RESULTS = re.compile(rf"(?<![\w/]){RUNS}/(?={STAMPED.pattern})", re.ASCII)
_FILES = re.compile(rf"(?<![\w/]){FILES}/(?=[\w./-]+\.py\b)", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][\w.@+=-]{0,150}", re.ASCII)


class ForeignResultsError(Exception):
    """A pod has other results than this tool leaves."""


class Draft:
    """Files that are being fetched, in ``parent/.NAME.part``; ``name`` tells one Job's from another's."""

    def __init__(self, parent: Path, name: str) -> None:
        self._parent = parent
        self._folder = parent / f".{name}.part"
        self._sizes: dict[str, int] = {}

    def expect(self, files: Mapping[str, object]) -> None:
        """Take the list of the files and their sizes.

        ForeignResultsError where it is none of a run's; BenchmarkError where there is no room for them.
        """
        if len(files) > MOST_FILES:
            raise ForeignResultsError(f"it tells of {len(files):,} files")
        for name, size in files.items():
            if not _is_of_a_run(name) or not isinstance(size, int) or size < 0:
                raise ForeignResultsError(f"it tells of a file {quoted(name)}")
            self._sizes[name] = size
        lacking = sum(self._sizes.values()) - sum(map(self._done, self._sizes))
        try:
            self._folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            raise cannot_write(self._parent, error) from None
        if lacking > free:
            raise BenchmarkError(
                f"{self._parent}: the results have {size_text(lacking)}, and {size_text(free)} are free.",
                "Give another place with --output-dir.",
            )

    def lacking(self) -> Iterator[tuple[str, int]]:
        """The blocks that are lacking: the file of each, and its place there. Those that lie here were checked."""
        for name, size in self._sizes.items():
            yield from ((name, at) for at in range(self._done(name), size, BLOCK))

    def add(self, message: Message) -> bool:
        """Take a block, the next one of its file; False where it is damaged, or another one.

        BenchmarkError where it cannot be written.
        """
        name, at = message.get("file"), message.get("at")
        data = _decoded(message)
        if not isinstance(name, str) or name not in self._sizes or at != self._done(name):
            return False
        if len(data) != min(BLOCK, self._sizes[name] - at) or not data:
            return False
        path = self._folder / name
        try:
            path.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with BufferedWriter(FileIO(os.open(path, flags, FILE_MODE), "w")) as file:
                file.truncate(at)
                file.seek(at)
                file.write(data)
        except OSError as error:
            raise cannot_write(self._parent, error) from None
        return True

    def finish(self) -> list[Path]:
        """Let the folders of the results take their places; returns these. BenchmarkError where they cannot."""
        try:
            for name, size in self._sizes.items():
                if not size:
                    (self._folder / name).parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
                    (self._folder / name).touch(mode=FILE_MODE)
            found = [self._placed(name) for name in sorted({name.partition("/")[0] for name in self._sizes})]
            shutil.rmtree(self._folder, ignore_errors=True)
        except OSError as error:
            raise cannot_write(self._parent, error) from None
        return found

    def at_home(self, text: str) -> str:
        """A line of a pod, in which the folders of its results are those that they come to."""
        return with_files_here(_RESULTS.sub(lambda _: f"{self._parent}/", text))

    def _placed(self, name: str) -> Path:
        """The place of a folder: under its own name, or with a number where there is one already."""
        for number in range(1, 1000):
            path = self._parent / (name if number == 1 else f"{name}-{number}")
            if not path.exists() and not path.is_symlink():
                (self._folder / name).rename(path)
                return path
        raise BenchmarkError(f"{self._parent}: no name is left for {name}.")

    def _done(self, name: str) -> int:
        """The bytes of a file that are here: whole blocks, since the last one may have been cut off."""
        try:
            size = (self._folder / name).lstat().st_size
        except OSError:
            return 0
        return size if size == self._sizes[name] else min(size, self._sizes[name]) // BLOCK * BLOCK


def with_files_here(text: str) -> str:
    """A line of a pod, in which the Python files are those that went there."""
    return _FILES.sub("", text)


def _is_of_a_run(name: str) -> bool:
    """Tells whether it is a path below a folder of results, and nothing that leads elsewhere."""
    parts = PurePosixPath(name).parts
    return (
        1 < len(parts) <= _DEEPEST
        and "/".join(parts) == name
        and bool(STAMPED.fullmatch(parts[0]))
        and all(map(_NAME.fullmatch, parts))
    )


def _decoded(message: Message) -> bytes:
    """The bytes of a block; none where they are not those of its digest."""
    data = message.get("data")
    try:
        found = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except ValueError:
        return b""
    return found if hashlib.sha256(found).hexdigest() == message.get("sha256") else b""
