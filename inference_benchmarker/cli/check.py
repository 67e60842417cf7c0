"""``benchmark check``: one request of a factories file, and what was understood of it."""

from __future__ import annotations

import argparse
import sys

from inference_benchmarker.cli.arguments import Parser, add_flags, parsed
from inference_benchmarker.cli.check_flags import CHECK_DESCRIPTION, CHECK_EPILOG, CHECK_FLAGS, one_request
from inference_benchmarker.cli.exit_codes import FAILED, INTERRUPTED
from inference_benchmarker.cli.terminal import print_result, say


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = Parser(
        prog="benchmark check",
        description=CHECK_DESCRIPTION,
        epilog=CHECK_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark check --factories-file FILE [options]",
        allow_abbrev=False,
    )
    add_flags(parser, CHECK_FLAGS)
    options, problems = parsed(parser, arguments)
    plan = one_request(options, problems)
    from inference_benchmarker.engine.check import send_one

    try:
        found = send_one(plan, lambda text: print(text, end="", file=sys.stderr, flush=True))
    except KeyboardInterrupt:
        say("Interrupted before the request was over.")
        return INTERRUPTED
    print_result(found, as_json=options["json"])
    return 0 if found.ok else FAILED
