"""Reads JSON that anybody may have written, within bounds of size, depth and numbers. Pure."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 64 << 20
_MOST_VALUES = 4_000_000  # a value takes some hundred bytes of memory, its text may have two
_MOST_DEPTH = 64
_MOST_DIGITS = 40
_DIGITS_AS_ONE = bytes.maketrans(b"0123456789", b"0000000000")

Pairs = list[tuple[str, Any]]


def no_number(text: str) -> float:
    """NaN and Infinity are no JSON: an error."""
    raise ValueError(f"holds {text}, which is not a number")


def parse_json(
    data: bytes,
    pairs: Callable[[Pairs], dict[str, Any]] | None = None,
    constant: Callable[[str], float | None] = no_number,
) -> Any:
    """The value of a text in UTF-8; ValueError for what is not JSON or out of bounds.

    ``pairs`` is given the members of each object, in which a key may stand twice; the last one counts without it.
    ``constant`` makes a value of NaN and Infinity.
    """
    levels = data.count(b"[") + data.count(b"{")
    if data.count(b",") + levels > _MOST_VALUES:
        raise ValueError(f"holds more than {_MOST_VALUES:,} values")
    long_numbers = b"0" * (_MOST_DIGITS + 1) in data.translate(_DIGITS_AS_ONE)  # else a call for each costs in vain
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_int=_integer if long_numbers else None,
            parse_float=_number,
            parse_constant=constant,
            object_pairs_hook=pairs,
        )
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if levels > _MOST_DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    """Refuse what is nested so deeply that it could be read, and not written again."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        members = (
            each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list))
        )
        level = [each for some in members for each in some if isinstance(each, (dict, list))]
        if not level:
            return
    raise ValueError("is nested too deeply")


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"holds a number of {len(text):,} digits")
    return int(text)


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"holds {text[:_MOST_DIGITS]}, which is not a number to compute with")
    return value
