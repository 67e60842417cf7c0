"""One turn of a session, as the user's ``session`` yields it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

from inference_benchmarker.words.units import MAX_SECONDS, NS


@dataclass(frozen=True, slots=True)
class Turn:
    """The next request of a session: ``invoke`` gets the payload, and the session what ``invoke`` returned.

    ``think_s``: seconds from the answer before until this is due; None: as ``--think-time`` says, else none. It is not
    asked for of a session's first turn, which is due when the session arrives. ``label``: a row of the report that the
    request is in. Raises TypeError and ValueError where these are none.
    """

    payload: Any
    think_s: float | Decimal | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        label, think_s = self.label, self.think_s
        if label is not None and not isinstance(label, str):
            raise TypeError(f"label must be a text or None, not a {type(label).__name__}")
        if think_s is None:
            return
        is_number = type(think_s) is float or (isinstance(think_s, (Real, Decimal)) and not isinstance(think_s, bool))
        if not is_number:
            raise TypeError(f"think_s must be a number of seconds or None, not a {type(think_s).__name__}")
        if think_s != think_s or not 0 <= think_s <= MAX_SECONDS:  # noqa: PLR0124 - a NaN of Decimal cannot be compared
            raise ValueError(f"think_s must be from 0 to {MAX_SECONDS:,} seconds, not {think_s}")

    @property
    def think_ns(self) -> int | None:
        """The same in whole nanoseconds."""
        return None if self.think_s is None else round(self.think_s * NS)
