"""What somebody may do to a run directory before he hands it on: other values, flipped bytes, links, pipes, devices."""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ESCAPES = "\x1b[2J\nVALID\u202e\u2028\x9b31m\ud800<script>alert(1)</script>"
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 10**9, 10**18, (1 << 63) - 1, 1 << 63, 10**39, -1e308, 1e308, 1e-300, "", "x", ESCAPES,
    "1e-300", "1e308", "NaN", [], [[]], {}, {"a": []}, [None], ["x"] * 3,
)  # fmt: skip
TEXTS = (
    "", "{", "[]", "null", "NaN", '{"schema_version": 1}', '{"schema_version": NaN}', "[" * 100_000,
    '{"a":' * 100_000, '{"schema_version": 1' + "0" * 10_000 + "}", '"\\ud800"', "\ufeff{}", "\0" * 100,
    '{"schema_version": 1, "schema_version": 2}', "[" + "[]," * 5_000_000 + "[]]", "a,b\n" * 1000, "\x1b[2J",
)  # fmt: skip


def paths_of(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a JSON document."""
    yield here
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from paths_of(member, (*here, key))


def with_value(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at a place."""
    if not path:
        return value
    changed = document.copy()
    changed[path[0]] = with_value(document[path[0]], path[1:], value)
    return changed


def without(document: Any, path: tuple[Any, ...]) -> Any:
    """The document without the value at a place."""
    changed = document.copy()
    if len(path) == 1:
        del changed[path[0]]
    else:
        changed[path[0]] = without(document[path[0]], path[1:])
    return changed


def as_link(path: Path, outside: Path) -> None:
    """A link to a file outside."""
    path.symlink_to(outside)


def as_zeros(path: Path, outside: Path) -> None:
    """A link to a device that never ends."""
    path.symlink_to("/dev/zero")


def as_pipe(path: Path, outside: Path) -> None:
    """A pipe that nobody writes to."""
    os.mkfifo(path)


def as_folder(path: Path, outside: Path) -> None:
    path.mkdir()


def as_loop(path: Path, outside: Path) -> None:
    path.symlink_to(path.name)


def as_sparse(path: Path, outside: Path) -> None:
    """A huge file that takes no room."""
    with path.open("wb") as file:
        file.truncate(1 << 42)


def as_socket(path: Path, outside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, suppress(OSError):  # the name may be too long for one
        listener.bind(str(path))


DISGUISES: tuple[Callable[[Path, Path], None], ...] = (
    as_link, as_zeros, as_pipe, as_folder, as_loop, as_sparse, as_socket,
)  # fmt: skip


def disguise(path: Path, disguise: Callable[[Path, Path], None], outside: Path) -> None:
    """Put something else in a file's or folder's place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    disguise(path, outside)


def dump(document: Any) -> bytes:
    """As JSON; what is no JSON is written as Python's own reader takes it."""
    return json.dumps(document).encode()
