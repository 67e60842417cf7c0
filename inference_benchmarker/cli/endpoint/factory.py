"""``benchmark factory``: list the shipped examples, copy one to standard output, or tell its settings."""

from __future__ import annotations

from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.examples import FACTORY_DESCRIPTION, find, listing, settings_page, shipped
from inference_benchmarker.cli.core.terminal import write_file
from inference_benchmarker.exit_codes import OK

_HELP = ("-h", "--help")


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    named = [argument for argument in arguments if argument not in _HELP]
    if len(arguments) > len(named) == 1 and not named[0].startswith("-"):
        print(settings_page(find(named[0], shipped())), end="", flush=True)
        return OK
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
    )
    about = "the example to print, also by a short name such as trace or tabular_fast; without NAME, all are listed"
    parser.add_argument("name", metavar="NAME", nargs="?", help=about)
    return parser
