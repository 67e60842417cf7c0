"""Runs the waves of a search, each in a run directory inside the search's folder."""

from __future__ import annotations

import secrets
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inference_benchmarker.engine.launch import run_wave

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from inference_benchmarker.engine.live import Live
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.capacity.pilot import CapacityPilot


@dataclass(slots=True)
class Waves:
    """``say``: a sentence to whoever waits. ``live``: a view of an ordinary wave; of an exploration, of its pilot, too.

    ``metered``: the wave with what its server's metrics say, waited for, and stored. ``beside``: what follows the
    server's instances meanwhile. ``sent``: requests so far, after which each wave takes up the payloads; ``payloads``:
    how many there are, None where they are built or nothing was sent yet.
    """

    folder: Path
    say: Callable[[str], None]
    live: Callable[[WavePlan, CapacityPilot | None], Live]
    metered: Callable[[Wave], Wave] = lambda wave: wave
    begin: Callable[[], None] = lambda: None
    beside: Callable[[RunDir], AbstractContextManager[object]] = nullcontext
    sent: int = 0
    payloads: int | None = None
    _seed: int | None = field(default=None, repr=False)

    def explore(self, plan: WavePlan, pilot: CapacityPilot) -> Wave:
        """An adaptive wave."""
        return self._run(plan, pilot)

    def confirm(self, plan: WavePlan) -> Wave:
        """An ordinary wave, with its server's metrics."""
        self.begin()
        return self.metered(self._run(plan))

    def _run(self, plan: WavePlan, pilot: CapacityPilot | None = None) -> Wave:
        """Run a wave that repeats neither payloads nor arrivals of those before."""
        if self._seed is None:
            self._seed = secrets.randbits(32) if plan.seed is None else plan.seed
        plan = replace(plan, seed=self._seed, first_payload=self.sent)
        wave = run_wave(plan, _Noting(self.live(plan, pilot), self), pilot=pilot, beside=self.beside)
        self._seed += 1
        self.sent += wave.ledger.sent
        return wave


class _Noting:
    """A view that hands on what it is told, and notes the number of payloads."""

    def __init__(self, view: Live, waves: Waves) -> None:
        self._view, self._waves = view, waves
        self.say, self.close = view.say, view.close

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        self._waves.payloads = spool_state.payloads
        self._view.update(spool_state, now_ns)
