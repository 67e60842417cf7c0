"""SageMaker, chat: messages to an LLM, the answer in one piece.

Measures the time of whole answers and their tokens, by the container's usage. For real-time endpoints of containers
that take {"messages": [...]} and answer as OpenAI's API does: DJL's LMI, vLLM, SGLang, TGI; and for inference
components of these: add InferenceComponentName=... to the call. An answer that is not a chat completion, is empty or
was aborted by the server is a failed request. Run it with --endpoint-name NAME.
"""

import json
import os
import random
from itertools import cycle

import boto3
from botocore.config import Config

from inference_benchmarker import Response

# Some containers want {"model": ...} too; {"ignore_eos": True} makes every answer of vLLM and SGLang max_tokens long.
REQUEST = {"max_tokens": 64, "temperature": 0.7}
PROMPTS = 100  # different ones
TOPICS = ["rivers", "bridges", "winter", "markets", "clocks", "bread", "trains", "islands", "maps", "gardens", "stars"]


class AnswerError(Exception):
    """The container answered, but not with a chat completion that has something in it."""


def invoke_factory(endpoint_name):
    if endpoint_name is None:
        raise ValueError("no endpoint was given: name it with --endpoint-name NAME")
    retries_off = {"mode": "standard", "total_max_attempts": 1}  # boto3 would hide failures behind long requests
    # a connection for each request in flight; SageMaker itself gives up after 60 s, and is to be heard
    config = Config(retries=retries_off, max_pool_connections=1000, read_timeout=70)
    client = boto3.client("sagemaker-runtime", config=config)

    def invoke(payload):
        answer = client.invoke_endpoint(EndpointName=endpoint_name, ContentType="application/json", Body=payload)
        return understood(answer["Body"].read())

    return invoke


def understood(body):
    shown = body[:500].decode(errors="replace")
    try:
        answer = json.loads(body)
        choice, usage = answer["choices"][0], answer.get("usage") or {}
        text, reason = generated(choice["message"]), choice.get("finish_reason")
        tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        response = Response(*tokens, bytes=len(body), finish_reason=reason)  # fails for "abort" and "error"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise AnswerError(f"expected a chat completion, but got: {shown}") from error
    if not text and reason != "content_filter":
        raise AnswerError(f"the answer has nothing in it: {shown}")
    return response


def generated(message):
    """All that the model may have generated, which servers send under one of these names."""
    names = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
    return next(filter(None, map(message.get, names)), None)


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the container's prefix cache."""
    draw = random.Random(0)
    prompts = cycle([f"Write about {', '.join(draw.sample(TOPICS, k=3))}." for _ in range(PROMPTS)])
    return {"pre_computed": False, "input": lambda: request(f"{os.urandom(8).hex()} {next(prompts)}")}


def request(prompt):
    return json.dumps({**REQUEST, "messages": [{"role": "user", "content": prompt}]}).encode()
