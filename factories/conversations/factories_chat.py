"""Chats of several turns with any OpenAI-compatible server: each turn sends everything that was said before it.

Measures TTFT, ITL and latency by turn, and the duration of whole chats. `--client-rps` counts chats. Works with vLLM,
SGLang, TGI, DJL, Ollama; on EKS, HyperPod, OpenShift, EC2. Set the address, the model and the lengths below.
"""

import os
import random

from inference_benchmarker import Turn
from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
MODEL = "demo"  # a name that URL/v1/models lists
LEAST_TURNS, MOST_TURNS = 2, 6
QUESTION_WORDS = 40  # of each turn; a word is a token to most tokenizers
MAX_TOKENS = 32  # of each answer, at most
THINK_S = 1.0  # a person reads and types: the mean of an exponential time

WORDS = ("time", "year", "people", "way", "day", "thing", "life", "child", "world", "school", "state", "family")


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    return OpenAIClient(f"{URL}/v1", api_key=key).stream_chat


def session_factory():
    salt = os.urandom(4).hex()  # no chat begins as one of an earlier wave, whose answers the server may have cached

    def session(number):
        chosen = random.Random(number)  # the same chat for the same number, in whichever worker
        messages = [{"role": "system", "content": f"You are chat {number} of {salt}."}]
        for _ in range(chosen.randint(LEAST_TURNS, MOST_TURNS)):
            messages.append({"role": "user", "content": " ".join(chosen.choices(WORDS, k=QUESTION_WORDS))})
            payload = {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": list(messages)}
            answer = yield Turn(payload, think_s=chosen.expovariate(1 / THINK_S))
            messages.append({"role": "assistant", "content": answer.text})

    return session
