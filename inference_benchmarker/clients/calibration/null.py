"""A factories file whose invoke does nothing: what a wave against it measures is this tool alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def invoke_factory() -> Callable[[object], None]:
    """An invoke that returns at once."""
    return lambda _: None


def payload_factory() -> dict[str, Any]:
    """One payload, as good as any."""
    return {"pre_computed": True, "input": [b""]}
