"""``benchmark client``: what this machine can send."""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from inference_benchmarker.cli.arguments import Parser, add_flags, parsed
from inference_benchmarker.cli.client_flags import CLIENT_HELP, SATURATION, SATURATION_EPILOG, make_conditions
from inference_benchmarker.cli.embedded import embedded_endpoint
from inference_benchmarker.cli.exit_codes import INTERRUPTED, NOTHING_FOUND
from inference_benchmarker.cli.terminal import print_result, progress, say
from inference_benchmarker.errors import BenchmarkError


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(CLIENT_HELP, end="")
        return 0
    if command == "limits":
        return _limits(rest)
    if command not in SATURATION:
        from inference_benchmarker.suggest import meant, question

        known = (*SATURATION, "limits")
        raise BenchmarkError(
            f"There is no command {command!r} of benchmark client.{question(meant(command, known))}",
            f"Commands are {', '.join(known)}.",
        )
    return _saturation(command, rest)


def _limits(arguments: list[str]) -> int:
    parser = Parser(prog="benchmark client limits", description="File descriptors and ports, and what they allow.")
    parser.add_argument("--json", action="store_true", help="print the limits as JSON")
    options = parser.parse_args(arguments)
    from client_capacity.limits import find_file_descriptors_limit

    print_result(find_file_descriptors_limit(), as_json=options.json)
    return 0


def _saturation(command: str, arguments: list[str]) -> int:
    description, flags = SATURATION[command]
    parser = Parser(
        prog=f"benchmark client {command}",
        description=description,
        epilog=SATURATION_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=f"benchmark client {command} [--demo | --factories-file FILE] [options]",
        allow_abbrev=False,
    )
    add_flags(parser, flags)
    options, problems = parsed(parser, arguments)
    conditions = make_conditions(options, problems)
    found, interrupted = None, False
    try:
        # what is measured against an endpoint without a service time is the client
        embedded = embedded_endpoint(service="none") if options["demo"] else nullcontext()
        with embedded, progress(options["quiet"]) as tell:
            from client_capacity.rps_saturation import measure_client
            from client_capacity.worker_saturation import measure_worker

            measure = measure_worker if command == "worker-saturation" else measure_client
            found = measure(conditions, tell)
    except KeyboardInterrupt:
        interrupted = True
    if found is None:
        say("Interrupted before the first step ended: no rate was tried to its end.")
        return INTERRUPTED
    print_result(found, as_json=options["json"])
    if interrupted or found.limited_by == "interrupted":
        return INTERRUPTED
    return 0 if found.rate else NOTHING_FOUND
