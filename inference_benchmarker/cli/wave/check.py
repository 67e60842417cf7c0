"""``benchmark check``: one request of a factories file, and what was understood of it."""

from __future__ import annotations

import os
import sys

from inference_benchmarker.cli.core.address_flags import take_endpoint, without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.terminal import print_result, say
from inference_benchmarker.cli.wave.check_flags import CHECK_DESCRIPTION, CHECK_EPILOG, CHECK_FLAGS, one_request
from inference_benchmarker.exit_codes import INTERRUPTED, MISSED, OK


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = check_parser()
    arguments, addresses = without_addresses(arguments, parser.flags)
    options, problems = parser.parsed(arguments)
    described = take_endpoint(options, problems, addresses, os.environ)
    plan = one_request(options, problems)
    if described is not None:
        say(f"{described.words}.")
    if plan.hosts:
        from inference_benchmarker.cli.wave.check_hosts import check_from_hosts

        return check_from_hosts(plan, plan.hosts, as_json=bool(options["json"]))
    from inference_benchmarker.engine.check import send_one

    try:
        found = send_one(plan, lambda text: print(text, end="", file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        say("Interrupted before the request was over.")
        return INTERRUPTED
    print_result(found, as_json=options["json"])
    return OK if found.ok else MISSED


def check_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark check",
        CHECK_FLAGS,
        usage="benchmark check (URL | --factories-file FILE) [options]",
        description=CHECK_DESCRIPTION,
        epilog=CHECK_EPILOG,
    )
