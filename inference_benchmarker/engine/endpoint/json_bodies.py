"""Payloads as the bodies of requests to an API that speaks JSON, for a program that sends them itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.engine.endpoint.factories_file import Endpoint

_EXPECTED = (
    "aiperf sends JSON objects: let payload_factory give dicts or their text, or name a file of aiperf's own "
    'with --aiperf-args \'{"input-file": "FILE"}\'.'
)


def json_bodies(endpoint: Endpoint, seed: int, arrivals: int) -> Iterator[dict[str, Any]]:
    """The requests of arrivals 0, 1, ..., as JSON objects; a list in its own order is read once, however often sent."""
    for index in range(arrivals):
        if endpoint.payloads is None:
            assert endpoint.build is not None
            yield json_body(endpoint.build(), index)
        elif endpoint.cumulative_weights is None and index == len(endpoint.payloads):
            return
        else:
            yield json_body(endpoint.payloads[endpoint.choose(seed, index)], index)


def json_body(payload: Any, index: int) -> dict[str, Any]:
    """A payload as a JSON object; BenchmarkError, with its ``index``, where it is none."""
    try:
        body = json.loads(payload) if isinstance(payload, (str, bytes, bytearray)) else payload
        json.dumps(body, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        raise BenchmarkError(f"payload {index} is not JSON ({error}).", _EXPECTED) from None
    if not isinstance(body, dict):
        raise BenchmarkError(f"payload {index} is a {type(payload).__name__}, not a JSON object.", _EXPECTED)
    return body
