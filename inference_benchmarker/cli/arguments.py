"""From arguments to flags as text: a parser that raises, and a problem for each argument that is none."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from inference_benchmarker.cli.flags import REPEATABLE
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from inference_benchmarker.cli.flags import Flag


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every error takes the one way out; its help has no colours (Python 3.14)."""

    color = False

    def error(self, message: str) -> NoReturn:
        """argparse: the arguments cannot be read."""
        raise BenchmarkError(message[:1].upper() + message[1:] + ".", f"See `{self.prog} --help`.")


def add_flags(parser: Parser, groups: dict[str, list[Flag]]) -> None:
    """Let the parser know the flags, a group of its help for each of theirs."""
    for title, flags in groups.items():
        group = parser.add_argument_group(title)
        for flag, metavar, text in flags:
            if metavar is None:
                group.add_argument(flag, action="store_true", default=None, help=text)
            elif flag in REPEATABLE:
                group.add_argument(flag, metavar=metavar, action="append", help=text)
            else:
                group.add_argument(flag, metavar=metavar, help=text)


def parsed(parser: Parser, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The flags as text, and a problem for each argument that is none; what was surely meant counts as given."""
    given, unknown = parser.parse_known_args(arguments)
    if not unknown:
        return vars(given), []
    from inference_benchmarker.suggest import as_file, meant, mended, question, strays

    known = [f"--{name.replace('_', '-')}" for name in vars(given)]
    found = strays(arguments, unknown)
    close = {argument: meant(argument, known) if argument.startswith("-") else [] for argument in found}
    files = {argument: as_file(argument) for argument in found if _needs_file(vars(given)) and as_file(argument)}
    with suppress(BenchmarkError):  # so that nothing else is called missing
        more = [f"--factories-file={file}" for file in files]
        given, _ = parser.parse_known_args([*mended(arguments, unknown, known), *more])
    help_is = f" See `{parser.prog} --help`."
    hints = {argument: question(flags) or files.get(argument) or help_is for argument, flags in close.items()}
    return vars(given), [f"Unknown argument {argument!r}.{hints[argument]}" for argument in found]


def _needs_file(given: dict[str, Any]) -> bool:
    return "factories_file" in given and not given["factories_file"] and not given.get("locust_file")
