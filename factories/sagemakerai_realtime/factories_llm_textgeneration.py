"""SageMaker, text generation: inputs and parameters to an LLM, the answer in one piece.

Measures the time of whole answers and their tokens. For real-time endpoints of DJL's LMI and TGI containers that take
{"inputs": ..., "parameters": ...}; for those that take {"messages": [...]} as vLLM does, see factories_llm_chat.py.
Tokens are counted if the answer reports them, which "details" requests. An answer without a generated text is a failed
request. Run it with --endpoint-name NAME.
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


class GenerationError(Exception):
    """The container answered, but with an error, with nothing, or with something else than a generated text."""


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
        generated = answer[0] if isinstance(answer, list) else answer  # TGI answers with a list of one
        text, details = generated["generated_text"], generated.get("details") or {}
    except (ValueError, LookupError, TypeError) as error:
        raise GenerationError(f"expected a generated text, but got: {shown}") from error
    tokens, reason = details.get("generated_tokens"), details.get("finish_reason")
    response = Response(tokens_out=tokens, bytes=len(body), finish_reason=reason)  # fails for "error" and "abort"
    if not text or "error" in generated:
        raise GenerationError(f"the text is empty or ended with an error: {shown}")
    return response


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the container's prefix cache."""
    draw = random.Random(0)
    prompts = cycle([f"Write about {', '.join(draw.sample(TOPICS, k=3))}." for _ in range(PROMPTS)])
    return {"pre_computed": False, "input": lambda: request(f"{os.urandom(8).hex()} {next(prompts)}")}


def request(prompt):
    return json.dumps({"inputs": prompt, "parameters": PARAMETERS}).encode()
