"""An endpoint that answers at once, and a client that is busy for 2 ms with each request: it can send 500 a second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BUSY_S = 0.002


def invoke_factory() -> Callable[[int], bytes]:
    def invoke(_: int) -> bytes:
        until = time.perf_counter() + BUSY_S
        while time.perf_counter() < until:
            pass
        return b""

    return invoke


def payload_factory() -> dict[str, Any]:
    return {"pre_computed": True, "input": [0]}
