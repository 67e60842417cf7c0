"""``benchmark endpoint``: the embedded endpoint alone, to try things against."""

from __future__ import annotations

import argparse

from inference_benchmarker.cli.arguments import Parser, add_flags, parsed
from inference_benchmarker.cli.endpoint_flags import ENDPOINT_EPILOG, ENDPOINT_FLAGS, endpoint_config, invitation


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    parser = Parser(
        prog="benchmark endpoint",
        description="The embedded endpoint: a queueing model of an inference server with a known capacity.",
        epilog=ENDPOINT_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="benchmark endpoint [options]",
        allow_abbrev=False,
    )
    add_flags(parser, ENDPOINT_FLAGS)
    port, config = endpoint_config(*parsed(parser, arguments))
    from inference_benchmarker.embedded.listening import listen
    from inference_benchmarker.embedded.serving import serve

    with listen(port) as sock:
        port = sock.getsockname()[1]
        print(f"Listening on http://127.0.0.1:{port} (Ctrl-C ends it)")
        print(f"To boto3 it is AWS in a terminal where you have entered\n{invitation(port)}", flush=True)
        serve(config, sock)
    return 0
