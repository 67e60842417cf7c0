"""Who steers a wave by a timetable, and who looks on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference_benchmarker.engine.progress_listener import NullView
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.pilot import Order
    from inference_benchmarker.wave.spool.spool_state import SpoolState


@dataclass
class Script:
    """Gives each order when its time has come: seconds after wave start."""

    orders_at: list[tuple[float, Order]]
    act: dict[int, Callable[[], None]] = field(default_factory=dict)
    given: int = 0

    def orders(self, _: SpoolState, now_ns: int) -> list[Order]:
        found = []
        while self.given < len(self.orders_at) and self.orders_at[self.given][0] * NS <= now_ns:
            self.act.get(self.given, lambda: None)()
            found.append(self.orders_at[self.given][1])
            self.given += 1
        return found


class Watching(NullView):
    """Keeps what the view of a wave is shown."""

    def update(self, spool_state: SpoolState, now_ns: int) -> None:  # noqa: ARG002 - as Live has it
        self.spool_state = spool_state
