"""The flags of `benchmark client`, and the conditions of a search that they describe."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from client_capacity.conditions import Conditions
from client_capacity.search import LEAST_REPEATS
from inference_benchmarker.cli.flags import Flag, Reader, demo_factories
from inference_benchmarker.engine.endpoint import source_problems
from inference_benchmarker.errors import BenchmarkError

_DEFAULTS = {field.name: field.default for field in fields(Conditions)}

ENDPOINT: list[Flag] = [
    ("--factories-file", "FILE", "the endpoint, as for a wave"),
    ("--endpoint-name", "NAME", "passed to invoke_factory"),
    ("--demo", None, "an embedded endpoint that answers at once; its factories too where no file is given"),
]
SEARCH: list[Flag] = [
    ("--lag-limit", "S", f"a rate is held while lag p99 is below this (default {_DEFAULTS['lag_limit_s']})"),
    ("--step-time", "S", f"seconds that each rate is sent (default {_DEFAULTS['step_time_s']:g})"),
    ("--max-rps", "R", f"the most that is tried, per worker (default {_DEFAULTS['max_rps']:g})"),
]
OUTPUT: list[Flag] = [
    ("--output-dir", "DIR", "where the result's directory goes (default .tmp)"),
    ("--json", None, "print the result as JSON"),
    ("--quiet", None, "no progress"),
]
REPEATS: Flag = (
    "--repeats",
    "N",
    f"how often the found rate is tried again, at least {LEAST_REPEATS} (default {_DEFAULTS['repeats']}; 0: never)",
)
WORKERS: list[Flag] = [
    ("--worker-rps", "R", "the rate that one worker holds (default: measured first)"),
    ("--client-rps", "R", "the rate you want to send: says how many --workers it takes"),
    ("--max-workers", "N", "the most workers that are tried (default: usable cores + 1)"),
]
SATURATION: dict[str, tuple[str, dict[str, list[Flag]]]] = {
    "worker-saturation": (
        "The highest rate that one worker holds for your invoke, with a 95% interval. Takes one to two minutes.",
        {"endpoint": ENDPOINT, "search": [*SEARCH, REPEATS], "output": OUTPUT},
    ),
    "rps-saturation": (
        "The highest rate that this client holds, and with how many workers. Takes some minutes.",
        {"endpoint": ENDPOINT, "search": [*WORKERS, *SEARCH], "output": OUTPUT},
    ),
}
SATURATION_EPILOG = """\
Real load is sent to the endpoint. For the client alone use --demo, or a stub that answers at once.
exit codes: 0 a rate was found, 1 none was, 2 bad input, 130 interrupted (after what was found)
"""
CLIENT_HELP = """\
usage: benchmark client COMMAND [options]

What this machine can send, before it is taken for a slow endpoint. Commands (each with --help):
  worker-saturation            the highest rate that one worker holds for your invoke, with an interval
  rps-saturation               the highest rate of all workers, and how many to use for a rate
  limits                       file descriptors and ports, and what they allow
"""


def make_conditions(options: dict[str, Any], problems: list[str]) -> Conditions:
    """The conditions that the flags describe, or one error with everything that is wrong with them."""
    if options["demo"] and options["factories_file"] is None:
        options["factories_file"] = str(demo_factories())
    read = Reader({"repeats": None, "worker_rps": None, "client_rps": None, "max_workers": None, **options}, problems)
    given = {
        "endpoint_name": options["endpoint_name"],
        "lag_limit_s": read.number("lag_limit"),
        "step_time_s": read.number("step_time"),
        "repeats": read.integer("repeats"),
        "max_rps": read.number("max_rps"),
        "worker_rps": read.number("worker_rps"),
        "wanted_rps": read.number("client_rps"),
        "max_workers": read.integer("max_workers"),
        "output_dir": read.path("output_dir"),
    }
    found = {name: value for name, value in given.items() if value is not None}
    conditions = Conditions(factories_file=read.path("factories_file"), **found)
    problems += [problem for problem in conditions.problems() if not read.stood_in_for(problem)]
    problems += source_problems(conditions.factories_file, None)
    if problems:
        raise BenchmarkError("\n".join(problems))
    return conditions
