"""Which command is meant, and the one way out of each: its exit code, or that of the error that ended it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.redacting_stream import READER_LEFT, redacted_streams
from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.errors import BenchmarkError, LostProcessError, NotStartedError, interrupt, refuse
from inference_benchmarker.exit_codes import BAD_INPUT, INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.words.redact import hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

AGAIN_S = 0.02
COMMANDS = (
    "factory",
    "check",
    "capacity",
    "plan",
    "replay",
    "report",
    "metrics",
    "compare",
    "ab",
    "pareto",
    "client",
    "endpoint",
    "endpoints",
    "hosts",
    "manifests",
    "kubernetes",
    "completion",
)
_FAMILIES = {
    "wave": ("wave", "check", "replay", "metrics", "hosts", "manifests"),
    "capacity": ("capacity", "plan"),
    "compare": ("compare", "ab", "plot", "pareto"),
    "endpoint": ("factory", "client", "endpoint", "endpoints"),
    "report": ("report",),
    "kubernetes": ("kubernetes", "in_pods"),
}
_HOMES = {command: f"{family}.{command}" for family, commands in _FAMILIES.items() for command in commands}
_IN_PODS = ("capacity", "ab")
_LIGHT = ("factory", "endpoints", "completion")
_ASK_FOR_HELP = {"-h", "--help", "--help-all", "--version"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and _runs_user_code(arguments):
        from inference_benchmarker.system.host import adopt_orphans

        adopt_orphans()
    with redacted_streams() as (out, _), _ending_like_ctrl_c():
        code = _guarded(arguments, last=argv is None)
        if argv is None:
            gc.freeze()  # or Python would look through every object once more before it ends
        out.flush()
        if out.error is not None and out.error.errno not in READER_LEFT and code in (OK, MISSED):
            say(f"benchmark: the result could not be written to standard output ({out.error.strerror}).")
            return INVALID
        return code


def home_of(command: str) -> str:
    """The name of the module that runs a command."""
    return f"{__package__}.{_HOMES.get(command, command)}"


def _runs_user_code(arguments: Sequence[str]) -> bool:
    """Tells whether the command may start a factories file, which may start anything."""
    if not arguments or _ASK_FOR_HELP & set(arguments):
        return False
    return arguments[0] in ("check", "capacity", "ab", "client") or arguments[0] not in (*COMMANDS, "plot")


def _guarded(arguments: list[str], *, last: bool) -> int:
    try:
        try:
            return _dispatch(arguments)
        finally:
            if last:
                _heed_no_more()
    except BenchmarkError as error:
        for line in hidden(str(error)).splitlines():
            say(f"benchmark: {line}")
        return BAD_INPUT
    except NotStartedError as error:
        say(f"benchmark: {error}")
        return INVALID
    except KeyboardInterrupt as error:
        say(str(error) or "Interrupted.")
        return INTERRUPTED
    except Exception as error:
        problem = _of_the_users(error, arguments)
        if problem is None:
            return _broken(error)
        say(f"benchmark: {problem}")
        return BAD_INPUT


def _of_the_users(error: Exception, arguments: list[str]) -> str | None:
    """The sentence on a path of the user's that cannot be used; what we make ourselves is looked after where it is."""
    if isinstance(error, PermissionError) and isinstance(error.filename, str):
        from inference_benchmarker.cli.core.given_paths import was_given
        from inference_benchmarker.system.files import closed

        return closed(error) if was_given(error.filename, arguments) else None
    if isinstance(error, FileNotFoundError) and not _has_a_folder():
        return "The current folder was deleted, so relative paths do not work. Change to another folder (cd)."
    return None


def _has_a_folder() -> bool:
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False


def _broken(error: Exception) -> int:
    """Report a host out of resources or a process that was killed in words, our fault with its traceback.

    Exit code 1 is for missed limits.
    """
    from inference_benchmarker.system.out_of_resources import out_of_resources

    cause = out_of_resources(error) or (str(error) if isinstance(error, LostProcessError) else None)
    say(traceback.format_exc().rstrip() if cause is None else f"benchmark: {cause}")
    return INVALID


@contextmanager
def _ending_like_ctrl_c() -> Iterator[None]:
    """Ctrl-C, the terminal's end and a request to end are one at every stage, but for who has them ignored (nohup)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual: dict[int, Callable[[int, FrameType | None], object] | signal.Handlers] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    numbers = [number for number, handler in usual.items() if signal.getsignal(number) == handler]
    for number in numbers:
        signal.signal(number, interrupt)
    before, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for number in numbers:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, usual[number])


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """An interrupt that came while Python finalised an object was swallowed there: it comes once more."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        threading.Timer(AGAIN_S, os.kill, [os.getpid(), signal.SIGINT]).start()
    else:
        sys.__unraisablehook__(lost)


def _heed_no_more() -> None:
    """The result is out, and Python takes a while to end: what is pressed meanwhile no longer changes the exit code."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


def _dispatch(arguments: list[str]) -> int:
    if "--kubernetes" in arguments:
        _refuse_in_pods(arguments[0])
        return _run("in_pods", arguments)
    if arguments and arguments[0] in COMMANDS:
        return _run(arguments[0], arguments[1:])
    if "--compare" in arguments:
        return _run("compare", arguments)
    if arguments[:1] == ["plot"]:
        return _run("plot", arguments[1:])
    if any(argument.partition("=")[0] == "--plot" for argument in arguments):
        return _run("plot", arguments)
    if arguments and arguments[0] in ("--init", "--self-test"):
        raise BenchmarkError(
            f"{arguments[0]} is for the launcher of a clone (./benchmark); this installation is set up."
        )
    names = (argument.partition("=")[0] for argument in arguments)
    if searching := next((name for name in names if name in ("--vary", "--verify")), None):
        raise BenchmarkError(f"{searching} belongs to `benchmark capacity`.")
    if arguments and not arguments[0].startswith("-") and not _is_address(arguments[0]):
        raise _no_command(arguments[0])
    return _run("wave", arguments)


def _refuse_in_pods(command: str) -> None:
    """Only commands that send waves run in pods."""
    if command in (*COMMANDS, "plot") and command not in _IN_PODS:
        raise BenchmarkError(
            f"--kubernetes is for a wave, `capacity` and `ab`, not for `benchmark {command}`.",
            f"Its flags: {', '.join(f'benchmark{name} --kubernetes --help' for name in ('', ' capacity', ' ab'))}.",
        )


def _is_address(word: str) -> bool:
    from inference_benchmarker.cli.core.address_flags import looks_like_address

    return looks_like_address(word)


def _no_command(word: str) -> BenchmarkError:
    from inference_benchmarker.words.suggest import as_file, meant, question

    known = (*COMMANDS, "plot")
    hint = as_file(word) or question(meant(word, known)) or _other(word)
    return BenchmarkError(
        f"There is no command {word!r}.{hint}",
        f"Commands are {', '.join(known)}; a wave is given by flags.",
    )


def _other(word: str) -> str:
    """The advice for a word that is like no command, after a blank: a folder, or the beginning of an address."""
    if Path(word).is_dir():
        return f" A run is printed again by `benchmark report {word}`, and drawn by `benchmark plot {word}`."
    return f" Did you mean http://{word}?" if "." in word.partition("/")[0].strip(".") else ""


def _run(command: str, arguments: list[str]) -> int:
    """Call ``run`` of the command's file, which is imported only now: a command pays for itself alone."""
    if command not in _LIGHT and not _ASK_FOR_HELP & set(arguments):
        from inference_benchmarker.system.host import usable_cores
        from inference_benchmarker.system.out_of_resources import space_problems

        refuse(space_problems(usable_cores(), os.environ))
    run: Callable[[list[str]], int] = import_module(home_of(command)).run
    return run(arguments)
