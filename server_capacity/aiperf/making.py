"""Makes aiperf's requests before any load is sent: a process of its own imports the factories file and writes them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from inference_benchmarker.engine.processes.child_logs import child_log
from inference_benchmarker.engine.processes.children import child_environment
from inference_benchmarker.engine.processes.leftovers import MARK, end_leftovers, new_mark
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.system.given import resolved
from inference_benchmarker.words.redact import secret_values
from server_capacity.aiperf.inputs import MOST_INPUTS, made_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan
    from server_capacity.aiperf.arguments import Requests

_TELL_AFTER_S = 2.0


def planned_inputs(plan: WavePlan) -> int:
    """The number of requests made ready: as many as are planned, where that is known, and not too many."""
    counts = [MOST_INPUTS]
    if plan.bounds.num_requests is not None:
        counts.append(plan.bounds.num_requests)
    if plan.bounds.duration_s is not None and isinstance(plan.load, OpenLoop):
        counts.append(max(1, math.ceil(plan.bounds.duration_s * plan.load.rate)))
    return min(counts)


def make_requests(plan: WavePlan, path: Path, environment: Mapping[str, str], say: Callable[[str], None]) -> Requests:
    """Writes the requests of the arrivals to ``path``; BenchmarkError for what is wrong with them."""
    if plan.factories_file is None:
        raise BenchmarkError(
            "aiperf has no requests.",
            'Give --factories-file FILE, or --aiperf-args \'{"input-file": "FILE"}\'.',
        )
    asked = {
        "factories_file": str(resolved(plan.factories_file)),
        "endpoint_name": plan.endpoint_name,
        "payload_arguments": plan.payload_arguments,
        "settings": plan.factory_settings,
        "seed": plan.seed,
        "arrivals": planned_inputs(plan),
        "path": str(path),
        "parent": os.getpid(),
    }
    log, mark = path.with_suffix(".log"), new_mark()
    with (
        child_log(log, secret_values(environment)) as output,
        subprocess.Popen(
            [sys.executable, "-P", "-m", "server_capacity.aiperf.inputs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            env={**child_environment(), MARK: mark},
            start_new_session=True,
        ) as process,
    ):
        try:
            answer = _communicate(process, json.dumps(asked) + "\n", plan, say)
        finally:
            process.kill()
            process.wait()
            end_leftovers(mark, {process.pid})
    if not answer:
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise BenchmarkError(f"{plan.factories_file}: making aiperf's requests ended early.\n{tail}")
    if problem := json.loads(answer).get("problem"):
        raise BenchmarkError(problem)
    return made_requests(path)


def _communicate(process: subprocess.Popen[bytes], line: str, plan: WavePlan, say: Callable[[str], None]) -> bytes:
    try:
        return process.communicate(line.encode(), timeout=_TELL_AFTER_S)[0]
    except subprocess.TimeoutExpired:
        say("Making the requests for aiperf ...")
    try:
        return process.communicate(timeout=float(plan.load_timeout_s))[0]
    except subprocess.TimeoutExpired:
        raise BenchmarkError(
            f"{plan.factories_file}: aiperf's requests were not made within {plan.load_timeout_s} s.",
            "Make it faster, or allow more time with --load-timeout.",
        ) from None
