"""The page of all flags, made from the command line's own parsers: ``python -m tests.flags_page`` writes it."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from pathlib import Path
from unittest import mock

from inference_benchmarker.cli import main

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "flags.md"
COMMANDS = (
    "",
    "check",
    "factory",
    "capacity",
    "plan",
    "replay",
    "report",
    "metrics",
    "compare",
    "ab",
    "plot",
    "pareto",
    "client worker-saturation",
    "client rps-saturation",
    "client limits",
    "endpoint",
    "endpoints clean",
    "hosts check",
    "hosts prepare",
    "hosts clean",
    "hosts keys",
    "hosts join",
    "manifests",
    "--kubernetes",
    "capacity --kubernetes",
    "ab --kubernetes",
    "kubernetes fetch",
    "kubernetes clean",
    "kubernetes attend",
    "completion",
)
_UNTITLED = ("options", "positional arguments")
_HEAD = """\
# Flags and keys

Durations are in seconds or have a unit (`500ms`, `10s`, `2m`, `1h`), sizes in bytes or with one (`64KiB`, `1GB`).
"""
_CONFIGURATION = """\
## Configuration file

The flags of a wave are also the keys of a TOML file, without the dashes before them; a flag without a value is `true`,
and a repeatable one is a list. The command line takes precedence:

```toml
# wave.toml
factories-file = "my_endpoint.py"
client-rps = 50
obs-time = 10
workers = 2
slo = ["p99<500ms", "success>=0.999"]
```

```bash
benchmark --config wave.toml --arrivals poisson --seed 7
```

(`my_endpoint.py` is the file of the [first tutorial](../tutorials/first-endpoint.md#the-file); it sends to
`benchmark endpoint --port 8080`.) [Metrics](metrics.md#limits) describes the syntax of an `--slo`, and
[Server metrics](server-metrics.md#the-configuration) the keys of `--endpoint-config`.

## In a clone

`./benchmark --init [--venv PATH] [--with-aiperf]` only sets up the environment, and `./benchmark --self-test` runs the
tests. `python -m tests.flags_page` makes this page from the command line.
"""


def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that answers a command's ``--help``, however it is made."""
    asked: list[argparse.ArgumentParser] = []

    def note(parser: argparse.ArgumentParser, *_: object) -> None:
        asked.append(parser)

    with mock.patch.object(argparse.ArgumentParser, "print_help", note), suppress(SystemExit):
        main([*command.split(), "--help" if command else "--help-all"])
    return asked[0]


def flags_of(command: str) -> set[str]:
    """The flags that a command knows."""
    return {flag for action in parser_of(command)._actions for flag in action.option_strings if flag.startswith("--")}


def flags_page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *map(_section, COMMANDS), _CONFIGURATION])


def _section(command: str) -> str:
    parser = parser_of(command)
    untitled = [action for group in parser._action_groups if group.title in _UNTITLED for action in _shown(group)]
    groups = {str(group.title): _shown(group) for group in parser._action_groups if group.title not in _UNTITLED}
    # A wave's flags without a title only tell of it; another command's are its own.
    groups = {"": untitled, **groups} if command else {**groups, "help": untitled}
    tables = [_table(title, actions) for title, actions in groups.items() if actions]
    parts = [f"## benchmark {command}".rstrip(), *_prose(parser.description), *tables, *_prose(parser.epilog)]
    return "\n\n".join(parts) + "\n"


def _shown(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    return [each for each in group._group_actions if each.dest != "help" and each.help != argparse.SUPPRESS]


def _prose(text: str | None) -> list[str]:
    """The paragraphs of a help text. Commands that are shown or listed there are left out: each has its section."""
    paragraphs = [part for part in (text or "").strip().split("\n\n") if not part.startswith((" ", "commands (each"))]
    lines = [re.sub(":$", ".", " ".join(part.split())) for part in paragraphs if part]
    return [_escaped(line).replace("exit codes:", "Exit codes:") for line in lines]


def _table(title: str, actions: list[argparse.Action]) -> str:
    head = [f"**{title}**", ""] if title else []
    return "\n".join([*head, "| flag | meaning |", "|---|---|", *map(_row, actions)])


def _row(action: argparse.Action) -> str:
    name = " ".join(filter(None, [*action.option_strings[-1:], _metavar(action)]))
    return f"| `{name.replace('|', ' or ')}` | {_meaning(action)} |"


def _metavar(action: argparse.Action) -> str:
    given = action.metavar if isinstance(action.metavar, str) else ""
    return given or ("" if action.option_strings else action.dest.upper())


def _meaning(action: argparse.Action) -> str:
    return _escaped((action.help or "").replace("%%", "%"))


def _escaped(text: str) -> str:
    """Markdown that shows a help text as it stands, with flags and JSON as code."""
    coded = re.sub(r"`[^`]*`|\{\".*?[^,]\}|(?<![\w-])--[a-z][a-z-]+", lambda found: f"`{found[0].strip('`')}`", text)
    return coded.replace("|", "&#124;").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(flags_page())
