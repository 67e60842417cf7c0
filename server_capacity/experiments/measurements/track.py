"""Keeps the stretches of a wave while it runs, from what comes in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from server_capacity.search.stretch import Slice, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Track:
    """Stretches in the order of their changes. What comes in late is added to the stretch that it belongs to."""

    _ended: list[Stretch] = field(default_factory=list)
    _running: Stretch | None = None
    _slices: dict[int, list[Slice]] = field(default_factory=dict)

    def change(self, number: int, at_s: float, rate: float, purpose: str, in_flight: int = 0) -> None:
        """Ends the stretch that runs, with ``in_flight`` requests not answered, and begins stage ``number``."""
        before = 0.0
        if self._running is not None:
            before = self._running.rate
            slices = tuple(self._slices.pop(self._running.number, ()))
            self._ended.append(replace(self._running, end_s=at_s, slices=slices, in_flight=in_flight))
        self._running = Stretch(number, rate, at_s, at_s, (), purpose, before, inherited=in_flight)
        self._slices[number] = []

    def add(self, number: int, counted: Slice) -> None:
        """Adds what was counted in a part of stage ``number``."""
        self._slices.setdefault(number, []).append(counted)

    def void(self, reason: str) -> None:
        """Says why the stretch that runs counts for nothing."""
        if self._running is not None:
            self._running = replace(self._running, void=reason)

    def stretches(self, now_s: float, in_flight: int = 0) -> tuple[Stretch, ...]:
        """All stretches; the last one runs and ends now, with ``in_flight`` requests not answered."""
        if self._running is None:
            return ()
        self._take_in_late()
        slices = tuple(self._slices[self._running.number])
        return (*self._ended, replace(self._running, end_s=now_s, slices=slices, in_flight=in_flight))

    def _take_in_late(self) -> None:
        """Slices of stretches that have ended already."""
        late = [number for number in self._slices if self._running is None or number != self._running.number]
        for number in late:
            arrived = self._slices.pop(number)
            for place in reversed(range(len(self._ended))):
                if self._ended[place].number == number:
                    ended = self._ended[place]
                    self._ended[place] = replace(ended, slices=_in_order((*ended.slices, *arrived)))
                    break


def _in_order(slices: Iterable[Slice]) -> tuple[Slice, ...]:
    return tuple(sorted(slices, key=lambda counted: counted.start_s))
