"""Lines of a file that hold no conversation: counted, and the first one is named."""

from __future__ import annotations

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.words.redact import excerpt
from inference_benchmarker.words.wording import pluralize

MOST_IN_A_ROW = 1_000_000
"""Blank and bad lines without a good one between them: what has more is no file of conversations."""
_MOST_REASON = 120


class LeftOut:
    """Counts what is left out of a file. ``first``: where the first one stands, and what is wrong with it."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        self._in_a_row = 0

    def add(self, line: int, reason: str) -> None:
        """A line that holds no conversation. BenchmarkError after too many of them in a row."""
        self.count += 1
        self.first = self.first or f"line {line:,}: {excerpt(reason, _MOST_REASON)}"
        self.pass_over()

    def pass_over(self) -> None:
        """A blank line. BenchmarkError as for others."""
        self._in_a_row += 1
        if self._in_a_row > MOST_IN_A_ROW:
            raise BenchmarkError(
                f"more than {MOST_IN_A_ROW:,} lines in a row hold no conversation{self._first_one}.",
                "Cut the file there.",
            )

    def good(self) -> None:
        """A line that holds one."""
        self._in_a_row = 0

    @property
    def text(self) -> str:
        """The words for it; nothing where nothing is left out."""
        return f"{pluralize(self.count, 'line', 'lines')} left out{self._first_one}" if self.count else ""

    @property
    def _first_one(self) -> str:
        return f" (the first is {self.first})" if self.first else ""
