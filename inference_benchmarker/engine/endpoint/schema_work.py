"""The work of holding an answer against a JSON schema, reckoned before it is done. Pure.

A schema whose alternatives refer to itself names the same part of an answer once in each of them, so that its errors
can double with each level of an answer. To tell only whether an answer keeps it takes linear time: what a schema that
refers to itself says of a part is remembered. But schemas that refer to one another twice, many times over, are not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_LEVELS = 16
"""Levels of an answer for which the steps are known: an answer with more may take any number of them."""
_ENOUGH = 1 << 20  # steps: more need not be distinguished
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NAMES = {"$anchor": "#", "$dynamicAnchor": "#", "$id": "", "id": ""}
_HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_HERE_BY_NAME = ("dependentSchemas", "dependencies")
_ONE = ("items", "prefixItems", "additionalItems", "additionalProperties")  # or a property: of these one for each part
_EACH = ("contains", "unevaluatedItems", "unevaluatedProperties", "propertyNames")


class SchemaWork:
    """The steps of a schema: its rules that are applied to one part of an answer, by the level of that part.

    ``grows``: they become more with each level. ``most``: those for one part, but for what is remembered.
    """

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self._named: dict[str, Any] = {}
        self._known: dict[tuple[int, int], int] = {}
        every = self._named_and_all(schema)
        self.steps = [self._steps(schema, 0)]
        while len(self.steps) <= MOST_LEVELS and 0 < self.steps[-1] < _ENOUGH:
            self.steps.append(self._steps(schema, len(self.steps)))
        self.grows = self.steps[-1] > self.steps[len(self.steps) // 2]
        self.most = max((self._steps(each, 0) for each in every), default=1)
        if not self.grows:
            self.most = max(self.most, *self.steps)
        del self._known, self._named

    def of(self, value: Any, most: int) -> int:
        """The steps that a value may take; where they are more than ``most``, a number above it."""
        total, parts, level = 0, [value], 0
        while parts and total <= most:
            if level >= len(self.steps):
                return total if not self.steps[-1] else most + 1
            total += len(parts) * self.steps[level]
            parts = [part for each in parts for part in _parts(each)]
            level += 1
        return total

    def _steps(self, schema: Any, level: int) -> int:
        """The steps for each part that is so many levels below the one that the schema is for."""
        if not isinstance(schema, dict):
            return int(level == 0)
        key = id(schema), level
        if key in self._known:
            return self._known[key]
        self._known[key] = 1  # where it refers to itself on the same level
        steps = sum(self._steps(each, level) for each in self._here(schema))
        steps += self._lower(schema, level - 1) if level else 1
        self._known[key] = min(steps, _ENOUGH)
        return min(steps, _ENOUGH)

    def _here(self, schema: dict[str, Any]) -> Iterator[Any]:
        """The schemas that it applies to the same part."""
        for name in _REFERENCES:
            if isinstance(schema.get(name), str):
                yield self._referred(schema[name])
        for name in _HERE:
            yield from _several(schema.get(name))
        for name in _HERE_BY_NAME:
            yield from _by_name(schema.get(name))

    def _lower(self, schema: dict[str, Any], level: int) -> int:
        """The steps of the schemas that it applies to what the part consists of: the most that any of that can take."""
        one_each = [self._steps(each, level) for each in _by_name(schema.get("properties"))]
        for name in _ONE:
            one_each += [self._steps(each, level) for each in _several(schema.get(name))]
        each = [*_by_name(schema.get("patternProperties"))]
        for name in _EACH:
            each += _several(schema.get(name))
        return max(one_each, default=0) + sum(self._steps(one, level) for one in each)

    def _referred(self, reference: str) -> Any:
        """The schema that a reference names; of one that is unknown, the whole, which refers to most."""
        if reference in self._named:
            return self._named[reference]
        found = self._root
        try:
            for part in unquote(reference.partition("#")[2]).split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                found = found[int(name)] if isinstance(found, list) else found[name]
        except (LookupError, TypeError, ValueError):
            return self._root
        return found

    def _named_and_all(self, value: Any) -> list[dict[str, Any]]:
        """All that may be schemas within the whole; the names that they have are learned."""
        waiting, every = [value], []
        while waiting:
            each = waiting.pop()
            waiting += _parts(each)
            if isinstance(each, dict):
                every.append(each)
                for name, before in _NAMES.items():
                    if isinstance(each.get(name), str):
                        self._named.setdefault(before + each[name], each)
        return every


def _parts(value: Any) -> list[Any]:
    """The parts of a value of JSON, one level down."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _several(value: Any) -> list[Any]:
    """The schemas of a keyword that has one, or a list of them."""
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _by_name(value: Any) -> list[Any]:
    return [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []
