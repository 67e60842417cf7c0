"""A program that stands in for aiperf, and a chat endpoint to ask."""

from __future__ import annotations

import os
from typing import Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from server_capacity.aiperf.installation import Installation

NOBODY = "http://127.0.0.1:9"

CHAT = """
import json

from sender import post


def invoke_factory():
    def invoke(body):
        return post(0, "/v1/chat/completions", json.dumps(body))
    return invoke


def payload_factory():
    print("from the user's code")
    messages = [{"role": "user", "content": "1 2 3"}]
    return {"pre_computed": False, "input": lambda: {"model": "demo", "messages": messages, "stream": True}}
"""

# Does as aiperf does where it matters: tells of each request as it is over, and in the end of them all.
STAND_IN = """
import json, os, pathlib, subprocess, sys, time
words = sys.argv[2:]
if words == ["--help"]:
    sys.exit(print("│ --url -u  Where to. --behaviour  How, as in --tokenizer FOLDER."))
flags = {word: words[at + 1] if at + 1 < len(words) else "" for at, word in enumerate(words)}
folder = pathlib.Path(flags["--artifact-dir"])
behaviour = flags.get("--behaviour", "")
key = flags.get("--api-key", "")
print("sent with the key", key, flush=True)
(folder / "cmdline.txt").write_bytes(subprocess.check_output(["ps", "-ww", "-o", "args=", "-p", str(os.getpid())]))
(folder / "key_length.csv").write_text(str(len(key)))
(folder / "environment.csv").write_text(json.dumps([n for n in os.environ if n.startswith(("HF_", "BENCHMARK_API"))]))
if behaviour == "fails":
    sys.exit("the tokenizer of " + key + " is not there")
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
now = int(time.time() * 1e9)
record = {"metadata": {"request_start_ns": now, "request_end_ns": now + 10**9, "was_cancelled": False}, "metrics": {}}
with (folder / "profile_export.jsonl").open("w") as file:
    for _ in range(4):
        print(json.dumps({**record, "key": key}), file=file, flush=True)
if behaviour == "hangs":
    time.sleep(600)
(folder / "profile_export_aiperf.json").write_text(
    json.dumps({"aiperf_version": "stand-in", "cli": key, "urls": [flags.get("--url")], "number": 1234})
)
"""


def aiperf_here() -> str:
    """The real one's path."""
    try:
        return str(Installation.find(os.environ).script)
    except BenchmarkError as error:
        pytest.skip(str(error))


SECOND = 1_000_000_000

STATISTICS = {
    "aiperf_version": "0.13.0",
    "request_latency": {"unit": "ms", "avg": 20.0, "p50": 19.0, "p90": 21.0, "p95": 22.0, "p99": 23.0, "max": 24.0},
    "time_to_first_token": {"unit": "ms", "avg": 2.0, "p50": 1.5},
    "inter_chunk_latency": {"unit": "ms", "avg": 1.0, "max": 9.0},
    "inter_token_latency": {"unit": "ms", "avg": 1.1},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 39.5},
    "total_isl": {"unit": "tokens", "avg": 6.0},
    "total_osl": {"unit": "tokens", "avg": 60.0},
}


def record(start: float, end: float, error: dict[str, Any] | None = None, phase: str = "profiling") -> dict[str, Any]:
    times = {"request_start_ns": int(start * SECOND), "request_end_ns": int(end * SECOND)}
    return {"metadata": {"benchmark_phase": phase, "was_cancelled": False, **times}, "metrics": {}, "error": error}
