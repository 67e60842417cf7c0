"""Whoever changes the load of a wave while it runs: a person at the keys, or a search for the capacity."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from inference_benchmarker.plan.load import MAX_CONCURRENCY
from inference_benchmarker.plan.numbers import take_exactly
from inference_benchmarker.plan.stage import LEAST_RATE, MAX_RATE
from inference_benchmarker.plan.steering import can_be_offered, can_be_present

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.wave.spool.spool_state import SpoolState


@dataclass(frozen=True, slots=True)
class Rate:
    """An order: so many requests/s from now on, 0 for a pause. ValueError for a rate that no stage may have."""

    rps: Decimal

    def __post_init__(self) -> None:
        take_exactly(self, "rps")
        if not can_be_offered(self.rps):
            raise ValueError(f"a rate must be 0 or from {LEAST_RATE} to {MAX_RATE:,} requests/s, not {self.rps}")

    @property
    def command(self) -> str:
        """The line that the primary understands."""
        return f"rate {self.rps}"


@dataclass(frozen=True, slots=True)
class Users:
    """An order: so many users of a closed loop from now on, 0 for a pause. ValueError for a number there cannot be.

    New ones begin as if they had been thinking for long; those who are too many leave, who thinks at once and others
    with their answer.
    """

    number: int

    def __post_init__(self) -> None:
        if not can_be_present(Decimal(self.number)):
            raise ValueError(f"there must be a whole number of users, {MAX_CONCURRENCY:,} at most, not {self.number}")

    @property
    def command(self) -> str:
        """The line that the primary understands."""
        return f"users {self.number}"


@dataclass(frozen=True, slots=True)
class End:
    """An order: the wave is over as planned. Nothing more is sent, and what is in flight is waited for."""

    @property
    def command(self) -> str:
        """The line that the primary understands."""
        return "end"


Order = Rate | Users | End


class Pilot(Protocol):
    """Steers a wave whose load is ``steered``."""

    def orders(self, spool_state: SpoolState, now_ns: int) -> Iterable[Order]:
        """The orders of this moment, often none. Asked about fifty times a second, so it must not wait.

        ``spool_state`` is what the workers reported, read twice a second: ``ledger``, ``feed`` with counts and times of
        each second and stage, and in ``changes`` the changes so far with the instants from which on they hold.
        ``now_ns`` is nanoseconds after wave start, below 0 in the warm-up, which keeps the first rate: one that is
        ordered then is refused. A new rate holds about 110 ms after the order. An exception ends the wave, whose run
        directory stays.
        """
