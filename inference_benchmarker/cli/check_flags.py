"""The flags of `benchmark check`, and the request that they describe."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from inference_benchmarker.cli.flags import Flag, Reader
from inference_benchmarker.engine.endpoint import source_problems
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.plan import Bounds, ClosedLoop, WavePlan

CHECK_DESCRIPTION = "Sends one request as a wave's worker would, and shows what was understood of it."
CHECK_EPILOG = """\
exit codes: 0 the request succeeded, 1 it failed, 2 bad input or a factories file that cannot be used, 130 interrupted
"""
TIMEOUT_S, LOAD_TIMEOUT_S = Decimal(60), Decimal(600)
CHECK_FLAGS: dict[str, list[Flag]] = {
    "endpoint": [
        ("--factories-file", "FILE", "the endpoint, as for a wave"),
        ("--endpoint-name", "NAME", "passed to invoke_factory"),
        ("--load-timeout", "S", f"how long loading the factories file may take (default {LOAD_TIMEOUT_S})"),
        ("--request-timeout", "S", f"end and fail a request that takes longer (default {TIMEOUT_S})"),
    ],
    "output": [("--json", None, "print what was understood as JSON")],
}


def one_request(options: dict[str, Any], problems: list[str]) -> WavePlan:
    """The plan of the one request that the flags describe, or one error with everything that is wrong with them."""
    read = Reader(options, problems)
    plan = WavePlan(
        ClosedLoop(1),
        Bounds(num_requests=1),
        factories_file=read.path("factories_file"),
        endpoint_name=options["endpoint_name"],
        load_timeout_s=read.decimal("load_timeout", LOAD_TIMEOUT_S),
        request_timeout_s=read.decimal("request_timeout", TIMEOUT_S),
    )
    if options["factories_file"] is None:
        problems.append("No endpoint: give --factories-file FILE.")
    else:
        problems += [problem for problem in plan.problems() if not read.stood_in_for(problem)]
    problems += source_problems(plan.factories_file, None)
    if problems:
        raise BenchmarkError("\n".join(problems))
    return plan
