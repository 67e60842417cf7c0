"""SageMaker, chat as a stream: TTFT and ITL of an LLM, token by token.

Measures TTFT, ITL and the tokens of the container's usage. For real-time endpoints of containers that take {"messages":
[...], "stream": true} and answer as OpenAI's API does, in server-sent events or lines of JSON: DJL's LMI, vLLM, SGLang,
TGI; and for inference components of these: add InferenceComponentName=... to the call. A stream that breaks off, has no
token in it, reports an error or was aborted by the server is a failed request. Run it with --endpoint-name NAME.
"""

import json
import os
import random
from itertools import cycle

import boto3
from botocore.config import Config

from inference_benchmarker import Response

# Some containers want {"model": ...} too; {"ignore_eos": True} makes every answer of vLLM and SGLang max_tokens long.
REQUEST = {"max_tokens": 64, "temperature": 0.7, "stream": True, "stream_options": {"include_usage": True}}
PROMPTS = 100  # different ones
TOPICS = ["rivers", "bridges", "winter", "markets", "clocks", "bread", "trains", "islands", "maps", "gardens", "stars"]


class StreamError(Exception):
    """The stream broke off, reported an error, had nothing in it, or was no stream of a chat at all."""


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
        pieces, reason = 0, None
        for line in lines(answer["Body"]):
            text, finish_reason, usage = understood(line)
            reason = finish_reason or reason
            if text:
                pieces += 1
                yield text
            if usage:
                yield usage
        if reason is None:
            raise StreamError(f"the stream ended after {pieces} pieces, without a finish_reason")
        yield Response(finish_reason=reason)  # "abort" and "error" fail here
        if not pieces and reason != "content_filter":
            raise StreamError(f"the stream had no token in it: its finish_reason is {reason}")

    return invoke


def understood(line):
    """The text that an event brings, the reason for which it is the last one, and the usage."""
    try:
        event = json.loads(line)
        choices = event["choices"]
        text = "".join([generated(choice["delta"]) for choice in choices])
        reason = next(filter(None, [choice.get("finish_reason") for choice in choices]), None)
        usage = event.get("usage")
        return text, reason, usage and Response(usage.get("prompt_tokens"), usage.get("completion_tokens"))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        shown = line[:500].decode(errors="replace")
        raise StreamError(f"expected an event of a chat, but got: {shown}") from error


def generated(delta):
    """All that the model may have generated, which servers send under one of these names."""
    names = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
    return str(next(filter(None, map(delta.get, names)), ""))


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
    return json.dumps({**REQUEST, "messages": [{"role": "user", "content": prompt}]}).encode()
