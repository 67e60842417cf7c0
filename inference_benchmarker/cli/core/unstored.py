"""An answer that cannot be stored: it is printed all the same, then a line says why, and the exit code is 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import INVALID, worst_exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def stored(save: Callable[[], T], found: T) -> tuple[T, BenchmarkError | None]:
    """The answer as ``save`` gives it, with its digest; as it was, and the error, where it cannot be written."""
    try:
        return save(), None
    except BenchmarkError as error:
        return found, error


def code_of(exit_code: int, unsaved: BenchmarkError | None) -> int:
    """The exit code of an answer that was printed; INVALID, after its line, where it was not stored, or graver."""
    from server_capacity.results.types.result_status import UNSAVED

    if unsaved is None:
        return exit_code
    say(f"{unsaved.message} {UNSAVED}")
    return worst_exit_code(exit_code, INVALID)
