"""Selectors of labels and fields, as kubectl writes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.kube.store import Object

_SET = re.compile(r"\s*([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)\s*")
_PAIR = re.compile(r"\s*([\w./-]+)\s*(==|=|!=)\s*([^,]*?)\s*")
_TERMS = re.compile(r",(?![^(]*\))")


def has_labels(found: Object, selector: str) -> bool:
    """Tells whether an object has the labels that are asked for."""
    labels = found["metadata"].get("labels") or {}
    return all(_holds(labels, term) for term in _TERMS.split(selector) if term.strip())


def has_fields(found: Object, selector: str) -> bool:
    """Tells whether an object's fields have these values; one that is not there is empty."""
    for term in filter(None, selector.split(",")):
        path, sign, value = _matched(_PAIR, term).groups()
        if (_field(found, path) == value) == (sign == "!="):
            return False
    return True


def matches(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tells whether all the wanted ones are among the labels."""
    return all(labels.get(name) == value for name, value in wanted.items())


def _holds(labels: Mapping[str, str], term: str) -> bool:
    if found := _SET.fullmatch(term):
        name, word, values = found.groups()
        return (labels.get(name) in [value.strip() for value in values.split(",")]) == (word == "in")
    if found := _PAIR.fullmatch(term):
        name, sign, value = found.groups()
        return (labels.get(name) == value) == (sign != "!=")
    name = term.strip()
    return name[1:] not in labels if name.startswith("!") else name in labels


def _matched(pattern: re.Pattern[str], term: str) -> re.Match[str]:
    found = pattern.fullmatch(term)
    if found is None:
        raise ValueError(f"{term!r} is no selector")
    return found


def _field(found: Object, path: str) -> str:
    value: Any = found
    for step in path.split("."):
        value = value.get(step, "") if isinstance(value, dict) else ""
    return str(value)
