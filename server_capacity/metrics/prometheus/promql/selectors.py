"""The samples that a PromQL query reads: instant selectors, and literal ranges. Pure.

Of an instant selector the server gives the last sample of up to five minutes before (the look-back), which is the value
of a wave only if it was taken within the wave. https://prometheus.io/docs/prometheus/latest/querying/basics/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXT = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`'
_TOKEN = re.compile(
    rf"(?P<text>{_TEXT})|(?P<labels>\{{(?:{_TEXT}|[^{{}}\"'`])*\}})|(?P<range>\[[^\]]*\])|(?P<name>[A-Za-z_:][\w:]*)"
    r"|(?P<number>\d[\w.]*)|(?P<rest>#[^\n]*|\S)"
)
_GROUPING = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = _GROUPING | {"and", "or", "unless", "bool", "atan2", "inf", "nan", "offset"}
_SHIFTED = frozenset({"offset", "@"})
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


def instant_selectors(query: str) -> list[str]:
    """The instant selectors of a query, without those that an ``offset`` or ``@`` moves to another time."""
    tokens = list(_tokens(query))
    return [text for text, follows in _selectors(tokens) if not follows.startswith("[") and follows not in _SHIFTED]


def longest_range_s(query: str) -> float:
    """The longest range in seconds that a query writes as a number, as in ``rate(x[5m])``; 0 without one."""
    ranges = (text[1:-1].split(":")[0].strip() for kind, text in _tokens(query) if kind == "range")
    return max((_seconds(text) for text in ranges), default=0.0)


def _tokens(query: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(query):
        kind, text = str(found.lastgroup), found[0]
        if not text.startswith("#"):
            yield kind, text


def _selectors(tokens: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each selector with the token that follows it."""
    place = 0
    while place < len(tokens):
        kind, text = tokens[place]
        follows = _at(tokens, place + 1)
        place += 1
        if kind == "name" and text.lower() in _GROUPING and follows == "(":
            place = _after_list(tokens, place)
        elif kind == "labels":
            yield text, follows
        elif kind == "name" and text.lower() not in _WORDS and follows != "(" and follows.lower() not in _GROUPING:
            labels = follows if follows.startswith("{") else ""
            place += bool(labels)
            yield text + labels, _at(tokens, place)


def _at(tokens: list[tuple[str, str]], place: int) -> str:
    return tokens[place][1] if place < len(tokens) else ""


def _after_list(tokens: list[tuple[str, str]], place: int) -> int:
    """The place after the list of labels that begins at ``place``."""
    while place < len(tokens) and tokens[place][1] != ")":
        place += 1
    return place + 1


def _seconds(duration: str) -> float:
    parts = _PART.findall(duration)
    return sum(int(count) * _SECONDS[unit] for count, unit in parts)
