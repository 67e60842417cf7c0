"""Chats, completions or embeddings of any server with an OpenAI-compatible API: `benchmark URL` runs this file.

Measures TTFT, ITL and the tokens of the server's usage; for embeddings, and with STREAM off, the time of whole answers.
Works with vLLM, SGLang, TGI, DJL, Ollama, llama.cpp, gateways and OpenAI itself. The key is not a setting: set
BENCHMARK_API_KEY or OPENAI_API_KEY, or BENCHMARK_HEADERS, a JSON object of headers.
"""

import json
import os
import random
from pathlib import Path

from inference_benchmarker.clients import OpenAIClient
from inference_benchmarker.plan.media import Audio, Images, Media

URL = os.environ.get("BENCHMARK_DEMO_URL", "http://127.0.0.1:8080")  # the server's address, without /v1
BASE_PATH = "/v1"  # what stands before /chat/completions there
QUERY = ""  # what follows it, as Azure's api-version=2024-10-21
API = "chat"  # or completions, or embeddings
MODEL = "demo"  # a name that URL/v1/models lists; empty: the server's own
STREAM = True  # false: answers in one piece
PROMPT = None  # a text to send each time; without one, words are drawn for each request
INPUT_TOKENS = 200  # of such a prompt; a word is a token to most tokenizers
OUTPUT_TOKENS = 128  # the most an answer may have; 0: as the server likes
IMAGE = ""  # images in each request, made anew: 512x512, or 512x512:2 for two, 512x512:2:share=30%
AUDIO = ""  # a sound in each request, made anew: 5s, or 5s:share=30%
SEED = "0"  # of images and sounds: the same seed, the same ones
BODY = None  # a request of your own, as JSON, instead of all that
BODY_FILE = None  # a file of such; of a .jsonl, each line in turn
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
    whole = {"chat": client.chat, "completions": client.completions, "embeddings": client.embeddings}
    streams = {"chat": client.stream_chat, "completions": client.stream_completions}
    return streams[API] if is_stream() else whole[API]


def is_stream():
    return STREAM and API != "embeddings"


def payload_factory():
    if BODY is not None or BODY_FILE:
        return {"pre_computed": True, "input": [request(body) for body in given()]}
    if IMAGE or AUDIO:
        return with_media(Media(Images.parse(IMAGE) if IMAGE else None, Audio.parse(AUDIO) if AUDIO else None, SEED))
    if PROMPT is not None:
        return {"pre_computed": True, "input": [request(asking(PROMPT))]}
    draw = random.Random()  # without a seed: no prompt is ever sent twice, so none comes from a prefix cache
    return {"pre_computed": False, "input": lambda: request(asking(" ".join(draw.choices(WORDS, k=INPUT_TOKENS))))}


def with_media(media):
    """Requests with images and sounds, as the bytes that are sent: so much text takes its time to become JSON."""
    if API != "chat":
        raise ValueError("images and audio are for chats")

    def build(*, number=0):
        words = PROMPT or " ".join(random.Random(f"{SEED}/{number}").choices(WORDS, k=INPUT_TOKENS))
        content = [*media.parts(number), {"type": "text", "text": words}]
        usage = {"stream_options": {"include_usage": True}} if is_stream() else {}
        body = {**asking(""), "messages": [{"role": "user", "content": content}]}
        return json.dumps({**usage, **request(body)}, separators=(",", ":")).encode()

    return {"pre_computed": False, "input": build, "label": media.label}


def canary_factory(seed):
    """The questions of `--expect canary`: asked alone, and again under load, where each has its own answer."""
    if API == "embeddings":
        raise ValueError("embeddings have no text that could be another's; canaries are for chats and completions")
    codes = ["-".join(random.Random(f"{seed}/{number}").choices(WORDS, k=4)) + f"-{number}" for number in range(6)]
    text = "Repeat this code exactly, and write nothing else: {}"
    return [request({**asking(text.format(code)), "max_tokens": 64, "temperature": 0}) for code in codes]


def asking(prompt):
    if API == "embeddings":
        return {"input": prompt, "encoding_format": "float"}
    limit = {"max_tokens": OUTPUT_TOKENS} if OUTPUT_TOKENS else {}
    text = {"messages": [{"role": "user", "content": prompt}]} if API == "chat" else {"prompt": prompt}
    return {**limit, **text}


def request(body):
    """The client would add "stream" by itself; aiperf looks for it here."""
    counted = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}} if CONTINUOUS_USAGE else {}
    stream = {"stream": True, **counted} if is_stream() else {}
    return {**({"model": MODEL} if MODEL else {}), **stream, **MORE, **body}


def given():
    """The requests of BODY or BODY_FILE."""
    if BODY is not None:
        return [read("BODY", BODY)]
    text = Path(BODY_FILE).read_text(encoding="utf-8")
    if not BODY_FILE.endswith((".jsonl", ".ndjson")):
        return [read(BODY_FILE, text)]
    lines = enumerate(text.splitlines(), start=1)
    bodies = [read(f"{BODY_FILE}, line {number}", line) for number, line in lines if line.strip()]
    if not bodies:
        raise ValueError(f"{BODY_FILE} is empty: expected a JSON object a line")
    return bodies


def read(where, text):
    try:
        return {**json.loads(text)}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: expected a JSON object, found {text.strip()[:60]!r}") from error
