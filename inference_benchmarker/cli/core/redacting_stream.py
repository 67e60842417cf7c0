"""The standard streams on their way out: secrets are hidden, foreign text is plain.

Where a terminal lacks a sign, one that is like it is written. A reader who leaves, or stands still, neither ends a
command nor holds it up.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import select
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO, cast

from inference_benchmarker.words.redact import hidden, hide_values_of, without
from inference_benchmarker.words.text import plain_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIKENESS = "likeness"
"""The name under which encoding finds this: ``text.encode("ascii", LIKENESS)``."""
_LIKE = {
    **dict(zip("▁▂▃▄▅▆▇█", "_.,:;+*#", strict=True)),
    **dict.fromkeys("–—─", "-"),
    "━": "=",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "✓": "+",
    "✗": "x",
    "⚠": "!",
    "\ufe0f": "",
    "→": ">",
    "≥": ">",
    "≤": "<",
    "±": "~",
    "×": "x",
    "…": "~",
    "µ": "u",
    "\u00a0": " ",
}


def _alike(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_LIKE.get(sign, "?") for sign in signs), error.end


codecs.register_error(LIKENESS, _alike)


READER_LEFT = (errno.EPIPE, errno.EIO)  # a pipe nobody reads, a terminal that was closed
PATIENCE_S = 1.0  # how long a progress line waits for a reader that stands still


class RedactingStream(io.TextIOBase):
    """A standard stream that takes every text, whatever becomes of it.

    ``error`` is what ended it. With ``patience_s``, texts are left out while its reader stands still (a stopped
    terminal, a full pipe): waiting would hold up what is being reported on.
    """

    def __init__(
        self,
        stream: TextIO,
        clean: Callable[[str], str],
        patience_s: float | None = None,
        hide: Callable[[str], str] | None = None,
    ) -> None:
        self._stream = stream
        self._clean = clean
        self._hide = hide or hidden
        self._patience_s = patience_s
        self._waits = True
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        """Write the text, cleaned, if anybody takes it."""
        if self._open():
            self._try(lambda: _write_whole(self._stream, self._clean(text), self._patience_s))
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Write a file's content as it is."""
        self.flush()
        self._try(lambda: self._stream.buffer.write(data))
        self.flush()

    def flush(self) -> None:
        """Hand on what is buffered."""
        if self._open():
            self._try(self._stream.flush)

    def isatty(self) -> bool:
        """Tells whether a person looks at it."""
        with suppress(ValueError, OSError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """The descriptor beneath."""
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has it writable, io.TextIOWrapper has not
        """That of the stream beneath."""
        return self._stream.encoding

    def styled(self) -> TextIO:
        """The same stream for a view of ours that moves the cursor, and makes foreign text plain by itself."""
        return cast("TextIO", RedactingStream(self._stream, self._hide, self._patience_s))

    def _open(self) -> bool:
        if self.error is not None:
            return False
        if self._patience_s is not None:
            self._waits = _writable(self._stream, self._patience_s if self._waits else 0.0)
        return self._waits

    def _try(self, act: Callable[[], object]) -> None:
        if self.error is None:
            try:
                act()
            except OSError as error:
                self.error = error
                _point_nowhere(self._stream)


@contextmanager
def redacted_streams() -> Iterator[tuple[RedactingStream, RedactingStream]]:
    """Standard output and standard error as outlets while a command runs."""
    _open_what_is_closed()
    hide_values_of(os.environ)  # a command may refuse its arguments before it imports what writes files
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=LIKENESS)  # a terminal that has no ≥ still gets its report
    out = RedactingStream(sys.stdout, lambda text: plain_lines(_hide_values(text)), hide=_hide_values)
    err = RedactingStream(sys.stderr, lambda text: plain_lines(hidden(text)), PATIENCE_S)
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    try:
        yield out, err
    finally:
        out.flush()
        err.flush()
        sys.stdout, sys.stderr = before


def _hide_values(text: str) -> str:
    """A result without the values of secrets; its own words may look like one, and its numbers must stay."""
    return without(text)


def _open_what_is_closed() -> None:
    """``2>&-``: the next file that is opened would take the stream's number, and get what is printed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - it lives as long as we
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _write_whole(stream: TextIO, text: str, patience_s: float | None) -> None:
    """Write all of it: Python's own stream writes what fits, where it has no buffer (``PYTHONUNBUFFERED``).

    A reader of a pipe that does not block is waited for; with ``patience_s``, the rest is left out then.
    """
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # a stream of a test, or of a notebook
        stream.write(text)
        return
    stream.flush()
    rest = memoryview(text.encode(stream.encoding or "utf-8", LIKENESS))
    while rest:
        try:
            rest = rest[os.write(number, rest) :]
        except BlockingIOError:
            if not _writable(stream, patience_s):
                return


def _point_nowhere(stream: TextIO) -> None:
    """Give Python a place to write what is still buffered when it ends."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def _writable(stream: TextIO, patience_s: float | None) -> bool:
    """Tells whether its reader takes something within that time (None: however long); where it cannot be asked, yes."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return bool(poll.poll(None if patience_s is None else 1000 * patience_s))
    except (OSError, ValueError, AttributeError):
        return True
