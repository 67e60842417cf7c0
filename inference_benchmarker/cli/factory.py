"""``benchmark factory``: list the shipped examples, or copy one to standard output."""

from __future__ import annotations

import argparse

from inference_benchmarker.cli.arguments import Parser
from inference_benchmarker.cli.examples import FACTORY_DESCRIPTION, find, listing, shipped
from inference_benchmarker.cli.terminal import write_file
from inference_benchmarker.exit_codes import OK


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = factory_parser().parse_args(arguments)
    if options.name is None:
        print(listing(shipped()), end="", flush=True)
        return OK
    write_file(find(options.name, shipped()).path.read_bytes())
    return OK


def factory_parser() -> Parser:
    """Its arguments, and its help."""
    parser = Parser(
        prog="benchmark factory",
        description=FACTORY_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="the example to print; without one, all are listed")
    return parser
