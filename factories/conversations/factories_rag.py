"""Questions on documents (RAG): sessions on the same document share its text as a prefix; some documents are popular.

Measures TTFT by turn: a prefix cache helps the later turns, and the first turns on a document that it holds.
`--client-rps` counts sessions. Works with vLLM, SGLang, TGI, DJL; on EKS, HyperPod, OpenShift, EC2.
"""

import os
import random
from functools import cache

from inference_benchmarker import Turn
from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
DOCUMENTS = 20
DOCUMENT_WORDS = 2000  # a word is a token to most tokenizers
ZIPF = 1.1  # the n-th document is asked for n**-ZIPF times as often as the first
TURNS = 3
MAX_TOKENS = 32  # of each answer, at most
THINK_S = 2.0

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    return OpenAIClient(f"{URL}/v1", api_key=key).stream_chat


def session_factory():
    weights = [(place + 1) ** -ZIPF for place in range(DOCUMENTS)]

    def session(number):
        chosen = random.Random(number)
        (document,) = chosen.choices(range(DOCUMENTS), weights)
        messages = [{"role": "system", "content": text_of(document)}]
        for _ in range(TURNS):
            messages.append({"role": "user", "content": " ".join(chosen.choices(WORDS, k=20))})
            payload = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": list(messages)}
            answer = yield Turn(payload, think_s=chosen.expovariate(1 / THINK_S))
            messages.append({"role": "assistant", "content": answer.text})

    return session


@cache
def text_of(document):
    return " ".join(random.Random(document).choices(WORDS, k=DOCUMENT_WORDS))
