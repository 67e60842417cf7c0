"""Decodes JSON objects into types: each value has its type and stands within its bounds, or a sentence says where not.

msgspec does it, and is imported where something is decoded.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def decoded(data: Any, kind: type[T]) -> T:
    """The value of that type, a frozen dataclass say; ValueError with the place of the first part that does not fit."""
    import msgspec

    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"a value is out of bounds ({error})") from None
