"""HTML elements from values: whatever is no markup already is escaped, so that no name of others becomes one. Pure."""

from __future__ import annotations

from html import escape

from inference_benchmarker.words.text import plain


class Markup(str):
    """A piece of HTML that may stand in a page as it is."""

    __slots__ = ()


Piece = str | None
"""A child of an element: markup, a text that is escaped, or nothing."""

_EMPTY = ("br", "hr", "rect", "path", "line", "circle")


def element(name: str, *children: Piece, **attributes: str | float | bool | None) -> Markup:
    """An element; ``_`` stands for the ``-`` of an attribute's name, and one that ends with ``_`` is a Python word.

    An attribute that is None or False is left out.
    """
    text = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    inside = joined(*children)
    return Markup(f"<{name}{text}/>" if name in _EMPTY and not inside else f"<{name}{text}>{inside}</{name}>")


def joined(*children: Piece) -> Markup:
    """Pieces, one after the other."""
    return Markup("".join(each if isinstance(each, Markup) else escape(plain(each)) for each in children if each))


def _attribute(key: str, value: str | float | bool) -> str:
    if value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(plain(str(value)))}"'
