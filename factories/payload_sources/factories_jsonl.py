"""Payloads from a JSONL file: each line is the body of a chat completion, sent in the order of the file.

Measures TTFT, ITL and tokens with requests of your own, for example from a log. For vLLM, SGLang, TGI, DJL, Ollama and
any other server with an OpenAI-compatible API. PROMPTS_FILE=FILE in the environment names the file, with lines such as
{"messages": [{"role": "user", "content": "Why is the sky blue?"}]}; without it, a few questions are sent. After the
last line the first is sent again, and the server may answer it from its prefix cache: give a line for each request.
"""

import json
import os
from pathlib import Path

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
FILE = os.environ.get("PROMPTS_FILE")  # with a request a line
MODEL = "demo"  # of a line that names none
MAX_TOKENS = 64  # of an answer, where a line does not say
DEFAULTS = {"model": MODEL, "max_tokens": MAX_TOKENS}
QUESTIONS = ["Why is the sky blue?", "How does a clock work?", "What do bees eat?", "Who invented bread?"]


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    return client.stream_chat


def payload_factory():
    return {"pre_computed": True, "input": of_file(FILE) if FILE else [chat(question) for question in QUESTIONS]}


def chat(question):
    return {**DEFAULTS, "messages": [{"role": "user", "content": question}]}


def of_file(path):
    with Path(path).open(encoding="utf-8") as file:
        bodies = [body(path, number, line) for number, line in enumerate(file, start=1) if line.strip()]
    if not bodies:
        raise ValueError(f"PROMPTS_FILE is {path}, which is empty: expected a JSON object a line")
    return bodies


def body(path, number, line):
    try:
        return {**DEFAULTS, **json.loads(line)}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}, line {number}: expected a JSON object, found {line.strip()[:60]!r}") from error
