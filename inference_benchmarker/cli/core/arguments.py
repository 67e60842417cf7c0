"""From arguments to flags as text: a parser that raises, and a problem for each argument that is none."""

from __future__ import annotations

import argparse
import re
import shutil
from contextlib import suppress
from itertools import chain, groupby
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NoReturn

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.text import folded, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.cli.core.flags import Flag, Table

MOST_COLUMNS = 100
_MINUS = re.compile(r"-\.?\d")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, but no wider than is easily read; no word is divided, nor a flag at its hyphens."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, **{**settings, "width": min(shutil.get_terminal_size().columns, MOST_COLUMNS) - 2})

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)

    def _format_usage(self, *arguments: Any) -> str:
        """A usage that was written, which argparse leaves as it is; what does not fit stands below, indented."""
        lines, width = super()._format_usage(*arguments).split("\n"), self._width
        pieces = ([line] if len(line) <= width else wrapped(line, width, below="  ") for line in lines)
        return "\n".join(chain.from_iterable(pieces))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Description and epilog: as they are written, but for what does not fit into a terminal."""
        return super()._fill_text(_fitted(text, width), width, indent)


def _fitted(text: str, width: int) -> str:
    """A text whose lines fit into the width: rows as in a report, paragraphs from the margin."""
    fitted: list[str] = []
    for is_row, lines in groupby(text.split("\n"), key=lambda line: "  " in line or not line):
        part = list(lines)
        fitted += [folded(line, width) for line in part] if is_row else wrapped(" ".join(part), width)
    return "\n".join(fitted)


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every error takes the one way out; its help has no colours (Python 3.14).

    It knows the flags of its tables, by name.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": _Help, **settings})
        self.color = False
        self.flags: dict[str, Flag] = {}

    def error(self, message: str) -> NoReturn:
        """argparse: the arguments cannot be read."""
        raise BenchmarkError(message[:1].upper() + message[1:] + ".", f"See `{self.prog} --help`.")

    def add_flags(self, table: Table) -> None:
        """Let the parser know the flags of a table, a group of its help for each of theirs."""
        for title, flags in table.items():
            group = self.add_argument_group(title)
            for flag in flags:
                self.flags[flag.name] = flag
                about = argparse.SUPPRESS if flag.hidden else flag.help.replace("%", "%%")
                keywords: dict[str, Any] = {"default": flag.default, "help": about}
                if flag.metavar is None:
                    group.add_argument(flag.flag, action="store_true", **keywords)
                else:
                    action = "append" if flag.repeatable else "store"
                    group.add_argument(flag.flag, metavar=flag.metavar, action=action, **keywords)

    def parsed(self, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
        """The flags as text, and a problem for each argument that is none; what was surely meant counts as given.

        What is not given is None: a configuration file may give it, and only what no one gives has its default.
        """
        arguments = list(self._joined(arguments))
        given, unknown = self._known(arguments)
        if not unknown:
            return given, []
        from inference_benchmarker.words.suggest import as_file, meant, mended, question, strays

        known = [f"--{name.replace('_', '-')}" for name in given]
        found = strays(arguments, unknown)
        close = {argument: meant(argument, known) if argument.startswith("-") else [] for argument in found}
        files = {argument: as_file(argument) for argument in found if _needs_file(given) and as_file(argument)}
        with suppress(BenchmarkError):  # so that nothing else is called missing
            more = [f"--factories-file={file}" for file in files]
            given, _ = self._known([*mended(arguments, unknown, known), *more])
        help_is = f" See `{self.prog} --help`."
        hints = {argument: question(flags) or files.get(argument) or help_is for argument, flags in close.items()}
        return given, [f"Unknown argument {argument!r}.{hints[argument]}" for argument in found]

    def _joined(self, arguments: Sequence[str]) -> Iterator[str]:
        """The arguments with ``--window -5m..now`` as one: alone, such a value looks like a flag."""
        takes = {flag.flag for flag in self.flags.values() if flag.metavar is not None}
        rest = iter(arguments)
        for argument in rest:
            value = next(rest, None) if argument in takes else None
            if value is None:
                yield argument
            elif _MINUS.match(value):
                yield f"{argument}={value}"
            else:
                yield from (argument, value)

    def _known(self, arguments: list[str]) -> tuple[dict[str, Any], list[str]]:
        nothing = argparse.Namespace(**dict.fromkeys(self.flags))
        given, unknown = self.parse_known_args(arguments, nothing)
        return vars(given), unknown


def command_parser(
    prog: str, table: Table, *, usage: str, description: str, epilog: str = "", add_help: bool = True
) -> Parser:
    """The parser of a command whose flags stand in a table; text before and after them is printed as it is."""
    parser = Parser(
        prog=prog,
        usage=usage,
        description=description,
        epilog=epilog,
        allow_abbrev=False,
        add_help=add_help,
    )
    parser.add_flags(table)
    return parser


def _needs_file(given: dict[str, Any]) -> bool:
    return "factories_file" in given and not given["factories_file"] and not given.get("locust_file")
