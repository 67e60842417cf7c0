"""The one error a user can cause: bad input, in one sentence with what to try; and what else users see of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType


class BenchmarkError(Exception):
    """Bad input or an impossible environment: says what was given, what was expected and what to try.

    The command line prints it as one line, without a traceback, and exits with 2. A broken harness is
    never a BenchmarkError: it is an exception that keeps its traceback.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def to_json(self, clean: Callable[[str], str]) -> dict[str, str]:
        """The members of a message to another process; ``clean`` takes out what must not leave this one."""
        return {"message": clean(self.message), "hint": clean(self.hint)}


class NoWaveError(RuntimeError):
    """A wave that never began, for no fault of the user's: what was measured before it is still worth keeping."""

    @property
    def event(self) -> str:
        """It as a result has it that has to do without the wave."""
        return str(self)


class LostProcessError(NoWaveError):
    """A process of ours ended that was needed; the text ends with the last words of its log."""

    def __init__(self, event: str, last_words: str) -> None:
        said = f"ends with:\n{last_words}" if last_words else "is empty"
        super().__init__(f"{event}; its log {said}")
        self._event = event

    @property
    def event(self) -> str:
        """It without the log."""
        return self._event


class Interrupted(KeyboardInterrupt):
    """An interrupt of a command, by Ctrl-C, SIGTERM or the terminal's end.

    A type of its own: once a KeyboardInterrupt itself has passed through an ``exec()`` of text, as each import of
    dataclasses has many, ``python -m`` ends by SIGINT whatever exit code it was given.
    """


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """The handler of a signal that interrupts a command."""
    raise Interrupted


class NotStartedError(NoWaveError):
    """A wave that was ready could not be started, and no load was sent: a few lines, with exit code 3."""


class Problem(NamedTuple):
    """Something that is wrong with a value: the fields that it comes from, and the sentence that a user reads."""

    fields: tuple[str, ...]
    text: str


def refuse(problems: Sequence[str]) -> None:
    """Raise one BenchmarkError that names every problem, if there is any."""
    if problems:
        raise BenchmarkError("\n".join(problems))
