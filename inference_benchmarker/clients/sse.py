"""Server-sent events, as far as their data goes, and lines of JSON, which some servers send instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.answer_size import AnswerTooLargeError
from inference_benchmarker.clients.body_excerpt import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BOM = b"\xef\xbb\xbf"
_SHOWN = 500
MOST_EVENT = 16 * 2**20  # bytes; those of models have a thousandth of it
_A_LINE = 64  # bytes of memory that a line of an event takes beside its own


class EndlessLineError(AnswerTooLargeError):
    """The server sends a line, or an event of many lines, that does not end."""


class NoEventsError(Exception):
    """An answer had no event in it."""


class EventReader:
    """Returns the data of each event once the event is complete, however the bytes are split.

    Lines end with LF, CRLF or CR; comments, which servers send to keep a connection alive, and other fields are
    skipped. A line that begins with a brace is a whole event. Raises EndlessLineError.
    The work is proportional to the bytes, however long their line is and however it is split.
    """

    def __init__(self) -> None:
        self._rest = bytearray()  # of a line that has not ended; it is looked at once, when its end has come
        self._data: list[bytes] = []
        self._data_size = 0
        self._begun = False

    @classmethod
    def over(cls, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The data of each event in the pieces of a whole stream. Raises NoEventsError where there is none."""
        reader, first, found = cls(), b"", False
        for piece in pieces:
            first = first or piece
            if events := reader.feed(piece):
                found = True
                yield from events
        last = reader.end()
        if not (found or last):
            raise NoEventsError(f"expected events, but received: {shown(first, _SHOWN)}")
        yield from last

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that ``piece`` completes."""
        if self._rest:
            if not (b"\n" in piece or b"\r" in piece or self._rest.endswith(b"\r")):
                self._keep(piece)
                return []
            piece = bytes(self._rest) + piece
            self._rest.clear()
        if b"\r" in piece:
            piece = _with_line_feeds(piece)
        lines = piece.split(b"\n")
        self._keep(lines.pop())
        return self._take(lines)

    def end(self) -> list[bytes]:
        """The data of an event that the end of the stream completes."""
        return self._take([bytes(self._rest.rstrip(b"\r")), b""])

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest += rest
            if len(self._rest) > MOST_EVENT:
                raise EndlessLineError(f"a line of the stream does not end within {MOST_EVENT >> 20} MiB")

    def _take(self, lines: list[bytes]) -> list[bytes]:
        if not self._begun and lines:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        found = []
        for line in lines:
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._add(value.removeprefix(b" "))
                elif name.startswith(b"{"):
                    found.append(line)
            elif self._data:
                found.append(b"\n".join(self._data))
                self._data.clear()
                self._data_size = 0
        return found

    def _add(self, data: bytes) -> None:
        self._data.append(data)
        self._data_size += len(data) + _A_LINE
        if self._data_size > MOST_EVENT:
            raise EndlessLineError(f"an event of the stream does not end within {MOST_EVENT >> 20} MiB")


def _with_line_feeds(text: bytes) -> bytes:
    """A carriage return at the very end stays: its line feed may be still to come."""
    last = text[-1:] if text.endswith(b"\r") else b""
    return text[: len(text) - len(last)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + last
