"""Recorded conversations, sent to any OpenAI-compatible chat API: `benchmark URL --conversations FILE` runs this file.

FILE is ShareGPT JSON, OpenAI messages as JSON lines, a trace of Mooncake's or of agents, BurstGPT's or Azure's CSV. The
times between turns are those of the recording, or else `--think-time`. The key is not a setting: set BENCHMARK_API_KEY
or OPENAI_API_KEY, or BENCHMARK_HEADERS, a JSON object of headers.
"""

import json
import os

from inference_benchmarker import Turn
from inference_benchmarker.clients import OpenAIClient
from inference_benchmarker.recording.conversations.prompts import RecordedConversation

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
BASE_PATH = "/v1"  # what stands before /chat/completions there
QUERY = ""  # what follows it, as Azure's api-version=2024-10-21
MODEL = "demo"  # a name that URL/v1/models lists; empty: the server's own
OUTPUT_TOKENS = ""  # the most an answer may have; empty: as many as the recorded one
HISTORY = "live"  # how a turn tells the answers before it: as they came; with-reasoning; recorded: as in the file
SESSION_HEADER = ""  # the name of a header that tells the server which conversation a request is of
SEED = "0"  # of the words in place of blocks and lengths: the same seed, the same words
SALT = ""  # a word before the first message, which no cache has: `--cache fresh` draws a new one for each run
MORE = {}  # what else a request says: {"ignore_eos": true} on vLLM and SGLang makes every answer as long as it may be
CONTINUOUS_USAGE = False  # true: vLLM and SGLang tell the tokens of each piece, and ITL is per token
VERIFY = True  # false: whatever certificate the server shows


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
    if HISTORY not in ("live", "with-reasoning", "recorded"):
        raise ValueError(f"HISTORY must be live, with-reasoning or recorded, not {HISTORY!r}")

    def session(number, recorded=None):
        """`recorded` is a conversation of the file; without a file there is a made-up one, to try the server with."""
        talk = RecordedConversation(recorded or EXAMPLE, SEED, live=HISTORY != "recorded", salt=SALT)
        for turn in talk:
            limit = int(OUTPUT_TOKENS or turn.output_tokens or 128)
            request = {"max_tokens": limit, "messages": turn.messages, **counted(), **MORE}
            request |= {"model": MODEL} if MODEL else {}
            request |= {"tools": turn.tools} if turn.tools else {}
            payload = (f"{SEED}-{number}", request) if SESSION_HEADER else request
            answer = yield Turn(payload, think_s=turn.think_s, left=turn.left)
            talk.hear("".join(answer.pieces) if HISTORY == "with-reasoning" else answer.text)

    return session


def counted():
    return {"stream_options": {"include_usage": True, "continuous_usage_stats": True}} if CONTINUOUS_USAGE else {}


EXAMPLE = {
    "id": "example",
    "turns": [
        {"messages": [{"role": "user", "content": "What is a bee?"}], "out": 20},
        {"messages": [{"role": "user", "content": "How long does it live?"}], "out": 10, "think_s": 0.1},
    ],
}
