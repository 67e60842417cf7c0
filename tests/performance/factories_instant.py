"""An endpoint that answers at once without being asked: what a wave costs is the tool's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def invoke_factory() -> Callable[[int], bytes]:
    return lambda _: b""


def payload_factory() -> dict[str, Any]:
    return {"pre_computed": True, "input": [0]}
