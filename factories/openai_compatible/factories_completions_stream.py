"""Completions as streams, for prompts with an exact number of tokens: TTFT and ITL by input length.

Works with vLLM and SGLang, which take a prompt as token ids: no tokenizer is needed and no chat template adds to it. On
EKS, HyperPod, OpenShift, EC2. Each length is a row of the report; for addresses see factories_chat_stream.py.
"""

import os
import random

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
PROMPT_TOKENS = (128, 512, 2048)  # the lengths of prompts, as many of each
MAX_TOKENS = 64  # of an answer, at most
IDS = range(1000, 30_000)  # of ordinary tokens, not the model's special ones
MORE = {"ignore_eos": True}  # every answer has MAX_TOKENS tokens


def invoke_factory(endpoint_name=None):
    """Once in each worker process. A certificate of your own authority: verify="/path/to/ca.pem"."""
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    return client.stream_completions


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random()

    def build():
        prompt = chosen.choices(IDS, k=chosen.choice(PROMPT_TOKENS))
        # the client would add "stream" by itself; aiperf looks for it here
        return {"model": MODEL, "prompt": prompt, "max_tokens": MAX_TOKENS, "stream": True, **MORE}

    return {"pre_computed": False, "input": build, "label": lambda payload: f"{len(payload['prompt'])} tokens"}
