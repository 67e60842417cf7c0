"""OpenAI's responses as streams, of any server with that API: TTFT, ITL, tokens.

Measures TTFT, ITL and the tokens of the server's usage. Works with vLLM, SGLang, Ollama and OpenAI itself; on EKS,
HyperPod, OpenShift, EC2; for addresses see factories_chat_stream.py. Besides a key, BENCHMARK_HEADERS may hold a JSON
object of headers. A response that failed or was cancelled, an error within the stream, a stream that breaks
off and one without a token are failed requests. A response that ran out of tokens is incomplete, but a success: the
report counts the reason.
"""

import json
import os
import random
from itertools import cycle

from inference_benchmarker import Response
from inference_benchmarker.clients import EventReader, HttpClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
PROMPT = None  # a text to send each time; without one, words are drawn for each request
PROMPT_WORDS = 200  # of such a prompt; a word is a token to most tokenizers
MAX_TOKENS = 128  # of an answer, at most
MORE = {}  # as {"temperature": 0.7, "reasoning": {"effort": "low"}}

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")
LAST = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", "error")


class ResponsesError(Exception):
    """The response failed, broke off, or had nothing in it."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.response = {"Error": {"Code": code}}  # becomes part of the error's row in the report


def invoke_factory(endpoint_name=None):
    """Once in each worker process. A certificate of your own authority: verify="/path/to/ca.pem"."""
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    authorization = {"Authorization": f"Bearer {key}"} if key else {}
    own = json.loads(os.environ.get("BENCHMARK_HEADERS", "{}"))
    client = HttpClient(f"{URL}/v1/responses", headers={"Accept": "text/event-stream", **authorization, **own})

    def invoke(payload):
        pieces, last = 0, None
        for data in EventReader.over(client.stream(payload)):
            kind, event = understood(data)
            if kind in LAST:
                last = event
            elif kind.endswith(".delta") and event.get("delta"):  # text, reasoning, a refusal, a call's arguments
                pieces += 1
                yield str(event["delta"])
        if last is None:
            raise ResponsesError(f"the stream ended after {pieces} pieces, without its last event")
        reason, response = outcome(last)
        if not (pieces or response.tokens_out) and reason != "content_filter":
            raise ResponsesError(f"the response had nothing in it: {shown(last)}")
        yield response

    return invoke


def outcome(last):
    """Why the response ended, and the figures. Raises ResponsesError where it failed."""
    try:
        response = last.get("response") or {}
        if last["type"] not in LAST[:2]:
            error = response.get("error") or last
            code = error.get("code") or last["type"].removeprefix("response.")
            raise ResponsesError(f"the response failed: {shown(error)}", code)
        usage, details = response.get("usage") or {}, response.get("incomplete_details") or {}
        reason = details.get("reason") or response.get("status")
        tokens = (usage.get("input_tokens"), usage.get("output_tokens"))
        return reason, Response(*tokens, model=response.get("model"), finish_reason=reason)
    except (AttributeError, TypeError) as error:
        raise ResponsesError(f"expected the end of a response, but got: {shown(last)}") from error


def understood(data):
    """An event's type and content."""
    if data == b"[DONE]":  # some servers end with it, as in chats
        return "", {}
    text = data[:500].decode(errors="replace")
    try:
        event = json.loads(data)
        if not isinstance(event["type"], str):
            raise TypeError
        return event["type"], event
    except (ValueError, LookupError, TypeError) as error:
        raise ResponsesError(f"expected an event of a response, but got: {text}") from error


def shown(content):
    return json.dumps(content)[:500]


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=PROMPT_WORDS)) for _ in range(100)])

    def build():
        prompt = f"{os.urandom(8).hex()} {next(texts)}" if PROMPT is None else PROMPT
        return {"model": MODEL, "input": prompt, "max_output_tokens": MAX_TOKENS, "stream": True, **MORE}

    return {"pre_computed": False, "input": build}
