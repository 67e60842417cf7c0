"""The flags of `benchmark client`, and the conditions of a search that they describe."""

from __future__ import annotations

from itertools import chain
from typing import Any

from client_capacity.conditions import Conditions
from client_capacity.search import LEAST_REPEATS
from inference_benchmarker.cli.core.chat_flags import of_single_requests
from inference_benchmarker.cli.core.flags import Flag, Table, parse_int, parse_number, parse_path, read_flags, table_for
from inference_benchmarker.cli.core.hosts_flags import HOSTS_FLAGS, OF_HOSTS, take_hosts
from inference_benchmarker.cli.core.url_flags import FACTORIES_FILE, SET_FLAG, URL_FLAGS
from inference_benchmarker.engine.endpoint.source import refused_sessions, source_problems
from inference_benchmarker.errors import refuse
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.system.packaged import demo_factories

ENDPOINT = [
    FACTORIES_FILE._replace(about="Python file that calls the endpoint; it defines invoke_factory and payload_factory"),
    Flag("--endpoint-name", "NAME", "name passed to invoke_factory"),
    SET_FLAG,
    Flag(
        "--demo",
        None,
        "use the embedded endpoint (a small server that comes with the tool) without a service time, and its factories "
        "file if none is given",
    ),
]
ENDPOINTS = {"endpoint": ENDPOINT, "endpoint by URL, without a file": of_single_requests(URL_FLAGS)}
SEARCH = [
    Flag(
        "--lag-limit",
        "S",
        "a worker sustains a rate if its p99 schedule lag (how late it sends requests) stays below S seconds",
        parse_number,
        sets="lag_limit_s",
    ),
    Flag("--step-time", "S", "seconds to send at each rate", parse_number, sets="step_time_s"),
    Flag("--max-rps", "R", "the highest rate to try, per worker", parse_number),
]
START = Flag("--start-rps", "R", "the first rate to try", parse_number)
OUTPUT = [
    Flag("--output-dir", "DIR", "where to create the result's folder", parse_path),
    Flag("--json", None, "print the result as JSON"),
    Flag("--quiet", None, "print no progress"),
]
REPEATS = Flag(
    "--repeats",
    "N",
    f"number of times to try the rate found again: 0, or at least {LEAST_REPEATS}",
    parse_int,
)
WORKERS = [
    Flag("--worker-rps", "R", "the rate that one worker can send (default: measured first)", parse_number),
    Flag(
        "--client-rps",
        "R",
        "the rate you want to send: reports the number of --workers that it needs",
        parse_number,
        sets="wanted_rps",
    ),
    Flag("--max-workers", "N", "maximum number of workers to try (default: usable cores + 1)", parse_int),
]
SATURATION: dict[str, tuple[str, Table]] = {
    "worker-saturation": (
        "Finds the highest rate at which one worker can send your requests, with a 95% confidence interval. Takes one "
        "to two minutes.",
        table_for(Conditions, table={**ENDPOINTS, "search": [START, *SEARCH, REPEATS], "output": OUTPUT}),
    ),
    "rps-saturation": (
        "Finds the highest rate that this client can send, and the number of workers for it. Takes a few minutes.",
        table_for(
            Conditions,
            table={**ENDPOINTS, "search": [*WORKERS, *SEARCH], OF_HOSTS: HOSTS_FLAGS, "output": OUTPUT},
        ),
    ),
}
SATURATION_EPILOG = """\
This sends real load to the endpoint. To measure the client alone, use --demo or a stub without a service time.

exit codes: 0 a rate was found; 1 no rate was found; 2 bad input; 130 interrupted (what was found is reported)
"""
CLIENT_HELP = """\
usage: benchmark client COMMAND [options]

Finds what this machine can send, so that its limit is not mistaken for a slow
endpoint. Commands (each with --help):

  worker-saturation  the highest rate that one worker can send, with an interval
  rps-saturation     the highest rate of all workers together, and their number
  limits             file descriptors and ports, and the load that they allow
"""


def make_conditions(command: str, options: dict[str, Any], problems: list[str]) -> Conditions:
    """The conditions that the flags describe, or one error with everything that is wrong with them."""
    if options["demo"] and options["factories_file"] is None:
        options["factories_file"] = str(demo_factories())
    table = SATURATION[command][1]
    given = read_flags(
        chain.from_iterable(flags for title, flags in table.items() if title != OF_HOSTS), options, problems
    )
    hosts = take_hosts(options, given, problems) if OF_HOSTS in table else Hosts()
    settings = dict(given.values["factory_settings"] or ())
    parts = {"factory_settings": settings, "hosts": hosts}
    conditions = Conditions(**{"factories_file": None, **given.of(Conditions), **parts})
    problems += given.problem_texts(conditions.problems())
    problems += refused_sessions(conditions.factories_file, "a search for this client's limits")
    refuse([*problems, *source_problems(conditions.factories_file, None, settings)])
    return conditions
