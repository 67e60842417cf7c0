"""``benchmark completion``: the script by which a shell completes commands, flags, choices and files."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.arguments import Parser
from inference_benchmarker.cli.dispatch import home_of
from inference_benchmarker.exit_codes import OK

if TYPE_CHECKING:
    from collections.abc import Callable

SHELLS = ("bash", "zsh")
_DESCRIPTION = """\
Prints a script that gives your shell tab completion of commands, flags and files:

  echo 'eval "$(benchmark completion bash)"' >> ~/.bashrc
  benchmark completion zsh > "${fpath[1]}/_benchmark"
"""
_ABOUT = {
    "factory": "list or copy an example",
    "check": "send one request",
    "capacity": "the highest rate that meets the limits",
    "plan": "plan instances for a target rate",
    "plot": "plot one or more runs on a page",
    "compare": "what changed between runs",
    "ab": "which of two endpoints is faster",
    "pareto": "compare tokens/s per user and per GPU, and cost",
    "replay": "describe a recording",
    "report": "print the report of a run",
    "metrics": "the server's metrics for a past period",
    "client": "how much load this machine can send",
    "endpoint": "the embedded endpoint on its own",
    "endpoints": "undo what killed commands left behind",
    "hosts": "check or install on other hosts",
    "manifests": "print Kubernetes objects that send load from pods",
    "kubernetes": "fetch or remove waves from pods",
    "completion": "the script for a shell",
}
_SATURATION = "saturation_parser"
_PARTS: dict[str, list[tuple[str, ...]]] = {
    "client": [
        ("limits", "limits_parser"),
        *((part, _SATURATION, part) for part in ("worker-saturation", "rps-saturation")),
    ],
    "endpoints": [("clean", "clean_parser")],
    "kubernetes": [(part, "kubernetes_parser", part) for part in ("fetch", "clean", "attend")],
    "hosts": [(part, "hosts_parser", part) for part in ("check", "prepare", "clean", "keys", "join")],
}
_LAST_WORD = "\n      esac"
"""The end of the choice among commands in a script for zsh. An address is none of them, and has a wave's flags."""

_WORDS = {"arrivals": ("constant", "poisson"), "records": ("all", "none")}


def run(arguments: list[str]) -> int:
    """The command, and its exit code."""
    options = completion_parser().parse_args(arguments)
    import shtab  # what makes such scripts of parsers; nobody else needs it

    script = shtab.complete(whole_parser(), shell=options.shell)
    if options.shell == "zsh":
        script = script.replace(
            _LAST_WORD, f"\n        *) _arguments -C -s $_shtab_benchmark_options ;;{_LAST_WORD}", 1
        )
    print(script, flush=True)
    return OK


def completion_parser() -> Parser:
    """Its arguments, and its help."""
    parser = Parser(
        prog="benchmark completion",
        description=_DESCRIPTION,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash or zsh")
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """All commands as one parser, as a shell sees them: a command's flags after its name, a wave's without one."""
    whole = argparse.ArgumentParser("benchmark", parents=[_made("wave", "wave_parser")], add_help=False)
    commands = whole.add_subparsers()
    for name, about in _ABOUT.items():
        if name in _PARTS:
            below = commands.add_parser(name, help=about).add_subparsers()
            for part, made, *given in _PARTS[name]:
                below.add_parser(part, help=part, parents=[_made(name, made, *given)], add_help=False)
        else:
            commands.add_parser(name, help=about, parents=[_made(name, f"{name}_parser")], add_help=False)
    _let_ab_know(commands.choices["ab"], whole)
    for parser in _all(whole):
        for action in parser._actions:  # noqa: SLF001 - argparse has no other way to go through them
            _say_kind(action)
    return whole


def _let_ab_know(parser: argparse.ArgumentParser, wave: argparse.ArgumentParser) -> None:
    """Add what ``benchmark ab`` takes beside its own flags: two endpoints, and a wave's flags, some of one side."""
    from inference_benchmarker.cli.compare.ab_flags import NOT_HERE, OF_A_SIDE

    for side in ("first", "second"):
        parser.add_argument(side, metavar="FILE", help="a factories file, an example or a URL")
    for action in wave._actions:  # noqa: SLF001 - as above
        flag = "".join(action.option_strings)
        if flag in NOT_HERE or flag in parser._option_string_actions or not flag.startswith("--"):  # noqa: SLF001
            continue
        for name in (flag, *(f"{flag}-{side}" for side in "ab" if flag in OF_A_SIDE)):
            fields: dict[str, Any] = {"help": action.help, "default": None}
            if action.nargs == 0:
                parser.add_argument(name, action="store_true", **fields)
            else:
                parser.add_argument(name, metavar=action.metavar, dest=action.dest, **fields)


def _made(module: str, name: str, *given: str) -> argparse.ArgumentParser:
    make: Callable[..., argparse.ArgumentParser] = getattr(import_module(home_of(module)), name)
    return make(*given)


def _all(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    below = [each for action in parser._actions if isinstance(action.choices, dict) for each in action.choices.values()]  # noqa: SLF001
    return [parser, *(found for each in below for found in _all(each))]


def _say_kind(action: Any) -> None:
    """Tell what may stand for a value, by the word that help has for it: a file, a folder, or one of a few words."""
    import shtab

    if action.help == argparse.SUPPRESS and not action.option_strings:  # which help tells elsewhere
        action.help = None
    value = action.metavar if isinstance(action.metavar, str) else ""
    if "FILE" in value:
        action.complete = shtab.FILE
    elif "DIR" in value or "BASE" in value:
        action.complete = shtab.DIRECTORY
    elif action.dest in _WORDS:
        action.choices = _WORDS[action.dest]
    elif action.dest == "name" and not action.option_strings:
        from inference_benchmarker.cli.core.examples import shipped

        action.choices = [example.name for example in shipped()]
