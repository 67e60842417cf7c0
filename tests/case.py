"""The rows of a table that one test goes through: a failure names its row."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def case(*row: object) -> Iterator[None]:
    """What is asserted within holds for this row of the table."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case {', '.join(map(repr, row))}")
        raise
