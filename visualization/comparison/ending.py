"""The end of a comparison: its exit code, the word of it, and the waves that are missing. Pure.

The first and the last line of every form, the exit code and the outcome for programs follow from these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.words.text import one_line

Outcome = Literal["interrupted", "invalid", "failed", "undecided", "passed"]

EXIT_CODES: dict[Outcome, int] = {
    "interrupted": INTERRUPTED,
    "invalid": INVALID,
    "failed": MISSED,
    "undecided": OK,
    "passed": OK,
}
_LONG = 240
# of 0 passed, the last: the code alone does not tell it from undecided
OUTCOMES: dict[int, Outcome] = {code: outcome for outcome, code in EXIT_CODES.items()}


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a comparison before all its waves: ``counted`` of ``planned`` are compared, where that is known.

    It is also that of one whose runs did not end as planned. ``why``: a clause; empty where the outcome's word says it.
    ``exit_code``: of this end, whatever the waves show.
    """

    exit_code: int
    why: str
    counted: int = 0
    planned: int = 0

    @property
    def text(self) -> str:
        """All of it in clauses."""
        counted = f"{self.counted} of {self.planned} waves counted" if self.planned else ""
        return "; ".join(filter(None, [one_line(self.why, _LONG), counted]))


def ended_early(outcome: Outcome, cut: Cut) -> str:
    """The beginning of a first line: ``INTERRUPTED (5 of 16 waves counted)``."""
    return f"{outcome.upper()} ({cut.text})"
