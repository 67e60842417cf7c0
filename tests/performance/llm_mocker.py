"""The embedded LLM engine beside the mocker of NVIDIA's Dynamo, request for request, on ten workloads in virtual time.

Steps of fixed lengths come first, so that nothing counts but who computes what in which step; then the lengths by the
mocker's polynomials. ``ai-dynamo`` gets an environment of its own, as the servers of ``real_servers`` do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from tests.performance import server_environments
from tests.performance.figures import Figure, at_least, between, exactly, table
from tests.performance.llm_engine import offered
from tests.performance.llm_workloads import BLOCK, WORKLOADS, Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

_H100 = PROFILES["8b-h100"]
_FIXED = replace(_H100, prefill_ms=(0.0, 0.0, 20.0), step_ms=(0.0, 0.0, 10.0, 0.0))
_TIMINGS: dict[str, dict[str, Any]] = {
    "fixed": {"type": "fixed", "prefill_ms": 20.0, "decode_ms": 10.0},
    "polynomial": {"type": "polynomial"},
}
_SAME_MS = 0.01
# What the other environment's Python executes: a trace, the engine's options and its timing make times of requests.
_REPLAY = """
import json, sys
from dynamo.mocker.args import parse_args
from dynamo.mocker.config import build_mocker_engine_args
from dynamo.replay import run_trace_replay

asked = json.load(sys.stdin)
engine = build_mocker_engine_args(parse_args(asked["options"]))
engine["engine"]["timing_model"] = asked["timing"]
report = run_trace_replay(
    asked["trace"], extra_engine_args=json.dumps(engine), trace_block_size=asked["block"], capture_per_request=True
)
rows = sorted(report.per_request, key=lambda row: row["arrival_time_ms"])
names = ("ttft_ms", "e2e_latency_ms", "admission_history", "readmission_count")
json.dump([[row[name] for name in names] for row in rows], sys.stdout)
"""


class Served(NamedTuple):
    """Of one request: times from its arrival, tokens of the prompt from the cache at first, preemptions."""

    first_ms: float
    last_ms: float
    cached: int
    preemptions: int


def ours(asked: list[Asked], rules: EngineRules) -> list[Served]:
    """By the embedded engine."""
    return [
        Served(
            ((job.first_token_ns or 0) - job.arrival_ns) / 1e6,
            ((job.finish_ns or 0) - job.arrival_ns) / 1e6,
            job.cached or 0,
            job.preemptions,
        )
        for job in offered(Engine(rules), asked)
    ]


def theirs(asked: list[Asked], rules: EngineRules, timing: dict[str, Any]) -> list[Served]:
    """By the mocker with the same cache and bounds."""
    options = {
        "--num-gpu-blocks": rules.blocks,
        "--block-size": BLOCK,
        "--max-num-seqs": rules.max_num_seqs,
        "--max-num-batched-tokens": rules.max_num_batched_tokens,
    }
    words = ["--engine-type", "vllm", *(str(word) for option in options.items() for word in option)]
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_text("\n".join(json.dumps(dict(zip(names, each, strict=True))) for each in asked))
        handed = {"options": words, "timing": timing, "trace": str(trace), "block": BLOCK}
        python = server_environments.environment("dynamo") / "python"
        done = subprocess.run(
            [python, "-c", _REPLAY], input=json.dumps(handed), capture_output=True, text=True, check=True
        )
    rows = json.loads(done.stdout)
    return [Served(first, last, reported[0]["reused_input_tokens"], again) for first, last, reported, again in rows]


def figures(name: str, timing: str) -> list[Figure]:
    """A workload: the requests that fare the same, or how far mean and p95 of their times are apart."""
    workload = WORKLOADS[name]
    asked, rules = workload.drawn(1), workload.rules(_FIXED if timing == "fixed" else _H100)
    found, expected = ours(asked, rules), theirs(asked, rules, _TIMINGS[timing])
    if timing == "fixed":
        same = [
            abs(one.first_ms - other.first_ms) < _SAME_MS and abs(one.last_ms - other.last_ms) < _SAME_MS
            for one, other in zip(found, expected, strict=True)
        ]
        cached, preempted = (
            sum(getattr(one, count) for one in found) - sum(getattr(other, count) for other in expected)
            for count in ("cached", "preemptions")
        )
        return [
            Figure(f"{name}: requests that fare the same", 100 * float(np.mean(same)), "%", at_least(99)),
            Figure(f"{name}: preemptions, {sum(each.preemptions for each in found)}; more than the mocker", preempted),
            Figure(f"{name}: cached tokens, more than the mocker", cached, target=exactly(0)),
        ]
    return [
        Figure(f"{name}: {title}", _apart(found, expected, field), "%", between(-5, 5))
        for field, title in (("first_ms", "TTFT"), ("last_ms", "latency"))
    ]


def _apart(found: Sequence[Served], expected: Sequence[Served], field: str) -> float:
    """By how many percent the mean is longer than the mocker's."""
    one, other = (float(np.mean([getattr(each, field) for each in those])) for those in (found, expected))
    return 100 * (one / other - 1)


def main() -> None:
    """Compare and print; the exit code is 1 where a figure falls short."""
    short = False
    for timing in _TIMINGS:
        compared = [figure for name in WORKLOADS for figure in figures(name, timing)]
        print(table(f"steps of {timing} lengths", compared), end="\n\n", flush=True)
        short |= any(figure.verdict == "short" for figure in compared)
    sys.exit(short)


if __name__ == "__main__":
    main()
