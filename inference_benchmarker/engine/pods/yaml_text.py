"""JSON values as YAML that people read: nothing else of YAML is written. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# A word that every reader of YAML takes for a text: no number, no date, and none of the words below.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_NO_TEXT = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_IN_BLOCK = re.compile(r"[^\s](?:[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]*[^\s])?\n")
_LINE_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def as_yaml(value: dict[str, Any]) -> str:
    """The text of an object; it ends with a line break."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> Iterator[str]:
    match value:
        case dict() if value:
            for key, each in value.items():
                first, *rest = _lines(each)
                if isinstance(each, (dict, list)) and each:
                    yield f"{_scalar(str(key))}:"
                    rest = [first, *rest]
                else:
                    yield f"{_scalar(str(key))}: {first}"
                yield from _indented(rest)
        case list() if value:
            for each in value:
                first, *rest = _lines(each)
                yield f"- {first}"
                yield from _indented(rest)
        case str() if "\n" in value[:-1] and _IN_BLOCK.fullmatch(value):
            yield "|"
            yield from value[:-1].split("\n")
        case _:
            yield _scalar(value)


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else line for line in lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _NO_TEXT:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return _LINE_BREAKS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
