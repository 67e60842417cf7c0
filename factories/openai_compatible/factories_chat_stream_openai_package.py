"""Chat completions as streams, through the openai package: includes the CPU that your own application uses.

Works with vLLM, SGLang, TGI, Ollama, on any platform. It needs `pip install "openai>=3"` in the environment of
`benchmark`. The package drops its connection at the end of each stream, so TTFT includes a new connection, and each
token costs far more CPU than in factories_chat_stream.py. With many tokens this client is the bottleneck, and the
report says so.
"""

import os
import random
from itertools import cycle

import httpx2  # comes with openai
import openai

from inference_benchmarker import Response

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
PROMPT_WORDS = 200  # of a prompt; a word is a token to most tokenizers
MAX_TOKENS = 128  # of an answer, at most
MORE = {}  # what is not OpenAI's own: {"ignore_eos": True} on vLLM and SGLang makes every answer MAX_TOKENS long

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


class StreamError(Exception):
    """The stream ended without its last event, or with nothing in it, which is no error to the package."""


def invoke_factory(endpoint_name=None):
    """Once in each worker process. The package would repeat what failed, and keep only 100 connections."""
    limits = httpx2.Limits(max_connections=1000, max_keepalive_connections=1000)  # as many as requests in flight
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = openai.OpenAI(
        base_url=f"{URL}/v1",
        api_key=key or "none",  # the package wants one, whether the server does or not
        max_retries=0,
        http_client=openai.DefaultHttpxClient(limits=limits, timeout=60),
    )

    def invoke(prompt):
        stream = client.chat.completions.create(
            model=MODEL,
            max_tokens=MAX_TOKENS,
            messages=[{"role": "user", "content": prompt}],
            stream=True,
            stream_options={"include_usage": True},
            extra_body=MORE,
        )
        pieces, tokens, finished = 0, 0, None
        with stream:
            for event in stream:
                for choice in event.choices:
                    if text := generated(choice.delta):
                        pieces += 1
                        yield text
                    finished = finished or choice.finish_reason
                if event.usage:
                    tokens = event.usage.completion_tokens
                    yield response_of(event)
        if not finished:
            raise StreamError(f"the stream ended after {pieces} pieces, without a finish_reason")
        yield Response(finish_reason=finished)  # one that the server gave up has failed
        if not (pieces or tokens) and finished not in ("content_filter", "tool_calls", "function_call"):
            raise StreamError(f"the stream had no token in it: its finish_reason is {finished}")

    return invoke


def response_of(event):
    """The server's usage and, as a row of the report, the tokens of the prompt that came from its prefix cache."""
    usage, details = event.usage, event.usage.prompt_tokens_details
    cached = details and details.cached_tokens  # None where the server does not report them
    return Response(usage.prompt_tokens, usage.completion_tokens, model=event.model, metrics={"cached_tokens": cached})


def generated(delta):
    """A token of the answer, or of the reasoning before it, which servers send under one of two names."""
    return delta.content or getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=PROMPT_WORDS)) for _ in range(100)])
    return {"pre_computed": False, "input": lambda: f"{os.urandom(8).hex()} {next(texts)}"}
