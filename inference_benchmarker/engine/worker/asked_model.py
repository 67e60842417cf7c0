"""The model that a payload asks for: of a request that failed there is no answer to name it."""

from __future__ import annotations

from json import loads  # by its name: the user's code may put another function into the module
from typing import Any

_MOST = 1 << 20  # characters that are parsed, some milliseconds
_NAME = '"model"'


def asked_model(payload: Any) -> str:
    """The ``model`` of a payload that is an object or its JSON; else nothing. A payload may be anything."""
    try:
        told = payload if isinstance(payload, dict) else _parsed(payload)
        model = told.get("model") if isinstance(told, dict) else None
    except BaseException:  # of a class of the user's
        return ""
    return model if type(model) is str else ""


def _parsed(payload: Any) -> Any:
    if not isinstance(payload, (bytes, bytearray, str)) or len(payload) > _MOST or payload[:1] not in (b"{", "{"):
        return None
    name: Any = _NAME if isinstance(payload, str) else _NAME.encode()
    return loads(payload) if name in payload else None  # a tensor takes many times as long to parse as to look through
