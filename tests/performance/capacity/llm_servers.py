"""Searches in sessions against other people's servers: ``python -m tests.performance.capacity.llm_servers``.

llama.cpp's server with a model of random weights, and the mocker of NVIDIA's Dynamo: a search each, then two long waves
with other sessions, at the ends of the interval. The share of turns over the limit must be at most what is allowed at
the lower end and at least that at the upper one, within two standard errors. Servers get environments of their own, as
those of ``real_servers`` do.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.performance import server_environments as made
from tests.performance.figures import Figure, at_least, below, machine, table
from tests.performance.measure import REPOSITORY, load
from tests.performance.server_catalogue import LLAMA, MODEL
from tests.performance.server_process import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.performance.measure import Wave

ALLOWED = 0.05
BLOCK_S = 20.0
_SESSIONS = (
    *("--turns", "uniform:2..4", "--think-time", "exponential:1s", "--input-tokens", "30", "--output-tokens", "48"),
    *("--model", MODEL, "--set", 'MORE={"ignore_eos": true, "temperature": 0}'),
)
DYNAMO = Server(
    "dynamo.mocker",
    lambda: made.version("dynamo", "ai-dynamo"),
    lambda port, folder: [
        made.environment("dynamo") / "python",
        Path(__file__).parents[1] / "served" / "dynamo_mocker.py",
        str(port),
        made.tiny_model(),
        folder,
    ],
    f"/v1/models/{MODEL}",
    (),
)
SERVERS = {"llama.cpp": (LLAMA, 0.1), "dynamo": (DYNAMO, 0.3)}
"""Each with the longest time to the first token that a twentieth of the turns may exceed."""


@dataclass(frozen=True, slots=True)
class Over:
    """The share of turns over the limit, its standard error, and how many turns there were."""

    share: float
    error: float
    turns: int


def over(wave: Wave, limit_s: float) -> Over:
    """By blocks of 20 s by when turns were due: turns near one another wait for the same others."""
    rows = wave.requests
    ttft_ns = (rows["first_token"] - rows["sent"]).astype(float).fillna(np.inf)
    slow = (rows["outcome"] != "ok") | (ttft_ns > limit_s * 1e9)
    blocks = slow.groupby((rows["due"] - rows["due"].min()) // int(BLOCK_S * 1e9)).agg(["sum", "count"])
    share = blocks["sum"].sum() / blocks["count"].sum()
    rest = blocks["sum"] - share * blocks["count"]
    error = math.sqrt(float((rest**2).sum()) * len(blocks) / (len(blocks) - 1)) / blocks["count"].sum()
    return Over(float(share), error, len(rows))


def searched(name: str, url: str, limit_s: float, options: argparse.Namespace) -> Iterator[Figure]:
    """A search, and the two waves."""
    limit = ("--slo", f"ttft.p95<{1000 * limit_s:g}ms")
    with tempfile.TemporaryDirectory(prefix="llm_servers_") as folder:
        began = time.monotonic()
        search = ("--in", "sessions", *limit, *_SESSIONS, "--time", f"{options.time:g}", "--seed", str(options.seed))
        _command("capacity", url, *search, folder=folder)
        found = json.loads(next(Path(folder).glob("*/capacity.json")).read_text())
        print(f"{name}: {found['headline']} ({time.monotonic() - began:.0f} s)", flush=True)
        if not found.get("interval"):
            return
        yield Figure("sessions a second", found["rate"])
    for end, target in (("low", below), ("high", at_least)):
        rate = found["interval"][end]
        with tempfile.TemporaryDirectory(prefix="llm_servers_") as folder:
            lasting = ("--obs-time", f"{options.wave:g}", "--warmup", "20", "--seed", str(options.seed + 1))
            _command(url, *_SESSIONS, *lasting, "--client-rps", f"{rate:.6g}", folder=folder)
            seen = over(load(next(Path(folder).glob("*/summary.json")).parent, 0.0, 0), limit_s)
        print(f"{name}: at {rate:.4g}/s {seen.share:.2%} ± {seen.error:.2%} of {seen.turns:,} turns", flush=True)
        yield Figure(f"the {end} end", rate, "/s")
        spread = 200 * seen.error if end == "low" else -200 * seen.error
        yield Figure(f"over the limit there, of {seen.turns:,}", 100 * seen.share, "%", target(100 * ALLOWED + spread))


def _command(*words: str, folder: str) -> None:
    command = [sys.executable, "-m", "inference_benchmarker.cli", *words, "--quiet", "--output-dir", folder]
    subprocess.run(command, cwd=REPOSITORY, check=False, stdout=subprocess.DEVNULL)


def main() -> None:
    """The command line; the exit code is 1 where a figure falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", nargs="+", default=list(SERVERS), choices=SERVERS)
    parser.add_argument("--time", type=float, default=300.0, help="seconds of load of a search (default: 300)")
    parser.add_argument("--wave", type=float, default=600.0, help="seconds of each wave (default: 600)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(machine(), end="\n\n", flush=True)
    met = True
    for name in options.servers:
        server, limit_s = SERVERS[name]
        with tempfile.TemporaryDirectory(prefix="llm_servers_") as folder, server.running(Path(folder, "s")) as running:
            title = f"{server.name} {server.version()}, ttft.p95 < {1000 * limit_s:g} ms"
            figures: list[Figure] = list(searched(name, f"http://127.0.0.1:{running.port}/v1", limit_s, options))
        print(table(title, figures), end="\n\n", flush=True)
        met &= bool(figures) and all(figure.verdict != "short" for figure in figures)
    raise SystemExit(0 if met else 1)


if __name__ == "__main__":
    main()
