"""The codec of stored results: JSON objects become frozen dataclasses, and those JSON objects again.

A field's type is its bounds, its place in the class the place of its key, its name the key's but where it is NAMED.
msgspec decodes, and is imported where something is decoded.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from inference_benchmarker.data.typed import require

T = TypeVar("T")

OMITTED = {"without": ""}
"""The metadata of a field whose key does not stand in the object where it is None."""


def omitted_without(name: str) -> dict[str, Any]:
    """The metadata of a field whose key does not stand in the object where the field of that name is None."""
    return {"without": name}


def named(key: str) -> dict[str, Any]:
    """The metadata of a field whose key is no name in Python; of the outermost type alone."""
    return {"key": key}


def decoded(data: Any, kind: type[T]) -> T:
    """The value of that dataclass; ValueError with the place of the first part that does not fit.

    Keys that it does not know are left out: a later version may have written them. Numbers have the bounds of
    ``typed``: they can be computed with.
    """
    import msgspec

    keys = {each.metadata["key"]: each.name for each in fields(kind) if "key" in each.metadata}  # type: ignore[arg-type]
    if keys and isinstance(data, dict):
        data = {keys.get(key, key): value for key, value in data.items() if key not in keys or value is not None}
    try:
        made = msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"a value is out of bounds ({error})") from None
    require(made, kind, kind.__name__)
    return made


def encoded(value: Any) -> Any:
    """The same as JSON has it: an object for a dataclass, a list for a tuple, a number as it is."""
    if is_dataclass(value):
        return {
            each.metadata.get("key", each.name): encoded(getattr(value, each.name))
            for each in fields(value)
            if "without" not in each.metadata or getattr(value, each.metadata["without"] or each.name) is not None
        }
    if isinstance(value, dict):
        return {key: encoded(part) for key, part in value.items()}
    return [encoded(part) for part in value] if isinstance(value, (list, tuple)) else value
