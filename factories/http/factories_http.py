"""Any HTTP endpoint: your method, path, headers and body; bearer token or basic authentication.

Measures the time of a whole answer; a status outside 200 to 299 is a failed request, counted as `HttpStatusError 503`.
Serves whatever speaks HTTP, on any platform: a container on EKS, ECS, OpenShift or EC2, an API behind a load balancer
or gateway. Edit the constants. Secrets are not among them: set ENDPOINT_TOKEN or BENCHMARK_API_KEY for a bearer token,
ENDPOINT_USER and ENDPOINT_PASSWORD for basic authentication. BODY_FILE names a file to send as it is, with every
request.
"""

import base64
import json
import os
from pathlib import Path

from inference_benchmarker.clients import HttpClient

SERVER = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # put your server's address here
PATH = "/invocations"  # with its query, as in /search?q=bees
METHOD = "POST"  # GET and HEAD go without a body, unless there is a BODY_FILE
CONTENT_TYPE = "application/json"
HEADERS = {"Accept": "application/json"}
BODY_FILE = os.environ.get("BODY_FILE")  # or a path; without one, bodies are made below


def invoke_factory(endpoint_name=None):
    client = HttpClient(SERVER, content_type=CONTENT_TYPE, headers={**HEADERS, **authorization()})

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
    if BODY_FILE:
        return {"pre_computed": True, "input": [Path(BODY_FILE).read_bytes()]}
    if METHOD in ("GET", "HEAD"):
        return {"pre_computed": True, "input": [b""]}
    bodies = [{"id": number, "features": [0.1, 0.2, 0.3]} for number in range(100)]
    return {"pre_computed": True, "input": [json.dumps(body).encode() for body in bodies]}
