"""The figures and names of a sentence, without its words, which may be put better; and the rows of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def mentions(text: str | Iterable[str] | None, *parts: str) -> bool:
    """Tells whether a line of a text, or of several, has all these parts in this order; nothing mentions none."""
    texts = [text or ""] if text is None or isinstance(text, str) else text
    return any(_has(line, parts) for each in texts for line in each.splitlines())


def _has(line: str, parts: Iterable[str]) -> bool:
    at = 0
    for part in parts:
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def row(text: str, name: str) -> str:
    """What stands behind a name."""
    (found,) = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.strip().startswith(f"{name}:")]
    return found
