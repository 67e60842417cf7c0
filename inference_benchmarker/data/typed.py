"""Checks values that came from a file against the types they are declared with. Pure."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MOST = 1 << 63
MOST_FLOAT = 1e30  # of what is multiplied afterwards


def require(value: Any, kind: Any, name: str) -> None:
    """Raise ValueError with the place of the first part that has not the type it is declared with."""
    misfit = next(_misfits(value, kind, name), None)
    if misfit is not None:
        raise ValueError(misfit)


def _misfits(value: Any, kind: Any, name: str) -> Iterator[str]:
    """The parts that do not fit, a short text each. ``kind``: a type, a union, a Literal, a dataclass, a container."""
    if kind is Any:
        return
    origin, arguments = _taken_apart(kind)
    if origin in (Union, types.UnionType):
        found = [each for kind in arguments if (each := next(_misfits(value, kind, name), None)) is not None]
        if len(found) == len(arguments):  # of the one whose own type it has, the part
            yield next((each for each in found if not each.startswith(f"{name} ")), found[0])
    elif origin is Literal:
        if value not in arguments:
            yield f"{name} is not one of {', '.join(map(str, arguments))}"
    elif not _has_type(value, origin or kind):
        yield f"{name} is {_value_text(value)}"
    elif _has_plain_parts(value, origin, arguments):
        return
    else:
        for part, part_kind, part_name in _parts(value, kind, name):
            yield from _misfits(part, part_kind, part_name)


def _parts(value: Any, kind: Any, name: str) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a value of that type: each part with its type and its place."""
    origin, arguments = _taken_apart(kind)
    origin = origin or kind
    if is_dataclass(origin) or hasattr(origin, "_fields"):
        for key, part_kind in _hints(origin).items():
            yield getattr(value, key), part_kind, f"{name}.{key}"
    elif origin is dict:
        for key, part in value.items():
            yield key, arguments[0], f"a key of {name}"
            yield part, arguments[1], f"{name}.{str(key)[:40]}"
    elif origin in (list, tuple):
        kinds = [arguments[0]] * len(value) if origin is list or arguments[-1] is Ellipsis else arguments
        if len(kinds) != len(value):
            raise ValueError(f"{name} has {len(value)} parts")
        for number, (part, part_kind) in enumerate(zip(value, kinds, strict=True)):
            yield part, part_kind, f"{name}[{number}]"


def _has_plain_parts(value: Any, origin: Any, kinds: tuple[Any, ...]) -> bool:
    """Tells at once of a list of whole numbers or texts, and of a dictionary of whole numbers, that its parts fit."""
    if origin is dict and kinds == (str, int):
        return set(map(type, value)) <= {str} and _are_numbers(value.values())
    if origin is list and kinds == (int,):
        return _are_numbers(value)
    return origin is list and kinds == (str,) and set(map(type, value)) <= {str}


def _are_numbers(values: Collection[Any]) -> bool:
    plain = set(map(type, values)) <= {int}
    return not values or (plain and min(values) > -MOST and max(values) < MOST)


def _has_type(value: Any, kind: Any) -> bool:
    """Numbers must be ones that can be computed with; a truth value is no number."""
    if kind is float:
        return type(value) in (int, float) and -MOST_FLOAT < value < MOST_FLOAT
    if kind is int:
        return type(value) is int and -MOST < value < MOST
    return isinstance(value, kind)


@lru_cache
def _taken_apart(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """The container or choice that it is, and its arguments; each batch of a spool asks for the same few."""
    return get_origin(kind), get_args(kind)


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    """Of a dataclass or a named tuple."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else getattr(kind, "_fields", ())
    return {name: hints[name] for name in names}


def _value_text(value: Any) -> str:
    """A value in few words."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"the number {value:.4g}" if abs(value) < MOST_FLOAT else "a number out of bounds"
    return "missing" if value is None else f"a {type(value).__name__}"
