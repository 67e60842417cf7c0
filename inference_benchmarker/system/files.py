"""Files in folders that somebody else may have filled: read and written without following a link, waiting or growing.

Every text that the product leaves on a disk gets there through ``replace_file``, ``write_given`` or ``add_text``,
without the values of secrets. ``replacing`` and ``open_to_add`` are for what is no text; who uses them, and why, stands
in ``tests/test_only_way_out.py``.

A run directory may come from anywhere. What is opened here is a regular file below a folder: no link on the way from
that folder to it, so nothing outside is read or written, and no pipe or device that never ends. The folder itself may
lie behind a link, as the user gave it. What is refused is an OSError whose ``strerror`` is a part of a sentence.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from io import BufferedReader, BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from inference_benchmarker.system.host import memory_bytes
from inference_benchmarker.system.procfs import not_measured
from inference_benchmarker.words.redact import hide_values_of, without
from inference_benchmarker.words.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OWNER_ONLY, FOR_ANYBODY = 0o600, 0o666  # modes, as far as the umask leaves them
_TO_LOOK_AT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


hide_values_of(os.environ)  # here, since whatever writes anything imports this


def is_file(path: Path, inside: Path | None = None) -> bool:
    """Tells whether it is a regular file; a link to one is not, nor is a file behind a linked folder.

    PermissionError where this user may not look: what is behind a closed door is not absent.
    """
    return _is(stat.S_ISREG, path, inside)


def is_there(path: Path) -> bool:
    """Tells whether there is anything, of whatever kind: a link is there itself. PermissionError as of ``is_file``."""
    return _is(lambda _: True, path, None)


def is_folder(path: Path, inside: Path | None = None) -> bool:
    """Tells whether it is a folder; a link to one is not. PermissionError as of ``is_file``."""
    return _is(stat.S_ISDIR, path, inside)


def kind_of(path: Path) -> Literal["file", "folder", "something else"] | None:
    """The kind of what a user named, links followed; None where nothing is. PermissionError as of ``is_file``."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - Python's own questions differ in what they raise
    except PermissionError:
        raise
    except (OSError, ValueError):
        return None
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "something else"


def folders_in(folder: Path, *, links: bool = False) -> list[Path]:
    """The folders in a folder, in order; none where it is none. PermissionError as of ``is_file``.

    ``links``: links to folders are among them, as where a user named the folder to be shown.

    Python's ``glob`` leaves what is closed out without a word, and a comparison would then be of what is left.
    """
    if kind_of(folder) != "folder":
        return []
    return sorted(each for each in folder.iterdir() if is_folder(each) or (links and kind_of(each) == "folder"))


def closed(error: PermissionError) -> str:
    """The sentence on a path that this user may not use, with the folder on the way that is closed."""
    path = Path(error.filename)
    above = [each for each in reversed(path.parents) if not os.access(each, os.X_OK)]
    where = f" ({above[0]} is closed to this user)" if above else ""
    return (
        f"{path}: {error.strerror}{where}. Give a path that this user may read, or change its mode (`ls -ld` tells it)."
    )


def open_file(path: Path, inside: Path | None = None) -> FileIO:
    """A regular file to read. ``inside``: the folder above it from which on no link is followed (default: its own)."""
    with _folder_of(path, inside) as folder:
        # a link is recognised first: what the system says of it is not a sentence, and differs
        refuse_kind(os.lstat(path.name, dir_fd=folder).st_mode)
        file = FileIO(os.open(path.name, _TO_LOOK_AT, dir_fd=folder))
    try:
        refuse_kind(os.fstat(file.fileno()).st_mode)
    except OSError:
        file.close()
        raise
    return file


@contextmanager
def opened(path: Path, inside: Path | None = None) -> Iterator[BinaryIO]:
    """``open_file`` with a buffer, closed in the end."""
    with BufferedReader(open_file(path, inside)) as file:
        yield file


def own_path(file: BinaryIO) -> str:
    """A path by which a library opens the same file itself.

    Arrow reads ahead in threads of its own: one that still holds a Python file when the program ends aborts it
    (SIGABRT, "terminate called without an active exception": github.com/apache/arrow/issues/34314). OSError where
    there is no /proc, into which the path leads.
    """
    path = f"/dev/fd/{file.fileno()}"
    if kind_of(Path(path)) is None:
        raise OSError(errno.ENOENT, f"{path} leads nowhere: {not_measured() or 'there is no such device'}")
    return path


def read_bytes(path: Path, most: int, inside: Path | None = None) -> bytes:
    """The content of a regular file of at most so many bytes."""
    with opened(path, inside) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise too_large(most)
        data = file.read(most + 1)  # it may grow
    if len(data) > most:
        raise too_large(most)
    return data


def refuse_kind(mode: int) -> None:
    """Raise OSError for the mode of what is no regular file."""
    if not stat.S_ISREG(mode):
        kind = next((name for fits, name in _KINDS if fits(mode)), "a device")
        raise OSError(errno.EINVAL, f"is {kind}, not a file")


def too_large(most: int) -> OSError:
    """The error of what has more than so many bytes."""
    return OSError(errno.EFBIG, f"is larger than {most / MIB:,.0f} MiB")


@contextmanager
def replacing(
    path: Path, inside: Path | None = None, mode: int = OWNER_ONLY, *, is_lasting: bool = True
) -> Iterator[BinaryIO]:
    """A draft to write; where that ends well it takes the file's place, so a reader sees the old file or the new one.

    ``is_lasting``: the disk has it by then.
    Its name cannot be known before, so that nobody has put a link in its place. It is locked: see ``forget_drafts``.
    """
    draft = f".{path.name[:200]}.{secrets.token_hex(8)}.part"
    with _folder_of(path, inside) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.fdopen(os.open(draft, flags, mode, dir_fd=folder), "wb")
        try:
            with file:
                _lock(file.fileno())
                yield file
                file.flush()
                if is_lasting:
                    os.fsync(file.fileno())
                os.replace(draft, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise


def forget_drafts(path: Path) -> None:
    """Take away what a writer of this file left of it when it was killed; what another still writes is locked."""
    with _folder_of(path, None) as folder:
        for name in os.listdir(folder):  # noqa: PTH208 - of the folder that was opened
            if name.startswith(f".{path.name[:200]}.") and name.endswith(".part"):
                with suppress(OSError), FileIO(os.open(name, _TO_LOOK_AT, dir_fd=folder)) as file:
                    if _lock(file.fileno()):
                        os.unlink(name, dir_fd=folder)


def _lock(descriptor: int) -> bool:
    """Tells whether nobody else has it open and locked; where a filesystem has no locks, that is unknown."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def replace_file(
    path: Path, text: str, inside: Path | None = None, mode: int = OWNER_ONLY, *, is_lasting: bool = True
) -> None:
    """Write a text so that a reader sees the old file or the whole new one. No value of a secret gets into it."""
    with replacing(path, inside, mode, is_lasting=is_lasting) as file:
        file.write(without_secrets(text))


def write_given(path: Path, text: str) -> None:
    """Write a text to a file that the user named. A pipe, a device and /dev/stdout get it, and stay what they are."""
    if not is_stream(path):
        replace_file(path, text, mode=FOR_ANYBODY)
        return
    with BufferedWriter(FileIO(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY), "a")) as file:
        file.write(without_secrets(text))


def add_text(path: Path, text: str, most: int | None = None) -> bool:
    """Add a text to the end of a file, without the values of secrets; False where the file does not take it.

    ``most``: the bytes that it may have before.
    """
    try:
        with BufferedWriter(FileIO(open_to_add(path), "a")) as file:
            if most is not None and os.fstat(file.fileno()).st_size > most:
                return False
            file.write(without_secrets(text))
    except OSError:
        return False
    return True


def open_to_add(path: Path) -> int:
    """The descriptor of a file of ours, at whose end is written; it is made where there is none, for its owner only."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)


def is_stream(path: Path) -> bool:
    """Tells whether something else than a file or folder is there, or a link of the system to what is open."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    of_system = path.is_symlink() and path.absolute().is_relative_to("/dev")
    return of_system or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def without_secrets(text: str) -> bytes:
    """The bytes of a text as they get into a file: without the values of secrets."""
    return without(text).encode("utf-8", "backslashreplace")


def most_in_memory() -> int:
    """The most bytes of one file's content that this machine can be asked to hold: half of its memory."""
    return memory_bytes() // 2


@contextmanager
def _folder_of(path: Path, inside: Path | None) -> Iterator[int]:
    """The folder of a file, opened step by step from ``inside`` on."""
    top = path.parent if inside is None else inside
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(top, flags)
    try:
        for name in path.parent.relative_to(top).parts:
            if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
                raise OSError(errno.ELOOP, f"lies behind the symbolic link {name}, which may lead anywhere")
            below = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _is(kind: Callable[[int], bool], path: Path, inside: Path | None) -> bool:
    try:
        with _folder_of(path, inside) as folder:
            return kind(os.lstat(path.name, dir_fd=folder).st_mode)
    except PermissionError as error:
        raise PermissionError(error.errno, error.strerror, str(path)) from None
    except (OSError, ValueError):
        return False
