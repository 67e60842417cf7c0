"""The embedded LLM engine: simulated seconds a second and CPU a step, and how late its pieces leave in real time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

import numpy as np

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.embedded.running import start
from tests.performance.figures import Figure, Program
from tests.performance.llm_workloads import WORKLOADS, Asked
from tests.performance.measure import REPOSITORY

_FOR_EVER = 1 << 62


def simulated(name: str, seconds: float) -> list[Figure]:
    """A workload as often, one after the other, as fits into that many seconds of this machine."""
    workload = WORKLOADS[name]
    rules = workload.rules(PROFILES["8b-h100"])
    cpu_s = virtual_s = 0.0
    steps, seed = 0, 0
    while cpu_s < seconds:
        asked, engine = workload.drawn(seed), Engine(rules)
        begun = time.process_time()
        jobs = offered(engine, asked)
        cpu_s += time.process_time() - begun
        virtual_s += max(job.finish_ns or 0 for job in jobs) / 1e9
        steps += engine.meter.steps
        seed += 1
    return [
        Figure(f"{name}: simulated seconds a second of CPU", virtual_s / cpu_s),
        Figure(f"{name}: CPU a step", cpu_s / steps * 1e6, "us"),
    ]


def offered(engine: Engine, asked: list[Asked]) -> list[TokenJob]:
    """All that is asked, served to its end; an answer is reported once it is whole."""
    jobs = []
    for at_ms, prompt, output, chain in asked:
        jobs.append(TokenJob(prompt, output, chain[: (prompt + output) // engine.rules.block_size], output))
        engine.offer(round(at_ms * 1e6), jobs[-1])
    engine.take_ready(_FOR_EVER)
    return jobs


def in_real_time(streams: int, seconds: float) -> list[Figure]:
    """So many streams at a time, sent from this machine: from the end of a last step to the last piece's departure."""
    with start(EndpointConfig(llm="8b-h100")) as endpoint, tempfile.TemporaryDirectory() as folder:
        flags = ("--concurrency", streams, "--obs-time", seconds, "--input-tokens", 100, "--output-tokens", 100)
        command = [sys.executable, "-m", "inference_benchmarker.cli", f"{endpoint.url}/v1", *map(str, flags)]
        quiet = ("--output-dir", folder, "--quiet")
        subprocess.run([*command, *quiet], cwd=REPOSITORY, check=False, stdout=subprocess.DEVNULL)
        log = endpoint.arrivals()
    late = [
        (answered - finish) / 1e6
        for answered, finish in zip(log["answered_ns"], log["finish_ns"], strict=True)
        if answered is not None
    ]
    return [
        Figure(f"{streams} streams: lateness of the last piece, p{p:g}", float(np.percentile(late, p)), "ms")
        for p in (50, 99)
    ]


def measure(seconds: float) -> list[Figure]:
    """Each workload, and three numbers of streams."""
    found = [figure for name in WORKLOADS for figure in simulated(name, seconds / 10)]
    for streams in (8, 64, 256):
        found += in_real_time(streams, seconds)
    return found


PROGRAM = Program("the LLM engine", measure, 20, 5)

if __name__ == "__main__":
    PROGRAM.main()
