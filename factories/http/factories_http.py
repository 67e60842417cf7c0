"""Any HTTP endpoint: your method, path, headers and body; bearer token or basic authentication.

Measures the time of a whole answer; a status outside 200 to 299 is a failed request, counted as `HttpStatusError 503`.
Works with any HTTP server, on any platform: a container on EKS, ECS, OpenShift or EC2, an API behind a load balancer or
gateway. `benchmark URL` runs this file. Secrets are not settings: set ENDPOINT_TOKEN or BENCHMARK_API_KEY for a bearer
token, ENDPOINT_USER and ENDPOINT_PASSWORD for basic authentication, BENCHMARK_HEADERS for anything else, a JSON object
of headers.
"""

import base64
import json
import os
from pathlib import Path

from inference_benchmarker.clients import HttpClient

SERVER = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
PATH = "/invocations"  # with its query, as in /search?q=bees
METHOD = "POST"  # GET and HEAD go without a body, unless one is given
CONTENT_TYPE = "application/json"  # of the body; empty: none is sent
BODY = None  # a text to send with every request
BODY_FILE = os.environ.get("BODY_FILE")  # a file to send as it is; of a .jsonl, each line in turn
VERIFY = True  # false: whatever certificate the server shows
HEADERS = {"Accept": "*/*", **json.loads(os.environ.get("BENCHMARK_HEADERS", "{}"))}


def invoke_factory(endpoint_name=None):
    client = HttpClient(SERVER, content_type=CONTENT_TYPE, headers={**authorization(), **HEADERS}, verify=VERIFY)

    def invoke(payload):
        return client.request(METHOD, PATH, payload).body

    return invoke


def authorization():
    token, user, key = map(os.environ.get, ("ENDPOINT_TOKEN", "ENDPOINT_USER", "BENCHMARK_API_KEY"))
    if user and not token:
        pair = f"{user}:{os.environ.get('ENDPOINT_PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {"Authorization": f"Bearer {token or key}"} if token or key else {}


def payload_factory():
    if BODY is not None or BODY_FILE:
        return {"pre_computed": True, "input": of_file(Path(BODY_FILE)) if BODY_FILE else [BODY.encode()]}
    if METHOD in ("GET", "HEAD"):
        return {"pre_computed": True, "input": [b""]}
    bodies = [{"id": number, "features": [0.1, 0.2, 0.3]} for number in range(100)]
    return {"pre_computed": True, "input": [json.dumps(body).encode() for body in bodies]}


def of_file(path):
    content = path.read_bytes()
    if path.suffix not in (".jsonl", ".ndjson"):
        return [content]
    if not (lines := [line for line in content.splitlines() if line.strip()]):
        raise ValueError(f"{path} is empty: expected a body a line")
    return lines
