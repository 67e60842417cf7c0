"""Makes foreign text plain: what a name, an error or another program's answer may do to a terminal or a page. Pure."""

from __future__ import annotations

from textwrap import wrap


def plain(text: str) -> str:
    """A name or path of the user without what would break a line, a terminal, or XML."""
    return text if text.isascii() and text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def plain_lines(text: str) -> str:
    """The same for a text of many lines, which stay lines; tabs stay, too."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # most are, and some are of many megabytes
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text)


def one_line(text: str, limit: int = 60) -> str:
    """A name or text of the user's code, without what would break or colour a line."""
    line = " ".join(plain(text[: 40 * limit]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def folded(text: str, width: int) -> str:
    """A text whose lines are no longer than ``width`` columns, as far as they have spaces.

    What does not fit stands below the line's last cell. A row of a table whose cells fill it is left as it is.
    """
    return "\n".join(piece for line in text.split("\n") for piece in _folded(line, width))


def _folded(line: str, width: int) -> list[str]:
    place = line.rfind("  ") + 2 if "  " in line else 0
    before, words = line[:place], line[place:]
    if len(line) <= width or place > width // 2:
        return [line]
    below = " " * (place if before.strip() else place + 2)
    return wrap(
        words, width, initial_indent=before, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
