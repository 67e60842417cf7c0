"""The flags of `benchmark check`, and the request that they describe."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from inference_benchmarker.cli.core.chat_flags import MODEL_MIX
from inference_benchmarker.cli.core.expect_flags import EXPECT, refused_canaries
from inference_benchmarker.cli.core.flags import Flag, parse_decimal, read_flags, reworded, table_for
from inference_benchmarker.cli.core.hosts_flags import HOSTS_FLAGS, OF_HOSTS, take_hosts
from inference_benchmarker.cli.core.url_flags import FACTORIES_FILE, MAX_ANSWER_SIZE, SET_FLAG, URL_FLAGS
from inference_benchmarker.engine.endpoint.source import source_problems
from inference_benchmarker.errors import refuse
from inference_benchmarker.plan.hosts import Hosts
from inference_benchmarker.plan.load import Bounds, ClosedLoop
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of

CHECK_DESCRIPTION = (
    "Sends one request as a wave does (the first of a conversation), and shows the parsed answer; with --hosts, one "
    "from each host."
)
CHECK_EPILOG = """\
exit codes: 0 the request succeeded; 1 it failed; 2 bad input or an unusable factories file; 130 interrupted
"""
TIMEOUT_S = Decimal(60)
_ENDPOINT = [
    FACTORIES_FILE,
    Flag("--endpoint-name", "NAME", "name passed to invoke_factory"),
    SET_FLAG,
    Flag(
        "--load-timeout",
        "S",
        "seconds that loading the factories file may take",
        parse_decimal,
        sets="load_timeout_s",
    ),
    Flag(
        "--request-timeout",
        "S",
        "fail a request that takes longer",
        parse_decimal,
        sets="request_timeout_s",
        default=TIMEOUT_S,
    ),
    MAX_ANSWER_SIZE,
    EXPECT,
    MODEL_MIX,
]
_ABOUT_HOSTS = {"hosts": "hosts that send a request each, reached over ssh with your configuration: load1,admin@load3"}
CHECK_FLAGS = table_for(
    WavePlan,
    table={
        "endpoint": _ENDPOINT,
        "endpoint by URL, without a file": URL_FLAGS,
        OF_HOSTS: reworded(HOSTS_FLAGS, _ABOUT_HOSTS),
        "output": [Flag("--json", None, "print the result as JSON")],
    },
)


def one_request(options: dict[str, Any], problems: list[str]) -> WavePlan:
    """The plan of the one request that the flags describe, or one error with everything that is wrong with them."""
    given = read_flags(CHECK_FLAGS["endpoint"], options, problems)
    settings = {"factory_settings": dict(given.values["factory_settings"] or ())}
    parts = {**given.of(WavePlan), **settings, "hosts": take_hosts(options, given, problems)}
    plan = WavePlan(ClosedLoop(1), Bounds(num_requests=1), **parts)
    problems += refused_canaries(plan.expect, "for one request")
    if options["factories_file"] is None:
        problems.append("No endpoint: give its URL, or --factories-file FILE.")
    else:
        problems += given.problem_texts(problems_of(replace(plan, hosts=Hosts())))
        problems += given.problem_texts(plan.hosts.problems())
    refuse([*problems, *source_problems(plan.factories_file, None, plan.factory_settings)])
    return plan
