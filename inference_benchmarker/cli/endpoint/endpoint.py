"""``benchmark endpoint``: the embedded endpoint alone, to try things against."""

from __future__ import annotations

from inference_benchmarker.cli.core.arguments import Parser, command_parser
from inference_benchmarker.cli.endpoint.endpoint_flags import (
    ENDPOINT_EPILOG,
    ENDPOINT_FLAGS,
    endpoint_config,
    invitation,
)
from inference_benchmarker.cli.endpoint.fitted_flags import take_fitted
from inference_benchmarker.exit_codes import OK


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options, problems = endpoint_parser().parsed(arguments)
    fitted = take_fitted(options)
    port, config = endpoint_config(options, problems)
    from inference_benchmarker.embedded.listening import listen
    from inference_benchmarker.embedded.serving import serve

    if fitted:
        print(fitted)
    with listen(port) as sock:
        port = sock.getsockname()[1]
        print(f"Listening on http://127.0.0.1:{port} (press Ctrl-C to stop)")
        print(invitation(port, is_llm=config.llm is not None), flush=True)
        serve(config, sock)
    return OK


def endpoint_parser() -> Parser:
    """Its flags, and its help."""
    return command_parser(
        "benchmark endpoint",
        ENDPOINT_FLAGS,
        usage="benchmark endpoint [options]",
        description="Runs the embedded endpoint: a queueing model of an inference server with a known capacity.",
        epilog=ENDPOINT_EPILOG,
    )
