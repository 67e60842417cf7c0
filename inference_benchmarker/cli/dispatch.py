"""Which command is meant, and the one way out of each: its exit code, or that of the error that ended it."""

from __future__ import annotations

import io
import os
import sys
import traceback
from importlib import import_module
from typing import TYPE_CHECKING

from inference_benchmarker.cli.exit_codes import BAD_INPUT, BROKEN, INTERRUPTED
from inference_benchmarker.cli.terminal import say
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = ("factory", "check", "report", "client", "endpoint")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that has no ≥ still gets its report
    try:
        return _dispatch(arguments)
    except BenchmarkError as error:
        for line in str(error).splitlines():
            say(f"benchmark: {line}")
        return BAD_INPUT
    except KeyboardInterrupt:
        say("Interrupted before the wave began; nothing was measured.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has left
        return BROKEN
    except Exception:  # a fault of ours keeps its traceback, but not Python's exit code 1: nobody missed a threshold
        traceback.print_exc()
        return BROKEN


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        return _run(arguments[0], arguments[1:])
    if "--compare" in arguments:
        return _run("compare", arguments)
    if any(argument.partition("=")[0] == "--plot" for argument in arguments):
        return _run("plot", arguments)
    if arguments and arguments[0] in ("--init", "--self-test"):
        raise BenchmarkError(
            f"{arguments[0]} is for the launcher of a clone (./benchmark); this installation is set up."
        )
    if arguments and not arguments[0].startswith("-"):
        raise _no_command(arguments[0])
    return _run("wave", arguments)


def _no_command(word: str) -> BenchmarkError:
    from inference_benchmarker.misspelt import as_file, meant, question

    known = (*COMMANDS, "--plot", "--compare")
    hint = as_file(word) or question(meant(word, known))
    return BenchmarkError(
        f"There is no command {word!r}.{hint}", f"Commands are {', '.join(known)}; a wave is told by flags."
    )


def _run(command: str, arguments: list[str]) -> int:
    """Call ``run`` of the command's file, which is imported only now: a command pays for itself alone."""
    run: Callable[[list[str]], int] = import_module(f"{__package__}.{command}").run
    return run(arguments)
