"""A wave that runs: what those who watch it in the process that leads it go by, and may do to it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.verdict.aborts import aborted_text

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.engine.hosts.group import HostGroup
    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from inference_benchmarker.engine.progress_listener import FaultTolerantView
    from inference_benchmarker.engine.watchers.wave_processes import PrimaryProcess
    from inference_benchmarker.facts.aborted import Aborted
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool.spool_state import SpoolState


class RunningWave:
    """One wave, its processes and how far it is.

    ``t0``: its start on the monotonic clock, ns; None before. ``missing``: workers that have not loaded their target.
    ``drained_by``: when (monotonic, s) what is in flight is not waited for any more, if it was ended early.
    """

    def __init__(
        self,
        plan: WavePlan,
        run_dir: RunDir,
        *,
        primary: PrimaryProcess,
        host: HostGroup,
        spool_state: SpoolState,
        interrupts: Interrupts,
        live: FaultTolerantView,
    ) -> None:
        self.plan = plan
        self.run_dir = run_dir
        self.primary = primary
        self.host = host
        self.spool_state = spool_state
        self.interrupts = interrupts
        self.live = live
        self.t0: int | None = None
        self.missing = list(range(plan.workers))
        self.is_listening = False
        self.disk_error: str | None = None
        self.loopback_down_ns: int | None = None
        self.ended_early = False
        self.drained_by: float | None = None

    @property
    def now_ns(self) -> int | None:
        """Nanoseconds after wave start; None before it."""
        return None if self.t0 is None else time.monotonic_ns() - self.t0

    @property
    def is_interrupted(self) -> bool:
        """Tells whether a person ended it."""
        return self.interrupts.count > 0

    @property
    def file(self) -> Path | None:
        """The user's file, which every worker loads."""
        return self.plan.factories_file or self.plan.locust_file

    def end_early(self, aborted: Aborted) -> None:
        """Have nothing more sent, and say why."""
        self.ended_early = True
        self.primary.tell(f"aborted {json.dumps(encoded(aborted))}")
        self.live.say(f"Ending the wave: {aborted_text(aborted)}.")


class Every:
    """Says when it is time again, first at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next_s = 0.0

    def due(self, now_s: float) -> bool:
        """Tells whether it is time; the next time is so many seconds later."""
        if now_s < self._next_s:
            return False
        self._next_s = now_s + self._seconds
        return True

    def at_once(self) -> None:
        """The next time is now."""
        self._next_s = 0.0
