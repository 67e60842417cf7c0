"""Makes foreign text plain: what a name, an error or another program's answer may do to a terminal or a page."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from inference_benchmarker.words.redact import beginning, excerpt, own_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_PROSE = 100  # columns: longer lines are hard to read, however wide the terminal is
_LOOKED_AT = 40  # times as much as is shown: of blanks in a row one stays
NO_BREAK = "\u00a0"
_WIDE_SIGN = "\ufe0f"  # makes the sign before it an emoji, which takes two columns
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:[mu]?s|min|h|[KMG]i?B(?:/s)?)\b)")
_MOST_BEFORE_PROSE = 2  # cells of a line, such as a label or a time: with more it is the row of a table
_SURROGATE = re.compile("[\ud800-\udfff]")
_CELLS = re.compile(r" *\S+(?: \S+)*")


def plain(text: str) -> str:
    """A name or path of the user without what would break a line, a terminal, or XML."""
    return text if text.isascii() and text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def is_utf8(text: str) -> bool:
    """Tells whether a text can be written: an argument of other bytes has surrogates for them."""
    return text.isascii() or not _SURROGATE.search(text)


def plain_lines(text: str) -> str:
    """The same for a text of many lines, which stay lines; tabs stay, too."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # most are, and some are of many megabytes
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def one_line(text: str, limit: int = 60) -> str:
    """A name or text of the user's code, without what would break or colour a line; no secret is cut in half."""
    line = " ".join(plain(beginning(text, _LOOKED_AT * limit)).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def shortened(text: str, most: int) -> str:
    """A text cut in its middle: both ends say more than the beginning alone."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def said(text: str, limit: int = 60, also: Iterable[str] = ()) -> str:
    """The words of a server or another program in one line: without credentials, also those on several lines of it.

    Where ``one_line`` hides the values of secrets, since it also takes results, this hides what has their form, too.
    """
    return one_line(excerpt(text, _LOOKED_AT * limit, (*own_secrets(with_numbers=True), *also)), limit)


def columns(text: str) -> int:
    """The columns of a terminal that a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, width: int) -> str:
    """As much of a text as so many columns hold."""
    while (more := columns(text) - max(width, 0)) > 0:
        text = text[:-more] if text.isascii() else text[: -(more // 2 or 1)]
    return text


@cache
def _columns(character: str) -> int:
    if character == _WIDE_SIGN:
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def folded(text: str, width: int) -> str:
    """A text whose lines are no longer than ``width`` columns, but for a word that is.

    What does not fit stands below the line's last cell. Of the row of a table, it is the cells that go on below.
    """
    return "\n".join(piece for line in text.split("\n") for piece in _folded(line, width))


def wrapped(words: str, width: int, first: str = "", below: str = "") -> list[str]:
    """The words in lines of at most ``width`` columns: ``first`` stands before them, ``below`` before further lines.

    A number stays with its unit.
    """
    lines = [first]
    for word in _BEFORE_UNIT.sub(NO_BREAK, words).split(" "):
        longer = lines[-1] + (" " if lines[-1] not in (first, below) else "") + word
        if columns(longer) <= width:
            lines[-1] = longer
        elif not lines[-1].strip():
            lines[-1] = _indented(word, width, lines[-1])
        elif word:
            lines.append(_indented(word, width, below))
    return [line.replace(NO_BREAK, " ").rstrip() for line in lines]


def _indented(word: str, width: int, indent: str) -> str:
    """A word behind an indent, of which a long word leaves less; one that fits into no line is left to the terminal."""
    room = width - columns(word)
    return (indent if room < 0 else indent[:room]) + word


def _folded(line: str, width: int) -> list[str]:
    place = line.rfind("  ") + 2 if "  " in line else 0
    before, words = line[:place], line[place:]
    is_prose = columns(before) <= width // 2 and len(_CELLS.findall(before)) <= _MOST_BEFORE_PROSE
    if columns(line) <= (min(width, MOST_PROSE) if is_prose else width):
        return [line]
    if not is_prose:
        return _row_folded(line, width)
    return wrapped(words, min(width, MOST_PROSE), before, " " * (place if before.strip() else place + 2))


def _row_folded(row: str, width: int) -> list[str]:
    """The cells of a row, as many in a line as fit."""
    below = " " * (len(row) - len(row.lstrip(" ")) + 2)
    lines = [""]
    for cell in _CELLS.findall(row):
        if not lines[-1] or columns(lines[-1] + cell) <= width:
            lines[-1] += cell
        else:
            lines.append(below + cell.strip())
    return [piece for line in lines for piece in _cell_folded(line, width, below)]


def _cell_folded(line: str, width: int, below: str) -> list[str]:
    if columns(line) <= width:
        return [line]
    words = line.lstrip(" ")
    return wrapped(words, width, line[: len(line) - len(words)], below)
