"""The samples that a PromQL query reads: its selectors, and how far back its ranges and offsets reach. Pure.

Of an instant selector the server gives the last sample of up to five minutes before (the look-back), which is the value
of a wave only if it was taken within the wave. https://prometheus.io/docs/prometheus/latest/querying/basics/
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.block import WINDOW

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
_EXTRAPOLATING = frozenset({"rate", "increase", "delta"})
_NUMBER = r"\d+\.?\d*|\.\d+"
_DURATION = re.compile(rf"(?:(?:{_NUMBER})(?:ms|[smhdwy]))+")
_PART = re.compile(rf"({_NUMBER})(ms|[smhdwy])")
_PLAIN = re.compile(rf"(?:{_NUMBER})(?:[eE][+-]?\d+)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}


def instant_selectors(query: str) -> list[str]:
    """The instant selectors of a query, without those that an ``offset`` or ``@`` moves to another time."""
    tokens = list(_tokens(query))
    followed = ((text, _at(tokens, end)) for text, _, end in _selectors(tokens))
    return [text for text, follows in followed if not follows.startswith("[") and follows not in _SHIFTED]


def extrapolated_selectors(query: str) -> list[str]:
    """The selectors of whose samples within the window a function makes a value of the whole window."""
    tokens = list(_tokens(query))
    return list(
        dict.fromkeys(
            text
            for text, place, end in _selectors(tokens)
            if _at(tokens, place - 2).lower() in _EXTRAPOLATING
            and _at(tokens, end).replace(" ", "") == f"[{WINDOW}]"
            and _at(tokens, end + 1) not in _SHIFTED
        )
    )


def reach_s(query: str) -> float:
    """The seconds before its instant from which on a query reads, once {window} is filled in; look-back left out.

    What is nested adds up: a subquery asks for its inside, with its ranges, at the start of its own range. Infinite
    where a range or an offset is none that is known, or where an ``@`` names another instant.
    """
    tokens = list(_tokens(query))
    levels, operand = [(0.0, 0.0)], 0.0
    for place, (kind, text) in enumerate(tokens):
        longest, outside = levels[-1]
        if text == "(":
            levels.append((0.0, operand if _at(tokens, place - 1).lower() in _GROUPING else 0.0))
            operand = 0.0
            continue
        if text == ")" and len(levels) > 1:
            levels.pop()
            operand, (longest, outside) = max(longest, outside), levels[-1]
        elif kind == "range":
            operand += _seconds(text[1:-1].split(":")[0].strip())
        elif text.lower() in _SHIFTED:
            operand += _shift_s(tokens, place)
        elif kind in ("name", "labels") and text.lower() not in _GROUPING:
            operand = 0.0
        levels[-1] = max(longest, operand), outside
    return max(longest for longest, _ in levels)


def _tokens(query: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(query):
        kind, text = str(found.lastgroup), found[0]
        if not text.startswith("#"):
            yield kind, text


def _selectors(tokens: list[tuple[str, str]]) -> Iterator[tuple[str, int, int]]:
    """Each selector, its place, and that of the token that follows it."""
    place = 0
    while place < len(tokens):
        kind, text = tokens[place]
        follows = _at(tokens, place + 1)
        place += 1
        if kind == "name" and text.lower() in _GROUPING and follows == "(":
            place = _after_list(tokens, place)
        elif kind == "labels":
            yield text, place - 1, place
        elif kind == "name" and text.lower() not in _WORDS and follows != "(" and follows.lower() not in _GROUPING:
            labels = follows if follows.startswith("{") else ""
            yield text + labels, place - 1, place + bool(labels)
            place += bool(labels)


def _at(tokens: list[tuple[str, str]], place: int) -> str:
    return tokens[place][1] if 0 <= place < len(tokens) else ""


def _after_list(tokens: list[tuple[str, str]], place: int) -> int:
    """The place after the list of labels that begins at ``place``."""
    while place < len(tokens) and tokens[place][1] != ")":
        place += 1
    return place + 1


def _shift_s(tokens: list[tuple[str, str]], place: int) -> float:
    """By how many seconds an ``offset`` goes back; an ``@`` may go anywhere."""
    if tokens[place][1] == "@":
        return math.inf
    signed = _at(tokens, place + 1) in ("-", "+")
    seconds = _seconds(_at(tokens, place + 1 + signed))
    return -seconds if _at(tokens, place + 1) == "-" and math.isfinite(seconds) else seconds


def _seconds(duration: str) -> float:
    """The seconds of 1m30s, 1.5m or, as newer servers have it, 90; infinite where it is none of these, as 5i."""
    if _PLAIN.fullmatch(duration):
        return float(duration)
    if not _DURATION.fullmatch(duration):
        return math.inf
    return sum(float(count) * _SECONDS[unit] for count, unit in _PART.findall(duration))
