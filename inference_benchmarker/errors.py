"""The one error a user can cause: bad input, told in one sentence with what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


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

    def told(self, clean: Callable[[str], str]) -> dict[str, str]:
        """As it is told to another process; ``clean`` takes out what must not leave this one."""
        return {"message": clean(self.message), "hint": clean(self.hint)}
