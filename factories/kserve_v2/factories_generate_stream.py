"""Texts as a stream over HTTP: generate_stream of MLServer, and of Triton's generate extension.

Measures TTFT and ITL; tokens are the server's figure if it reports one, else the number of pieces. Works with MLServer
(port 8080; it streams with gzip_enabled false and parallel_workers 0) and Triton (8000); on EKS, OpenShift AI, EC2. An
error within the stream, a stream that is cut off and one without a text are failed requests. Set the address
and the model's input below.
"""

import json
import os
import random
from itertools import cycle

from inference_benchmarker import Response
from inference_benchmarker.clients import EventReader, HttpClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
MODEL = "demo"  # of a version: "demo/versions/1"
TRITON = False  # True: {"text_input": ...}; False: MLServer's {"inputs": [...]}
INPUT = "prompt"  # the name of MLServer's input
# Those of Triton's vLLM and of a model of yours differ. Triton's vLLM tells its tokens with "return_num_output_tokens":
# True, and why it ended with "return_finish_reason": True.
PARAMETERS = {"max_tokens": 64, "stream": True}
PROMPT_WORDS = 200  # of a prompt; a word is a token to most tokenizers

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


class StreamError(Exception):
    """The stream reported an error, or had no text in it."""


def invoke_factory(endpoint_name=None):
    client = HttpClient(f"{URL}/v2/models/{MODEL}/generate_stream", headers={"Accept": "text/event-stream"})

    def invoke(payload):
        pieces, tokens, reason = 0, 0, None
        for data in EventReader.over(client.stream(payload)):
            text, number, ended = understood(data)
            tokens += number
            reason = ended or reason
            if text:
                pieces += 1
                yield text
        if not pieces:
            raise StreamError("the stream had no text in it")
        yield Response(tokens_out=tokens or None, finish_reason=reason)  # "abort" and "error" fail here

    return invoke


def understood(data):
    """The text of an event, its tokens where they are given, and the reason for which it is the last one."""
    shown = data[:500].decode(errors="replace")
    try:
        event = json.loads(data)
        text = event["text_output"] if TRITON else event["outputs"][0]["data"]
        texts = text if isinstance(text, list) else [text]
        if None in texts or isinstance(text, dict):
            raise TypeError
        return "".join(map(str, texts)), int(event.get("num_output_tokens") or 0), event.get("finish_reason")
    except (ValueError, LookupError, TypeError) as error:
        raise StreamError(f"expected {'text_output' if TRITON else 'outputs'}, but got: {shown}") from error


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=PROMPT_WORDS)) for _ in range(100)])
    return {"pre_computed": False, "input": lambda: request(f"{os.urandom(8).hex()} {next(texts)}")}


def request(prompt):
    if TRITON:
        return {"text_input": prompt, "parameters": PARAMETERS}
    text = {"name": INPUT, "shape": [1], "datatype": "BYTES", "data": [prompt], "parameters": {"content_type": "str"}}
    return {"inputs": [text], "parameters": PARAMETERS}
