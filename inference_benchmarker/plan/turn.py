"""One turn of a session, as the user's ``session`` yields it."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from inference_benchmarker.records.record import MOST_TURN
from inference_benchmarker.words.units import MAX_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_SECONDS = float(MAX_SECONDS)
_new = tuple.__new__


class _Fields(NamedTuple):
    payload: Any
    think_s: float | Decimal | None = None
    label: str | None = None
    left: int | None = None


class Turn(_Fields):
    """The next request of a session: ``invoke`` gets the payload, and the session what ``invoke`` returned.

    ``think_s``: seconds from the previous answer until this is due; None means ``--think-time``, or 0 without it. It is
    ignored for a session's first turn, which is due when the session arrives. ``label``: the row of the report
    for the request. ``left``: how many turns of its session follow this one, where the session knows; it counts those
    that are not begun, since this one fails or the wave ends. Raises TypeError and ValueError if a value is not valid.
    """

    # A tuple, since each turn makes one while others wait to be sent: a frozen dataclass takes 1 us longer to make.
    __slots__ = ()

    def __new__(
        cls,
        payload: Any,
        think_s: float | Decimal | None = None,
        label: str | None = None,
        left: int | None = None,
    ) -> Self:
        """Check what was given; the usual ways take no call."""
        if label is not None and type(label) is not str:
            _check_label(label)
        if think_s is not None and not (type(think_s) is float and 0 <= think_s <= _MAX_SECONDS):
            _check_think_s(think_s)
        if left is not None and not (type(left) is int and 0 <= left <= MOST_TURN):
            _check_left(left)
        return _new(cls, (payload, think_s, label, left))

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override] # of a NamedTuple: for any class
        """The turn of its fields, checked as well: ``_replace`` makes one in this way."""
        return cls(*iterable)


def _check_label(label: Any) -> None:
    if not isinstance(label, str):
        raise TypeError(f"label must be a string or None, not a {type(label).__name__}")


def _check_think_s(think_s: Any) -> None:
    is_number = isinstance(think_s, (Real, Decimal)) and not isinstance(think_s, bool)
    if not is_number:
        raise TypeError(f"think_s must be a number of seconds or None, not a {type(think_s).__name__}")
    if think_s != think_s or not 0 <= think_s <= MAX_SECONDS:  # noqa: PLR0124 - a NaN of Decimal cannot be compared
        raise ValueError(f"think_s must be from 0 to {MAX_SECONDS:,} seconds, not {think_s}")


def _check_left(left: Any) -> None:
    if not isinstance(left, int) or isinstance(left, bool):
        raise TypeError(f"left must be a whole number of turns or None, not a {type(left).__name__}")
    if not 0 <= left <= MOST_TURN:
        raise ValueError(f"left must be from 0 to {MOST_TURN:,} turns, not {left}")
