"""SageMaker, text generation as a stream: TTFT and ITL of an LLM, token by token.

For real-time endpoints of DJL's LMI containers (one JSON object per line) and of TGI (server-sent events) that take
{"inputs": ..., "parameters": ...}, and for inference components of these: add InferenceComponentName=... to the call.
For those that take {"messages": [...]} as vLLM does, see factories_llm_chat_stream.py. A stream that breaks off,
reports an error or has no token in it is a failed request. Run it with --endpoint-name NAME.
"""

import json
import os
import random
from itertools import cycle

import boto3
from botocore.config import Config

from inference_benchmarker import Response

# of the generation; "details" asks for the number of tokens
PARAMETERS = {"max_new_tokens": 64, "do_sample": True, "temperature": 0.7, "details": True}
PROMPTS = 100  # different ones
TOPICS = ["rivers", "bridges", "winter", "markets", "clocks", "bread", "trains", "islands", "maps", "gardens", "stars"]


class StreamError(Exception):
    """The stream broke off, reported an error, had nothing in it, or was no stream of tokens at all."""


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # boto3 would hide failures behind long requests
    # a connection for each request in flight; SageMaker itself gives up after 60 s, and is to be heard
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=70)
    client = boto3.client("sagemaker-runtime", config=config)

    def invoke(payload):
        answer = client.invoke_endpoint_with_response_stream(
            EndpointName=endpoint_name, ContentType="application/json", Body=payload
        )
        pieces, complete = 0, False
        for line in lines(answer["Body"]):
            text, is_last, details = understood(line)
            if text:
                pieces += 1
                yield text
            if is_last:
                complete = True
                tokens_in, tokens_out = details.get("input_length"), details.get("generated_tokens")
                yield Response(tokens_in, tokens_out, finish_reason=details.get("finish_reason"))
        if not complete:
            raise StreamError(f"the stream ended after {pieces} tokens, without its last line")
        if not pieces:
            raise StreamError(f"the stream had no token in it: its details are {details}")

    return invoke


def understood(line):
    """The text that an event brings, if it is the last one, and the details, which that one has."""
    shown = line[:500].decode(errors="replace")
    try:
        event = json.loads(line)
        text, details = event["token"]["text"], event.get("details") or {}
    except (ValueError, LookupError, TypeError) as error:
        raise StreamError(f"expected a token, but got: {shown}") from error
    if "error" in event:
        raise StreamError(f"the server reported an error: {shown}")
    return text, event.get("generated_text") is not None, details


def lines(parts):
    """The lines of a stream, however its parts cut them; an event's data without what stands around it."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part["PayloadPart"]["Bytes"]).split(b"\n")
        yield from filter(None, map(data, whole))
    if last := data(rest):
        yield last


def data(line):
    """The data of a line: nothing where it is empty, a comment, an event's name or the end mark."""
    if line.startswith((b":", b"event:", b"id:", b"retry:")):
        return b""
    said = line.removeprefix(b"data:").strip()
    return b"" if said == b"[DONE]" else said


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the container's prefix cache."""
    draw = random.Random(0)
    prompts = cycle([f"Write about {', '.join(draw.sample(TOPICS, k=3))}." for _ in range(PROMPTS)])
    return {"pre_computed": False, "input": lambda: request(f"{os.urandom(8).hex()} {next(prompts)}")}


def request(prompt):
    return json.dumps({"inputs": prompt, "parameters": PARAMETERS, "stream": True}).encode()
