"""The requests of ``factories_http``, each with one of 50 labels and with two values of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker import Response
from tests.performance.factories_http import invoke_factory as plain_factory
from tests.performance.factories_http import payload_factory as plain_payloads

if TYPE_CHECKING:
    from collections.abc import Callable

LABELS = 50


def invoke_factory() -> Callable[[bytes], Response]:
    plain = plain_factory()

    def invoke(payload: bytes) -> Response:
        body = plain(payload)
        return Response(bytes=len(body), metrics={"cache_hit": 1.0, "cost": 0.25})

    return invoke


def payload_factory() -> dict[str, Any]:
    return {**plain_payloads(), "label": lambda payload: f"model-{int(payload) % LABELS}"}
