"""The primary's part of a load that changes: when a change comes into force, and that it is written down first."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import MAX_STAGES, ClosedLoop
from inference_benchmarker.plan.steering import MS, RateChange, can_be_offered, can_be_present, whole_ms

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan

LEAD_NS = 110 * MS
"""How long before it is in force a change is sent: a worker hears of it within some milliseconds, a busy one later."""


class Steering:
    """The changes of a wave's rate so far, or of its number of users."""

    def __init__(self, plan: WavePlan) -> None:
        load = plan.load
        self._steered = load.is_steered
        self._in_users = isinstance(load, ClosedLoop)
        self._rate = Decimal(load.concurrency) if isinstance(load, ClosedLoop) else load.rate
        self._end_ns = plan.bounds.duration_ns
        self._stages = 1
        self._last_ns = 0

    def change(self, text: str, now_ns: int) -> RateChange | None:
        """The change that a command asks for, which then counts as made; None where the rate is that already.

        ValueError with the reason where it cannot be.
        """
        rate = _users(text) if self._in_users else _rate(text)
        at = max(whole_ms(now_ns + LEAD_NS), self._last_ns + MS)
        if not self._steered:
            raise ValueError("the rate of this wave is fixed")
        if now_ns < 0:
            raise ValueError("the warm-up keeps the first rate")
        if self._stages >= MAX_STAGES:
            raise ValueError(f"the rate was changed {MAX_STAGES - 1:,} times, which is the limit")
        if self._end_ns is not None and at >= self._end_ns:
            raise ValueError("the wave ends before it could take effect")
        if rate == self._rate:
            return None
        self._rate, self._last_ns = rate, at
        self._stages += 1
        return RateChange(at, rate)


def _rate(text: str) -> Decimal:
    if not can_be_offered(rate := _number(text)):
        raise ValueError(f"{text} requests/s cannot be offered")
    return rate


def _users(text: str) -> Decimal:
    if not can_be_present(users := _number(text)):
        raise ValueError(f"there cannot be {text} users")
    return users


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")
