"""A factories file for the embedded endpoint at the URL given as endpoint name, with the client of ``--demo``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from geventhttpclient import HTTPClient

if TYPE_CHECKING:
    from collections.abc import Callable

CONNECTIONS = 10_000  # at least what a worker may have in flight, so that no request waits for a connection


class HttpError(Exception):
    """The endpoint answered, but not with 200."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


def invoke_factory(endpoint_name: str) -> Callable[[bytes], bytes]:
    """An invoke that posts its payload over a kept connection and reads the answer."""
    client = HTTPClient.from_url(endpoint_name, concurrency=CONNECTIONS, connection_timeout=10, network_timeout=60)
    headers = {"Content-Type": "application/json"}

    def invoke(payload: bytes) -> bytes:
        response = client.post("/invocations", body=payload, headers=headers)
        body: bytes = response.read()
        if response.status_code != 200:
            raise HttpError(response.status_code)
        return body

    return invoke


def payload_factory() -> dict[str, Any]:
    """A hundred small JSON objects."""
    payloads = [json.dumps({"id": number, "features": [0.1, 0.2, 0.3]}).encode() for number in range(100)]
    return {"pre_computed": True, "input": payloads}
