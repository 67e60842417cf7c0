"""Runs the waves of a search, each in a run directory inside the search's folder."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inference_benchmarker.engine.launch import run_wave

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.engine.pilot import Pilot
    from inference_benchmarker.engine.progress_listener import Live
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.spool.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.pilot import CapacityPilot
    from server_capacity.experiments.server_side.server_side import ServerSide


@dataclass(slots=True)
class Waves:
    """``say``: a sentence to whoever waits. ``live``: a view of an ordinary wave; of an exploration, of its pilot, too.

    ``server``: whoever is asked about the server. ``announce`` takes an answer for which its metrics are waited for,
    ``finished`` each wave once it is over. ``sent``: requests or sessions so far, after which each wave goes on;
    ``payloads``: how many there are, None where they are built or nothing was sent yet.
    """

    folder: Path
    say: Callable[[str], None]
    live: Callable[[WavePlan, CapacityPilot | None], Live]
    server: ServerSide
    announce: Callable[[str], None]
    finished: Callable[[Wave], None] | None = None
    sent: int = 0
    payloads: int | None = None
    _seed: int | None = field(default=None, repr=False)

    def explore(self, plan: WavePlan, pilot: CapacityPilot) -> Wave:
        """An adaptive wave."""
        pilot.moved = self.server.moved
        return self._run(plan, pilot)

    def warm(self, plan: WavePlan) -> Wave:
        """An ordinary wave of which nothing is measured."""
        return self._run(plan)

    def confirm(self, plan: WavePlan) -> Wave:
        """An ordinary wave."""
        return self._run(plan)

    def prove(self, plan: WavePlan, pilot: Pilot) -> Wave:
        """An ordinary wave that its pilot may end early."""
        return self._run(plan, ending=pilot)

    def _run(self, plan: WavePlan, pilot: CapacityPilot | None = None, ending: Pilot | None = None) -> Wave:
        """Run a wave that repeats neither payloads nor arrivals of those before; read what its server tells at once."""
        if self._seed is None:
            self._seed = secrets.randbits(32) if plan.seed is None else plan.seed
        plan = replace(plan.with_seed(self._seed), first_payload=self.sent)
        beside = self.server.beside(plan.expected_s)
        wave = run_wave(plan, _Noting(self.live(plan, pilot), self), pilot=pilot or ending, beside=beside)
        self._seed += 1
        self.sent += wave.ledger.scheduled + len(wave.warmup) if wave.has_sessions else wave.ledger.sent
        wave = self.server.read(wave)
        if self.finished is not None:
            self.finished(wave)
        return wave


class _Noting:
    """A view that hands on what it gets, and notes the number of payloads."""

    def __init__(self, view: Live, waves: Waves) -> None:
        self._view, self._waves = view, waves
        self.say, self.close = view.say, view.close

    def update(self, spool_state: SpoolState, now_ns: int) -> None:
        """The wave goes on."""
        self._waves.payloads = spool_state.payloads
        self._view.update(spool_state, now_ns)
