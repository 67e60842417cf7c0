"""Makes foreign text plain: what a name, an error or another program's answer may do to a terminal or a page. Pure."""

from __future__ import annotations


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
