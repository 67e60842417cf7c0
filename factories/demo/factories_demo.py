"""The embedded endpoint, as `benchmark --demo` calls it: copy this file and change it into your own endpoint."""

import json
import os

from geventhttpclient import HTTPClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
PATH = "/invocations"  # the URL path of each request


class HttpError(Exception):
    """The endpoint answered, but not with 200."""

    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status = status  # becomes part of the error's row in the report


def invoke_factory(endpoint_name=None):
    """Once in each worker process: clients, connection pools, sessions."""
    client = HTTPClient.from_url(URL, concurrency=1000, connection_timeout=10, network_timeout=60)
    headers = {"Content-Type": "application/json"}

    def invoke(payload):
        """Once for each request: done when it returns, failed when it raises."""
        try:
            response = client.post(PATH, body=payload, headers=headers)
        except ConnectionRefusedError as error:
            error.strerror += f": {URL} (is the server running there?)"
            raise
        body = response.read()
        if response.status_code != 200:
            raise HttpError(response.status_code, body.decode(errors="replace"))
        return body

    return invoke


def payload_factory():
    """Once in each worker process: arrival i sends input[i mod n]."""
    payloads = [json.dumps({"id": number, "features": [0.1, 0.2, 0.3]}).encode() for number in range(100)]
    return {"pre_computed": True, "input": payloads}
