"""What the fast clients cost: SageMakerClient beside boto3, and token streams through OpenAIClient.

CPU is user and system time. boto3 and SageMakerClient take turns in closed loops without a harness, so that both
meet the same machine; waves give what is left of the schedule at 1,000 requests a second, and the tokens that a
second of the worker's CPU reads. A stream is 20 tokens: the first after 20 ms, then one each 5 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from statistics import median

from tests.performance import measure
from tests.performance.figures import Figure, Program, at_least, below
from tests.performance.stamp_server import StampServer

FACTORIES = measure.HERE / "factories_clients.py"
TURNS = 3
RATE = 1_000
STREAM_RATES = (100, 500)
TOKENS = 20
FIRST_TOKEN_MS = 20.0
GAP_MS = 5.0
WARMUP_S = 1


def loop_us(client: str, url: str, seconds: float) -> float:
    """CPU of one request in a closed loop of 32, in microseconds."""
    command = [sys.executable, "-m", "tests.performance.bare_loop", str(FACTORIES), "--seconds", f"{seconds:g}"]
    environment = {**measure.environment(url, 1000), "BENCHMARK_PERF_CLIENT": client}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loop = json.loads(done.stdout)
    return float(1e6 * loop["cpu_s"] / loop["requests"])


def beside_boto3(seconds: float) -> list[Figure]:
    """Requests per CPU second of both, the median of their turns."""
    with StampServer() as server:
        turns = [
            (loop_us("boto3", server.url, seconds), loop_us("sagemaker", server.url, seconds)) for _ in range(TURNS)
        ]
    theirs, ours = (median(column) for column in zip(*turns, strict=True))
    return [
        Figure("boto3: CPU", theirs, "us/request"),
        Figure("SageMakerClient: CPU", ours, "us/request"),
        Figure("SageMakerClient: requests per CPU second, times boto3's", theirs / ours, "", at_least(2.5)),
    ]


def wave(client: str, rate: int, seconds: float, server: StampServer) -> measure.Wave:
    """A wave of one worker with this client."""
    os.environ["BENCHMARK_PERF_CLIENT"] = client
    flags = ("--client-rps", str(rate), "--obs-time", f"{seconds:g}", "--warmup", str(WARMUP_S))
    return measure.run(FACTORIES, server.url, round(rate * seconds) + 2 * rate * WARMUP_S, *flags)


def on_time(seconds: float) -> list[Figure]:
    """SageMakerClient at 1,000 requests a second on one worker."""
    with StampServer(delay_ms=20) as server:
        found = wave("sagemaker", RATE, seconds, server)
    return [
        Figure(f"SageMakerClient at {RATE:,}/s: lag p99", measure.percentile(found.lag_ms, 99), "ms", below(1)),
        Figure(f"SageMakerClient at {RATE:,}/s: ok", found.ledger("ok"), "", at_least(RATE * seconds)),
    ]


def streaming_server() -> StampServer:
    """Streams of 20 tokens."""
    return StampServer(delay_ms=FIRST_TOKEN_MS, tokens=TOKENS, gap_ms=GAP_MS)


def tokens_a_cpu_second(rate: int, seconds: float, server: StampServer) -> float:
    """What one worker's CPU reads through OpenAIClient, its warm-up included, as its CPU includes it."""
    before = len(server.log())
    found = wave("openai", rate, seconds, server)
    return TOKENS * (len(server.log()) - before) / found.worker_cpu_s


def streams(rate: int, seconds: float) -> list[Figure]:
    """OpenAIClient at this many streams a second on one worker."""
    with streaming_server() as server:
        found = wave("openai", rate, seconds, server)
        log = server.log()
    joined = measure.arrivals(log, found)
    first_due = joined["arrival"] + FIRST_TOKEN_MS * measure.NS_PER_MS
    late_ms = ((joined["first_token"] - first_due) / measure.NS_PER_MS).to_numpy()
    name = f"OpenAIClient at {rate:,} streams/s"
    return [
        Figure(f"{name}: CPU", 1e6 * found.worker_cpu_s / len(log), "us/stream"),
        Figure(f"{name}: first token after the endpoint's log, p99", measure.percentile(late_ms, 99), "ms", below(1)),
        Figure(f"{name}: lag p99", measure.percentile(found.lag_ms, 99), "ms"),
    ]


def figures(seconds: float) -> list[Figure]:
    """All of them."""
    streamed = [figure for rate in STREAM_RATES for figure in streams(rate, seconds)]
    return [*beside_boto3(seconds / 2), *on_time(seconds), *streamed]


PROGRAM = Program("fast clients on one worker", figures, seconds=10, quick_seconds=4)

if __name__ == "__main__":
    PROGRAM.main()
