"""Requests of the sizes in a trace: input and output tokens from a CSV file, one request per row.

Measures TTFT, ITL and tokens under the mix of sizes that real users send. For vLLM, SGLang, TGI, DJL, Ollama and any
other server with an OpenAI-compatible API. With --replay FILE each request has the sizes of its row, so rate and sizes
are those of the recording: Azure's traces, Mooncake's, or other columns named below. Without it, TRACE_FILE=FILE in the
environment names a CSV file with a header line, whose rows are sent in their order at the wave's rate; without either,
sizes are made up. Each word is one token, as in factories_generated_prompts.py; the report shows what the server
counted.
"""

import csv
import os
import random
from itertools import islice
from pathlib import Path

from inference_benchmarker.clients import OpenAIClient

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address
FILE = os.environ.get("TRACE_FILE")  # with a request a row
INPUT_COLUMN = "ContextTokens"  # of TRACE_FILE, and of a recording
OUTPUT_COLUMN = "GeneratedTokens"  # the same
COLUMNS = [(INPUT_COLUMN, OUTPUT_COLUMN), ("input_length", "output_length")]  # of a recording: the first that it has
ROWS = 2000  # of the file, at most: all their prompts are held in memory
MODEL = "demo"  # a name that URL/v1/models lists
MORE = {}  # what else a request says: {"ignore_eos": True} makes vLLM and SGLang answer with all the tokens of the row
WORDS = "time year people way day man thing life child world school state family student group country problem".split()


def invoke_factory(endpoint_name=None):
    key = os.environ.get("BENCHMARK_API_KEY") or os.environ.get("OPENAI_API_KEY")
    client = OpenAIClient(f"{URL}/v1", api_key=key)
    draw = random.Random()  # without a seed: no worker and no wave draws as another does

    def invoke(payload):
        return client.stream_chat(begun_anew(draw, payload))

    return invoke


def begun_anew(draw, payload):
    """A row that is sent again begins with other words, so that it does not come from the server's prefix cache."""
    [message] = payload["messages"]
    *begin, rest = message["content"].split(" ", 8)
    text = " ".join([*draw.choices(WORDS, k=len(begin)), rest])
    return {**payload, "messages": [{**message, "content": text}]}


def payload_factory():
    if FILE:
        draw = random.Random(0)  # the same payloads in every worker
        return {"pre_computed": True, "input": [chat(draw, *size) for size in of_file(FILE)]}
    draw = random.Random()

    def build(row=None):
        return chat(draw, *(made_up(draw) if row is None else of_row(row)))

    return {"pre_computed": False, "input": build}


def of_row(row):
    """The sizes of a recorded request; one that had no answer is asked for a token."""
    for columns in COLUMNS:
        if all(row.get(name) is not None for name in columns):
            return [max(1, int(row[name])) for name in columns]
    raise ValueError(f"a row of the recording has none of {COLUMNS}, but {list(row)}: name its columns at the top")


def chat(draw, tokens_in, tokens_out):
    text = " ".join(draw.choices(WORDS, k=tokens_in))
    return {"model": MODEL, **MORE, "max_tokens": tokens_out, "messages": [{"role": "user", "content": text}]}


def of_file(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if missing := [name for name in (INPUT_COLUMN, OUTPUT_COLUMN) if name not in (reader.fieldnames or [])]:
            raise ValueError(
                f"{path} has no {', '.join(missing)}, but {reader.fieldnames}: name its columns at the top"
            )
        sizes = [(int(row[INPUT_COLUMN]), int(row[OUTPUT_COLUMN])) for row in islice(reader, ROWS)]
    asked = [size for size in sizes if min(size) > 0]  # a request without an answer failed when it was recorded
    if not asked:
        raise ValueError(f"{path} has no row with tokens in both {INPUT_COLUMN} and {OUTPUT_COLUMN}")
    return asked


def made_up(draw):
    """Mostly a small request and now and then a large one, as traces of chats have them."""
    return round(min(draw.lognormvariate(5, 1), 4000)) + 1, round(min(draw.lognormvariate(3, 0.7), 400)) + 1
