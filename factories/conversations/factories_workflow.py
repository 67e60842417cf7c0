"""Any HTTP workflow: a user logs in, asks, and fetches the result; each step uses the answer of the one before.

Measures each step, a row of the report for each, and the duration of whole workflows; a step that fails ends its user's
workflow. `--client-rps` counts users. Works with any HTTP server, on any platform. Set the paths and bodies below.
"""

import json
import os

from inference_benchmarker import Turn
from inference_benchmarker.clients import HttpClient

SERVER = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
LOG_IN = "/invocations"
ASK = "/invocations"
FETCH = "/ping"  # with {job} in it, the number of the job that was asked for
READS_S = 0.5  # a user looks at an answer so long
FETCHES = 2


def invoke_factory(endpoint_name=None):
    client = HttpClient(SERVER)

    def invoke(step):
        method, path, body = step
        return client.request(method, path, None if body is None else json.dumps(body).encode()).body

    return invoke


def session_factory():
    def session(number):
        answer = yield Turn(("POST", LOG_IN, {"user": number}), label="log in")
        token = read(answer).get("token", "")
        answer = yield Turn(("POST", ASK, {"user": number, "token": token}), think_s=READS_S, label="ask")
        job = read(answer).get("job", 0)
        for _ in range(FETCHES):
            yield Turn(("GET", FETCH.format(job=job), None), think_s=READS_S, label="fetch")

    return session


def read(answer):
    """The object that an answer is, without anything in it where it is none."""
    found = json.loads(answer or b"{}")
    return found if isinstance(found, dict) else {}
