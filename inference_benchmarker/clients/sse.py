"""Server-sent events, as far as their data goes, and lines of JSON, which some servers send instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BOM = b"\xef\xbb\xbf"
_SHOWN = 500
_MOST_LINE = 16 * 2**20  # bytes; it is copied with each piece that does not end it


class EndlessLineError(ConnectionError):
    """The server sends a line that does not end."""


class NoEventsError(Exception):
    """An answer had no event in it."""


class EventReader:
    """Gives the data of each event once its end has come, however the bytes are cut.

    Lines end with LF, CRLF or CR; comments, which servers send to keep a connection alive, and other fields are
    passed over. A line that begins with a brace can be none of these: it is a whole event. Raises EndlessLineError.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._begun = False

    @classmethod
    def over(cls, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The data of each event in the pieces of a whole stream. Raises NoEventsError where there is none."""
        reader, first, found = cls(), b"", False
        for piece in pieces:
            first = first or piece
            if told := reader.feed(piece):
                found = True
                yield from told
        last = reader.end()
        if not (found or last):
            raise NoEventsError(f"expected events, but got: {first[:_SHOWN].decode(errors='replace')}")
        yield from last

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that ``piece`` completes."""
        text = self._rest + piece if self._rest else piece
        if b"\r" in text:
            text = _with_line_feeds(text)
        lines = text.split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _MOST_LINE:
            raise EndlessLineError(f"a line of the stream does not end within {_MOST_LINE >> 20} MiB")
        return self._take(lines)

    def end(self) -> list[bytes]:
        """The data of an event that the end of the stream completes."""
        return self._take([self._rest.rstrip(b"\r"), b""])

    def _take(self, lines: list[bytes]) -> list[bytes]:
        if not self._begun and lines:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        found = []
        for line in lines:
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
                elif name.startswith(b"{"):
                    found.append(line)
            elif self._data:
                found.append(b"\n".join(self._data))
                self._data.clear()
        return found


def _with_line_feeds(text: bytes) -> bytes:
    """A carriage return at the very end stays: its line feed may be still to come."""
    last = text[-1:] if text.endswith(b"\r") else b""
    return text[: len(text) - len(last)].replace(b"\r\n", b"\n").replace(b"\r", b"\n") + last
