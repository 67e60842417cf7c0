"""Leads one wave from the process that started it."""

from __future__ import annotations

import time
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.watchers.feed_watcher import FeedWatcher
from inference_benchmarker.engine.watchers.hosts_watcher import HostsWatcher
from inference_benchmarker.engine.watchers.running_wave import RunningWave
from inference_benchmarker.engine.watchers.watchers import (
    POLL_S,
    DiskWatcher,
    DrainWatcher,
    InterruptWatcher,
    LoadingWatcher,
    LoopbackWatcher,
    MemoryWatcher,
    PrimaryWatcher,
    Watcher,
    WorkerWatcher,
)
from inference_benchmarker.errors import BenchmarkError, LostProcessError, NotStartedError
from inference_benchmarker.system.files import is_folder
from inference_benchmarker.wave.finalise import finalise
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.engine.pilot import Pilot
    from inference_benchmarker.engine.processes.interrupts import Interrupts
    from inference_benchmarker.engine.progress_listener import FaultTolerantView
    from inference_benchmarker.engine.watchers.wave_processes import WaveProcesses
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool.spool_state import SpoolState

BEFORE_IT_BEGAN = "Interrupted before the wave began; nothing was measured."


class Conductor:
    """Leads one wave from this process: takes what the primary says, and lets its watchers look.

    ``worker_ended``: one did by itself, before the wave began.
    """

    def __init__(
        self,
        plan: WavePlan,
        run_dir: RunDir,
        processes: WaveProcesses,
        spool_state: SpoolState,
        *,
        interrupts: Interrupts,
        live: FaultTolerantView,
        pilot: Pilot | None = None,
    ) -> None:
        self.worker_ended = False
        self._processes = processes
        self._host, self._primary = processes.host, processes.primary
        self._wave = RunningWave(
            plan,
            run_dir,
            primary=self._primary,
            host=self._host,
            spool_state=spool_state,
            interrupts=interrupts,
            live=live,
        )
        self._interrupts = InterruptWatcher(self._wave)
        self._primary_watcher = PrimaryWatcher(self._wave, self._interrupts)
        self._feed = FeedWatcher(self._wave, pilot)
        self._hosts = HostsWatcher(self._wave, processes.remotes)
        self._watchers: tuple[Watcher, ...] = (
            self._interrupts,
            self._hosts,
            WorkerWatcher(self._wave),
            LoadingWatcher(self._wave),
            LoopbackWatcher(self._wave),
            DiskWatcher(self._wave),
            MemoryWatcher(self._wave),
            self._feed,
            DrainWatcher(self._wave),
            self._primary_watcher,
        )
        self._is_finished = self._primary_lost = False
        self._spill: Path | None = None

    def run(self) -> None:
        """Until the wave is over or its primary is gone."""
        while not self._primary_watcher.given_up:
            gone = self._primary.has_ended()  # asked first: what it said before its end is taken all the same
            for event in self._primary.events():
                self._take(event)
            if self._is_finished:
                return
            if gone:
                break
            for watcher in self._watchers:
                watcher.look(time.monotonic())
            self._primary.wait(POLL_S)
            self._host.tend()
        self._lose_primary()

    def finalise(self, facts: dict[str, Any]) -> Wave:
        """Put the wave together from its spool; ``facts`` are those of ``plan.json``."""
        wave = self._wave
        wave.spool_state.read()
        return finalise(
            Wave,
            wave.plan,
            wave.spool_state,
            wave.run_dir,
            facts,
            primary_lost=self._primary_lost,
            interrupted=self._interrupts.passed_on > 0,
            disk_error=wave.disk_error,
            loopback_down_s=None if wave.loopback_down_ns is None else wave.loopback_down_ns / NS,
            left_behind=self._processes.left_behind,
        )

    def forget_spill(self) -> None:
        """Take away what the primary wrote elsewhere when the run directory's disk was full."""
        if self._spill is not None:
            self._spill.unlink(missing_ok=True)

    def _take(self, event: dict[str, Any]) -> None:  # noqa: C901 - one short case for each thing the primary says
        wave = self._wave
        match event["event"]:
            case "listening":
                wave.is_listening = True
                self._host.connect(event["port"], event["also"])
            case "foreign_connections":
                count_text = f"{event['count']:,} so far, all refused"
                wave.live.say(f"Connections of other programs to port {event['port']}: {count_text}.")
            case "page":
                wave.live.say(f"Locust's page: http://127.0.0.1:{event['port']}")
            case "gathering":
                wave.missing = event["missing"]
            case "clocks":
                self._hosts.ask_clocks()
            case "started":
                wave.t0 = event["t0"]
                self._feed.show_at_once()
            case "unchanged":
                wave.live.say(f"The rate was not changed: {event['reason']}.")
            case "overdue":
                wave.live.say(f"Worker {event['worker']} does not answer; ending it.")
                self._host.signal(event["worker"], SIGKILL)
            case "disk":
                self._go_on_elsewhere(event["error"], Path(event["spool"]))
            case "failed":
                text = "\n".join(dict.fromkeys(map(self._problem, event["problems"])))  # of several hosts once
                raise NotStartedError(text) if event["armed"] else BenchmarkError(text)
            case "cancelled":
                raise KeyboardInterrupt(BEFORE_IT_BEGAN)
            case "finished":
                self._is_finished = True

    def _go_on_elsewhere(self, error: str, spool: Path) -> None:
        """The run directory's disk is full: what was in flight is reported to another file."""
        self._wave.disk_error, self._spill = error, spool
        self._wave.spool_state.add_spool(spool)
        self._wave.live.say(f"The run directory cannot be written ({error}); stopping the wave.")

    def _problem(self, problem: dict[str, Any]) -> str:
        """A sentence or two; of a worker that ended or does not answer, with its last words, whose log is kept."""
        text = self._hosts.with_local_paths(f"{problem['message']} {problem['hint']}".strip())
        if "worker" not in problem:
            return text
        self.worker_ended, number = True, problem["worker"]
        host = self._wave.plan.hosts.name_of(number)
        said = self._host.last_words if number in self._host.ended() else self._host.words
        words = " | ".join(said(number)[-3:]) or "none"
        log = self._wave.run_dir.worker_log(number)
        return f"{f'{host}: ' if host else ''}{text} Its last output: {words}. Its log: {log}"

    def _lose_primary(self) -> None:
        """Without a primary nobody takes reports: end the workers, keep what was reported."""
        for worker in self._host.workers:
            self._host.signal(worker, SIGKILL)
        if self._wave.t0 is None:
            if self._wave.is_interrupted:
                raise KeyboardInterrupt(BEFORE_IT_BEGAN)
            if not is_folder(self._wave.run_dir.path):
                raise BenchmarkError(
                    f"{self._wave.run_dir.path}: was deleted before the wave began.", "Do not delete it."
                )
            tail = "\n".join(self._primary.last_words())
            raise LostProcessError(
                f"the primary process ended before the wave began ({self._wave.run_dir.primary_log})", tail
            )
        self._primary_lost = True
