"""Chat completions as streams, of any server with an OpenAI-compatible API: TTFT, ITL, tokens per second.

Works with vLLM, SGLang, TGI, DJL, Ollama; on EKS, HyperPod, OpenShift, EC2. Set the address, the model and the lengths
below. Use the address of a load balancer, or run `benchmark` in the cluster and use an address there: `kubectl
port-forward` is a single process, which would be the bottleneck.
"""

import os
import random
from itertools import cycle

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
PROMPT_WORDS = 200  # of a prompt; a word is a token to most tokenizers
MAX_TOKENS = 128  # of an answer, at most
# Models stop where they like. For answers of one length: {"ignore_eos": True} on vLLM and SGLang, or
# {"min_tokens": MAX_TOKENS} on vLLM.
MORE = {}

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


def invoke_factory(endpoint_name=None):
    """Once in each worker process. A certificate of your own authority: verify="/path/to/ca.pem"."""
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    return client.stream_chat  # each piece as it comes, then the server's token counts


def payload_factory():
    """Prompts that differ from their first word on, in every wave: none comes from the server's prefix cache."""
    chosen = random.Random(0)
    texts = cycle([" ".join(chosen.choices(WORDS, k=PROMPT_WORDS)) for _ in range(100)])

    def build():
        prompt = f"{os.urandom(8).hex()} {next(texts)}"
        messages = [{"role": "user", "content": prompt}]
        # the client would add "stream" by itself; aiperf looks for it here
        return {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": messages, "stream": True, **MORE}

    return {"pre_computed": False, "input": build}
