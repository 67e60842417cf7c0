"""An LLM engine on your own machine, started with the flags that are varied, and ended after the measurement.

For `benchmark capacity --vary max_num_seqs=64,256 --price gpu=2.5`: which setting of the engine makes tokens cheapest?
Each name that is varied is a flag of COMMAND: max_num_seqs=64 becomes --max-num-seqs 64, and =true a flag alone. The
command must start a server with an OpenAI-compatible API: vLLM's, SGLang's, llama.cpp's. Unchanged, it is the embedded
endpoint. canary_factory has the questions by which the tool finds a setting that answers worse.
"""

import http.client
import os
import random
import socket
import subprocess
import sys
import time

from inference_benchmarker.clients import OpenAIClient

COMMAND = []  # of the server, as ["vllm", "serve", "Qwen/Qwen2.5-0.5B"]; empty: the embedded endpoint
GPUS_FLAG = ""  # the flag of COMMAND that takes the number of GPUs, as --tensor-parallel-size; empty: none
START_S = 900  # in which it must answer
MODEL = ""  # a name that URL/v1/models lists; empty: the server's own
INPUT_TOKENS = 512  # of a prompt; a word is a token to most tokenizers
OUTPUT_TOKENS = 128  # the most an answer may have
CANARY_TOKENS = 128  # the most an answer to a fixed question may have

EMBEDDED = (sys.executable, "-m", "inference_benchmarker.cli", "endpoint", "--llm", "8b-h100")
WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand
part place case week company system program question work government number night point home water room mother area
""".split()
QUESTIONS = (
    "Why does a bicycle stay upright while it moves?",
    "List the first fifteen prime numbers.",
    "Translate into French: The train to the coast leaves at seven in the morning.",
    "What is 17 times 23? Show each step.",
    "Write a Python function that reverses the words of a sentence.",
    "Name the planets of the solar system, from the Sun outwards, with a fact on each.",
)


def endpoint_factory(gpus: int = 1, env=None, **flags):
    """Start the engine, and yield its address. A process that is started here ends with the search in any case."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*(COMMAND or EMBEDDED), "--port", str(port), *as_flags(flags)]
    if GPUS_FLAG:
        command += [GPUS_FLAG, str(gpus)]
    environment = {**os.environ, **{key: str(value) for key, value in (env or {}).items()}}
    server = subprocess.Popen(command, env=environment, stdout=sys.stderr)
    try:
        wait_for(server, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def as_flags(flags):
    """max_num_seqs=64 as --max-num-seqs 64; true is a flag alone, and false no flag."""
    names = {f"--{name.replace('_', '-')}": value for name, value in flags.items() if value is not False}
    return [part for name, value in names.items() for part in ([name] if value is True else [name, str(value)])]


def wait_for(server, port):
    deadline = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < deadline:
        if is_ready(port):
            return
        time.sleep(0.2)
    raise RuntimeError(f"the engine ended ({server.poll()}), or did not list its models within {START_S} s")


def is_ready(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status == 200
    except OSError:  # it does not listen yet
        return False
    finally:
        connection.close()


def invoke_factory(endpoint_name=None):
    if endpoint_name is None:
        raise ValueError("no server was given: name it with --endpoint-name http://HOST:PORT")
    return OpenAIClient(f"{endpoint_name}/v1").stream_chat


def payload_factory():
    draw = random.Random()  # without a seed: no prompt is ever sent twice, so none comes from a prefix cache
    return {
        "pre_computed": False,
        "input": lambda: request(" ".join(draw.choices(WORDS, k=INPUT_TOKENS)), OUTPUT_TOKENS),
    }


def canary_factory(seed):
    """The fixed questions that each setting answers before its search, each twice, with its likeliest tokens."""
    return [{**request(question, CANARY_TOKENS), "temperature": 0, "seed": seed} for question in QUESTIONS]


def request(prompt, tokens):
    model = {"model": MODEL} if MODEL else {}
    return {**model, "messages": [{"role": "user", "content": prompt}], "max_tokens": tokens, "stream": True}
