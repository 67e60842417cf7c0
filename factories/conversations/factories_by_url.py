"""Conversations with any OpenAI-compatible chat API, by URL: `benchmark URL --turns 5` runs this file.

Measures TTFT, ITL and latency by turn, and the duration of conversations. `--client-rps` counts conversations. The time
between turns is `--think-time`. Works with vLLM, SGLang, TGI, DJL, Ollama, llama.cpp, gateways and OpenAI itself. The
key is not a setting: set BENCHMARK_API_KEY or OPENAI_API_KEY, or BENCHMARK_HEADERS, a JSON object of headers.
"""

import json
import os
import random
from functools import lru_cache

from inference_benchmarker import Turn
from inference_benchmarker.clients import OpenAIClient
from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
BASE_PATH = "/v1"  # what stands before /chat/completions there
QUERY = ""  # what follows it, as Azure's api-version=2024-10-21
MODEL = "demo"  # a name that URL/v1/models lists; empty: the server's own
TURNS = "5"  # of a conversation; or uniform:3..8, or geometric:4
INPUT_TOKENS = 200  # that each turn adds; a word is a token to most tokenizers
OUTPUT_TOKENS = 128  # the most an answer may have
SHARED_PREFIX = ""  # a system prompt that conversations share: its tokens, or 4000:groups=20:zipf=1.1
HISTORY = "live"  # how a turn tells the answers before it: as they came; with-reasoning; recorded: made-up ones
SESSION_HEADER = ""  # the name of a header that tells the server which conversation a request is of
SEED = "0"  # of all words and numbers of turns: the same seed, the same conversations
SALT = ""  # a word before the first message, which no cache has: `--cache fresh` draws a new one for each run
WARM = ""  # true: each shared prefix is sent once before the wave, so that the server has it: `--cache warm`
MORE = {}  # what else a request says: {"ignore_eos": true} on vLLM and SGLang makes every answer OUTPUT_TOKENS long
CONTINUOUS_USAGE = False  # true: vLLM and SGLang tell the tokens of each piece, and ITL is per token
VERIFY = True  # false: whatever certificate the server shows

WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program question work government number night point home water room mother area
money story fact month lot right study book eye job word business issue side kind head house service friend father
power hour game line end member law car city community name team minute body information back parent face level
""".split()


def invoke_factory(endpoint_name=None):
    """Once in each worker process."""
    client = OpenAIClient(
        URL + BASE_PATH,
        api_key=os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY"),
        headers=json.loads(os.environ.get("BENCHMARK_HEADERS", "{}")),
        query=QUERY,
        verify=VERIFY,
    )
    if not SESSION_HEADER:
        return client.stream_chat

    def invoke(payload):
        session, request = payload
        return client.stream_chat(request, {SESSION_HEADER: session})

    return invoke


def session_factory():
    turns = TurnCount.parse(TURNS)
    prefix = SharedPrefix.parse(SHARED_PREFIX) if SHARED_PREFIX else None
    if HISTORY not in ("live", "with-reasoning", "recorded"):
        raise ValueError(f"HISTORY must be live, with-reasoning or recorded, not {HISTORY!r}")

    def session(number):
        chosen = random.Random(f"{SEED}/{number}")  # the same conversation for a number, in whichever worker
        messages = []
        if prefix is not None:
            group = prefix.group(chosen.random())
            messages.append({"role": "system", "content": salted(shared(group, prefix.tokens))})
        for left in reversed(range(turns.draw(chosen.random()))):
            words = " ".join(chosen.choices(WORDS, k=INPUT_TOKENS))
            messages.append({"role": "user", "content": words if messages else salted(words)})
            request = {"max_tokens": OUTPUT_TOKENS, "messages": list(messages), **counted(), **MORE}
            request |= {"model": MODEL} if MODEL else {}
            answer = yield Turn((f"{SEED}-{number}", request) if SESSION_HEADER else request, left=left)
            recorded = " ".join(chosen.choices(WORDS, k=OUTPUT_TOKENS))
            heard = answer.text if HISTORY == "live" else "".join(answer.pieces)
            messages.append({"role": "assistant", "content": recorded if HISTORY == "recorded" else heard})

    return session


def counted():
    return {"stream_options": {"include_usage": True, "continuous_usage_stats": True}} if CONTINUOUS_USAGE else {}


def warm_factory():
    """The requests that are sent once before the wave: of each shared prefix one."""
    prefix = SharedPrefix.parse(SHARED_PREFIX) if SHARED_PREFIX and WARM else None
    return [warming(group, prefix.tokens) for group in range(prefix.groups)] if prefix else []


def warming(group, tokens):
    first = {"role": "system", "content": salted(shared(group, tokens))}
    request = {"max_tokens": 1, "messages": [first, {"role": "user", "content": "time"}], **MORE}
    request |= {"model": MODEL} if MODEL else {}
    return (f"{SEED}-warm-{group}", request) if SESSION_HEADER else request


def canary_factory(seed):
    """The questions of `--expect canary`: asked alone, and again under load, where each has its own answer."""
    codes = ["-".join(random.Random(f"{seed}/{number}").choices(WORDS, k=4)) + f"-{number}" for number in range(6)]
    return [canary(f"Repeat this code exactly, and write nothing else: {code}") for code in codes]


def canary(text):
    request = {"max_tokens": 64, "temperature": 0, "messages": [{"role": "user", "content": text}], **MORE}
    request |= {"model": MODEL} if MODEL else {}
    return (f"{SEED}-canary", request) if SESSION_HEADER else request


def salted(text):
    return f"{SALT} {text}" if SALT else text


@lru_cache(maxsize=1000)
def shared(group, tokens):
    return " ".join(random.Random(f"{SEED}/prefix/{group}").choices(WORDS, k=tokens))
