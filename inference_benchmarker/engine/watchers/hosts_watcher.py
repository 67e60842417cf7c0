"""Watches the hosts of a running wave: which are lost, their samples, and their clocks once it is asked."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.places import place_of
from inference_benchmarker.engine.watchers.running_wave import Every
from inference_benchmarker.version import __version__
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.engine.hosts.remote import RemoteHost
    from inference_benchmarker.engine.watchers.running_wave import RunningWave

SAMPLES_S = 1.0
_HERE: dict[str, Any] = {
    "versions": {"benchmark": __version__},
    "constants": {},
    "clock": None,
    "lost": None,
    "node": None,
}


class HostsWatcher:
    """Looks after the hosts that are reached over a transport; this machine needs nobody who does."""

    def __init__(self, wave: RunningWave, remotes: Sequence[RemoteHost]) -> None:
        self._wave = wave
        self._remotes = remotes
        self._reported: set[str] = set()
        self._samples = Every(SAMPLES_S)
        self._asked = False

    def ask_clocks(self) -> None:
        """The primary wants to know what the clocks show."""
        self._asked = True
        for remote in self._living():
            remote.link.measure_clock()

    def look(self, now_s: float) -> None:
        """Say which host is lost, and tell the primary what the others said."""
        for remote in self._remotes:
            if remote.problem and remote.name not in self._reported:
                self._reported.add(remote.name)
                self._wave.live.say(f"{remote.name} is lost: {remote.problem}.")
        if self._asked and not any(remote.link.clock.left for remote in self._living()):
            self._asked = False
            self._wave.primary.tell(f"clocks {json.dumps(self._clocks())}")
        if self._remotes and self._samples.due(now_s):
            for remote in self._remotes:
                if samples := remote.samples():
                    self._wave.primary.tell(f"samples {json.dumps({'host': remote.name, 'samples': samples})}")

    def with_local_paths(self, problem: str) -> str:
        """A problem of a worker's, with the paths that the user's files have on this machine, and what mends it."""
        for remote in self._remotes:
            problem = remote.here(problem)
        return problem + next(filter(None, (remote.lacking_file(problem) for remote in self._remotes)), "")

    def facts(self) -> list[dict[str, Any]]:
        """The facts of each host, as ``HostFacts`` reads them."""
        remotes = {remote.name: remote for remote in self._remotes}
        return [
            self._facts(remotes[name]) if name in remotes else {**_HERE, "name": name, "workers": list(numbers)}
            for name, numbers in self._wave.plan.hosts.numbers.items()
        ]

    def _living(self) -> list[RemoteHost]:
        return [remote for remote in self._remotes if remote.problem is None]

    def _clocks(self) -> dict[str, Any]:
        offsets = [(remote, remote.link.clock.offset()) for remote in self._remotes]
        lines = [
            {"workers": list(remote.workers), "offset": asdict(offset)}
            for remote, offset in offsets
            if offset is not None
        ]
        return {"hosts": self.facts(), "lines": lines}

    def _facts(self, remote: RemoteHost) -> dict[str, Any]:
        return {
            "name": remote.name,
            "workers": list(remote.workers),
            "versions": remote.link.versions,
            "constants": remote.link.constants,
            "clock": self._clock(remote),
            "lost": remote.problem,
            "node": remote.link.node,
            **place_of(remote.link.node),
        }

    def _clock(self, remote: RemoteHost) -> dict[str, Any] | None:
        offset = remote.link.clock.offset()
        if offset is None:
            return None
        start = offset.at_ns if self._wave.t0 is None else self._wave.t0
        return {
            "offset_s": offset.offset_at(start) / NS,
            "uncertainty_s": offset.uncertainty_ns / NS,
            "drift_ppm": remote.link.clock.drift_ppm(),
            "round_trip_s": offset.round_trip_ns / NS,
            "jump_s": offset.jump_ns / NS,
            "slew_ppm": remote.link.clock.slew_ppm(),
        }
