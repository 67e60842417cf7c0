"""The JSON objects of a text, one after the other: JSON lines, an array, or objects over several lines.

A piece of the file and one object are in memory at a time. What cannot be read is left out.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.recording.source import MOST_LINE
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inference_benchmarker.recording.conversations.left_out import LeftOut

MOST_CHARACTERS = MOST_LINE
"""Characters of one object: that of a long agent's conversation has some millions."""
MOST_HELD = 1 << 27
"""Bytes that a conversation may take in memory, about: in one row, or in all of its rows."""
_VALUE_BYTES = 32  # about, of a number, a short text or an empty object, beside its characters
_MOST_PASSED = 4 * MOST_CHARACTERS  # characters in a row of what is too long, or of no object: 2 MB packed may be 2 GB
_PIECE = 1 << 20
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # or of a whole one, in two such halves
_MARKS = re.compile(r'["{}]')
_TEXT = re.compile(r'(?:[^"\\]++|\\.)*+("?)', re.DOTALL)  # up to its end, or as far as it is there


class JsonRow(NamedTuple):
    """An object, or the text of a line, the line that it begins in, and the bytes that it takes in memory, about."""

    line: int
    value: Any
    held: int


def beginning(file: IO[str]) -> str:
    """The first line, or as much of it as is read at once."""
    return file.readline(_PIECE)


def lines_of(file: IO[str], left_out: LeftOut, begun: str = "") -> Iterator[tuple[int, str]]:
    """The lines that are not blank, each with its number; those that are too long are left out.

    ``begun``: what was read of the first line already.
    """
    number = 0
    while line := begun if begun.endswith("\n") else begun + file.readline(MOST_CHARACTERS):
        number, begun = number + 1, ""
        if len(line) >= MOST_CHARACTERS and not line.endswith("\n"):
            _pass_over(file, number)
            left_out.add(number, f"has more than {MOST_CHARACTERS:,} characters")
        elif line.isspace():
            left_out.pass_over()
        else:
            yield number, line


def _pass_over(file: IO[str], number: int) -> None:
    """Go on to the end of a line; OSError for one that has none near."""
    for _ in range(_MOST_PASSED // _PIECE):
        if (rest := file.readline(_PIECE)).endswith("\n") or not rest:
            return
    raise OSError(f"line {number:,} has more than {_MOST_PASSED:,} characters")


def held_by(text: str) -> int:
    """The bytes that a text of JSON takes once it is parsed, about: short values take tenfold what they are long."""
    return len(text) + _VALUE_BYTES * sum(map(text.count, "{[,"))


def objects_of(file: IO[str], left_out: LeftOut, begun: str) -> Iterator[JsonRow]:
    """The objects of a text that begins with one, or with an array of them; too large ones are left out.

    ``begun``: what was read of the first line already.
    """
    is_apart = begun.lstrip().startswith("[") or (begun.endswith("\n") and _value(begun) is None)
    found = _apart(_pieces(file, begun), left_out) if is_apart else lines_of(file, left_out, begun)
    for number, text in found:
        held = held_by(text)
        value = _value(text) if held <= MOST_HELD else None
        if isinstance(value, dict):
            yield JsonRow(number, value, held)
        elif held > MOST_HELD:
            left_out.add(number, f"would take more than {MOST_HELD >> 20} MiB of memory")
        else:
            left_out.add(number, f"is not a JSON object: {quoted(text.strip(), 60)}")


def _pieces(file: IO[str], first: str) -> Iterator[tuple[int, str]]:
    """A text in lines, of long ones a part at a time, each with the number of its line."""
    number = 1
    for piece in chain([first], iter(lambda: file.readline(_PIECE), "")):
        yield number, piece
        number += piece.endswith("\n")


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
        return _whole(value) if _HALF.search(text) else value
    except (ValueError, RecursionError):
        return None


def _whole(value: Any) -> Any:
    """The same with U+FFFD for each half of a character, as of an emoji that was cut: no UTF-8 can have it."""
    text = json.dumps(value, ensure_ascii=False)
    return json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def _apart(pieces: Iterable[tuple[int, str]], left_out: LeftOut) -> Iterator[tuple[int, str]]:
    """The texts of objects, by their brackets; an array around them is looked through."""
    cut, passed = _Cutter(), 0
    for number, piece in pieces:
        passed += len(piece)
        for found in cut.more(number, piece):
            passed = 0
            yield found
        if passed > _MOST_PASSED:
            raise OSError(f"{_MOST_PASSED:,} characters up to line {number:,} hold no object that ends")
        if cut.drops():
            left_out.add(cut.begun, f"an object of more than {MOST_CHARACTERS:,} characters, or without an end")
    if cut.depth:
        left_out.add(cut.begun, "the object has no end: the file is cut off")


class _Cutter:
    """An object that has no end yet, ``depth`` brackets deep, and begins in line ``begun``."""

    def __init__(self) -> None:
        self.begun = self.depth = 0
        self._held = ""
        self._at = 0  # up to where it was looked at
        self._in_text = self._dropped = False

    def more(self, number: int, piece: str) -> Iterator[tuple[int, str]]:
        """The objects that end in a further piece, which stands in this line."""
        self._held += piece
        while True:
            if self._in_text and not self._leave_text():
                break
            mark = _MARKS.search(self._held, self._at)
            if mark is None:
                self._at = len(self._held)
                break
            self._at = mark.end()
            if mark[0] == '"':
                self._in_text = True
            elif mark[0] == "{":
                self._open(mark.start(), number)
            elif self._close():
                if not self._dropped:
                    yield self.begun, self._held[: self._at]
                self._forget()
        if not self.depth or self._dropped:
            self._forget()

    def drops(self) -> bool:
        """Tells whether the object just grew too long; it is followed to its end, and no longer held."""
        too_long = len(self._held) > MOST_CHARACTERS
        if too_long:
            self._dropped = True
            self._forget()
        return too_long

    def _leave_text(self) -> bool:
        """Tells whether the text that it is in ends in what is held."""
        end = _TEXT.match(self._held, self._at)
        assert end is not None
        self._at = end.end()
        self._in_text = not end[1]
        return not self._in_text

    def _open(self, at: int, number: int) -> None:
        self.depth += 1
        if self.depth == 1:
            self._held, self._at = self._held[at:], 1
            self.begun, self._dropped = number, False

    def _close(self) -> bool:
        """Tells whether the object is over."""
        self.depth -= self.depth > 0
        return not self.depth

    def _forget(self) -> None:
        self._held, self._at = self._held[self._at :], 0
