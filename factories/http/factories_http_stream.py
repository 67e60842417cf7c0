"""Any HTTP endpoint that streams its answer: server-sent events, lines of JSON, or plain lines.

Measures TTFT (the first piece with a text in it), ITL and the number of pieces. Works with any server that streams its
answer to a POST, on any platform: a server of your own with FastAPI, LitServe or BentoML, an agent, a gateway. A status
outside 200 to 299, an error within the stream, a stream that breaks off and one without a text are failed
requests. Edit the constants, and `text_of`, which returns the text of an event. Secrets are not among them: set
ENDPOINT_TOKEN or BENCHMARK_API_KEY for a bearer token, ENDPOINT_USER and ENDPOINT_PASSWORD for basic authentication.
"""

import base64
import json
import os

from inference_benchmarker.clients import EventReader, HttpClient

SERVER = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
PATH = "/invocations"  # with its query, as in /search?q=bees
HEADERS = {"Accept": "text/event-stream"}  # of lines: application/x-ndjson or what your server calls them
PLAIN_LINES = False  # true: every line that is not empty is a piece; false: events, or lines of JSON
LAST = "[DONE]"  # the data of the event that ends the stream; empty: the server ends it by ending its answer


class StreamError(Exception):
    """The stream reported an error, broke off, had no text in it, or was a page."""


def invoke_factory(endpoint_name=None):
    client = HttpClient(f"{SERVER}{PATH}", headers={**HEADERS, **authorization()})

    def invoke(payload):
        ended, texts = not LAST or PLAIN_LINES, 0
        pieces = client.stream(payload)
        for data in lines(pieces) if PLAIN_LINES else map(bytes.decode, EventReader.over(pieces)):
            if data == LAST:
                ended = True
            elif text := data if PLAIN_LINES else text_of(data):
                texts += 1
                yield text
        if not ended:
            raise StreamError(f"the stream ended after {texts} texts, without {LAST}")
        if not texts:
            raise StreamError("the stream had no text in it")

    return invoke


def text_of(data):
    """The text that an event brings. An empty one counts as no piece. To change to what your server sends."""
    try:
        text = json.loads(data)["text"]
        if not isinstance(text, str | None):
            raise TypeError
        return text
    except (ValueError, LookupError, TypeError) as error:
        raise StreamError(f'expected {{"text": ...}}, but got: {data[:500]}') from error


def lines(pieces):
    """Each line that is not empty, however the pieces cut them. Raises StreamError for a page, as of a proxy."""
    rest, first = b"", True
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in filter(None, [line.decode().strip() for line in whole]):
            if first and line.lower().startswith(("<!doctype", "<html")):
                raise StreamError(f"expected lines, but got a page: {line[:500]}")
            first = False
            yield line
    if last := rest.decode().strip():
        yield last


def authorization():
    token, user, key = map(os.environ.get, ("ENDPOINT_TOKEN", "ENDPOINT_USER", "BENCHMARK_API_KEY"))
    if user and not token:
        pair = f"{user}:{os.environ.get('ENDPOINT_PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {"Authorization": f"Bearer {token or key}"} if token or key else {}


def payload_factory():
    bodies = [{"id": number, "prompt": f"Write about the number {number}."} for number in range(100)]
    return {"pre_computed": True, "input": [json.dumps(body).encode() for body in bodies]}
