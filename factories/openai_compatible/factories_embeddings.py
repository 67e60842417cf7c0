"""Embeddings of some texts at a time, of any server with an OpenAI-compatible API: latency, input tokens.

Works with vLLM, SGLang, TEI, Ollama; on EKS, HyperPod, OpenShift, EC2. Set the address, the model and the sizes below.
"""

import os
import random
from itertools import cycle

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
TEXTS = 4  # in a request
TEXT_WORDS = 100  # in a text

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


def invoke_factory(endpoint_name=None):
    """Once in each worker process. A certificate of your own authority: verify="/path/to/ca.pem"."""
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    return client.embeddings


def payload_factory():
    """Texts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=TEXT_WORDS)) for _ in range(100)])

    def build():
        fresh = [f"{os.urandom(8).hex()} {next(texts)}" for _ in range(TEXTS)]
        return {"model": MODEL, "input": fresh, "encoding_format": "float"}

    return {"pre_computed": False, "input": build}
