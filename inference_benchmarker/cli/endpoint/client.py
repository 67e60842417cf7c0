"""``benchmark client``: what this machine can send."""

from __future__ import annotations

import os
from contextlib import nullcontext

from inference_benchmarker.cli.core.address_flags import take_endpoint, without_addresses
from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.core.chat_flags import without_turns
from inference_benchmarker.cli.core.embedded import embedded_endpoint
from inference_benchmarker.cli.core.terminal import print_result, progress, say
from inference_benchmarker.cli.endpoint.client_flags import CLIENT_HELP, SATURATION, SATURATION_EPILOG, make_conditions
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INTERRUPTED, MISSED, OK


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(CLIENT_HELP, end="")
        return OK
    if command == "limits":
        return _limits(rest)
    if command not in SATURATION:
        from inference_benchmarker.words.suggest import meant, question

        known = (*SATURATION, "limits")
        raise BenchmarkError(
            f"There is no command {command!r} of benchmark client.{question(meant(command, known))}",
            f"Commands are {', '.join(known)}.",
        )
    return _saturation(command, rest)


def limits_parser() -> Parser:
    """The flags and help of `benchmark client limits`."""
    parser = Parser(
        prog="benchmark client limits",
        description="Shows the limits of file descriptors and ports, and the load that they allow.",
    )
    parser.add_argument("--json", action="store_true", help="print the limits as JSON")
    return parser


def saturation_parser(command: str) -> Parser:
    """The flags and help of a search."""
    description, flags = SATURATION[command]
    return command_parser(
        f"benchmark client {command}",
        flags,
        usage=f"benchmark client {command}\n  [--demo | URL | --factories-file FILE] [options]",
        description=description,
        epilog=SATURATION_EPILOG,
    )


def _limits(arguments: list[str]) -> int:
    options = limits_parser().parse_args(arguments)
    from client_capacity.limits import find_file_descriptors_limit

    print_result(find_file_descriptors_limit(), as_json=options.json)
    return OK


def _saturation(command: str, arguments: list[str]) -> int:
    parser = saturation_parser(command)
    arguments, addresses = without_addresses(arguments, parser.flags)
    options, problems = parser.parsed(arguments)
    without_turns(options, problems)
    described = take_endpoint(options, problems, addresses, os.environ)
    conditions = make_conditions(command, options, problems)
    if described is not None and not options["quiet"]:
        say(f"{described.words}.")
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
        say("Interrupted before the first step ended: no rate was measured.")
        return INTERRUPTED
    print_result(found, as_json=options["json"])
    if interrupted or found.limited_by == "interrupted":
        return INTERRUPTED
    return OK if found.rate else MISSED
