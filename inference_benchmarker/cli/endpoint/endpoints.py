"""``benchmark endpoints``: what other commands changed of endpoints, or made, and left behind."""

from __future__ import annotations

from pathlib import Path

from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
from inference_benchmarker.cli.core.terminal import print_report
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.system.files import kind_of

_HELP = """\
usage: benchmark endpoints clean [DIR]

Manages endpoints that other commands change or create temporarily.

  clean   remove endpoints, and undo changes, left behind by killed commands

See `benchmark endpoints clean --help`.
"""
_CLEAN_DESCRIPTION = """\
Cleans up after a command that was killed: removes the endpoints that it created, and restores the settings that it
changed. This is needed only if the separate process that normally cleans up was killed too. The steps are in
cleanup.json in that command's folder. `clean` asks for no confirmation, and it is safe to run again.
"""
_CLEAN_EPILOG = """\
exit codes: 0 nothing is left; 1 something could not be undone (what to do by hand is printed), or the command is still
running; 2 a cleanup.json is not valid; 130 interrupted
"""


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help"):
        print(_HELP, end="")
        return OK
    if command != "clean":
        raise BenchmarkError(f"There is no command {command!r} of benchmark endpoints.", "The command is clean.")
    options = clean_parser().parse_args(rest)
    from server_capacity.provisioning.cleaning import clean

    if options.dir is not None and kind_of(options.dir) != "folder":
        raise BenchmarkError(
            f"{options.dir}: is not a folder.", "Give the folder of a search, or the --output-dir of several."
        )
    return clean(options.dir or OUTPUT_DIR, lambda line: print_report(f"{line}\n"))


def clean_parser() -> Parser:
    """Its flags, and its help."""
    parser = Parser(
        prog="benchmark endpoints clean",
        description=_CLEAN_DESCRIPTION,
        epilog=_CLEAN_EPILOG,
    )
    about = f"the folder of a search, or one with many such folders (default {OUTPUT_DIR})"
    parser.add_argument("dir", metavar="DIR", nargs="?", type=Path, help=about)
    return parser
