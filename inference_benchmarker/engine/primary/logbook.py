"""The primary's logbook: the wave's clock, and the spool that says what happened when."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inference_benchmarker.wave.spool.spool import SpoolWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.engine.primary.launcher_channel import Parent

logger = logging.getLogger("inference_benchmarker.engine.primary")


class Logbook:
    """Owns the spool, and the instant when the wave starts. ``on_full`` is called once, when the disk is full."""

    def __init__(self, spool: Path, parent: Parent) -> None:
        self._spool = SpoolWriter(spool)
        self._parent = parent
        self._t0: int | None = None
        self._is_full_reported = False
        self.on_full: Callable[[], None]

    @property
    def is_begun(self) -> bool:
        """Tells whether the wave has a start."""
        return self._t0 is not None

    def begin(self, t0: int, **known: Any) -> None:
        """The wave starts at ``t0`` (ns, monotonic): written down first, with what is ``known`` by then."""
        wall_ns = time.time_ns() + t0 - time.monotonic_ns()
        self._spool.event(event="start", t0=t0, wall_ns=wall_ns, **known)

    def set_start(self, t0: int) -> None:
        """The start at that instant was sent to every worker."""
        self._t0 = t0

    def now(self) -> int:
        """Nanoseconds after wave start, which must be known."""
        assert self._t0 is not None
        return time.monotonic_ns() - self._t0

    def write(self, **event: Any) -> None:
        """Write down what nobody may act upon before it is; OSError where that cannot be."""
        self._spool.event(**event)

    def note(self, **event: Any) -> None:
        """Write down what happened; where it cannot be written, what is there shows it."""
        with suppress(OSError):
            self._spool.event(**event)

    def take_batch(self, batch: bytes) -> bool:
        """Write down a worker's batch; False where no place is left for it, so that nobody may believe it stored."""
        written = True
        try:
            self._spool.batch(batch)
        except OSError:
            logger.exception("the batch of a worker cannot be written anywhere")
            written = False
        if self._spool.error is not None and not self._is_full_reported:
            self._is_full_reported = True
            logger.error("the run directory cannot be written: %s", self._spool.error)
            self._parent.tell("disk", error=str(self._spool.error.strerror), spool=str(self._spool.path))
            self.on_full()
        return written

    def close(self) -> None:
        """Nothing more is written."""
        self._spool.close()
