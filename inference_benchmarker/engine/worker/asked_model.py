"""The model that a payload asks for: of a request that failed there is no answer to name it."""

from __future__ import annotations

from json import loads  # by its name: the user's code may put another function into the module
from typing import Any

MOST_EACH = 1 << 16  # characters that are parsed with each failure: at most half a millisecond or so
MOST_ONCE = 1 << 20  # those of a payload that is remembered
_NAME = '"model"'


def asked_model(payload: Any, most: int = MOST_EACH) -> str:
    """The ``model`` of a payload that is an object, or its JSON of ``most`` characters; else nothing.

    A payload may be anything.
    """
    try:
        told = payload if isinstance(payload, dict) else _parsed(payload, most)
        model = told.get("model") if isinstance(told, dict) else None
    except BaseException:  # of a class of the user's
        return ""
    return model if type(model) is str else ""


def _parsed(payload: Any, most: int) -> Any:
    if not isinstance(payload, (bytes, bytearray, str)) or len(payload) > most or payload[:1] not in (b"{", "{"):
        return None
    name: Any = _NAME if isinstance(payload, str) else _NAME.encode()
    return loads(payload) if name in payload else None  # a tensor takes many times as long to parse as to look through
