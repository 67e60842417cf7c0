"""Runs a wave: starts its processes, watches them, reaps them and finalises.

Imports neither Locust nor gevent, so a notebook that calls ``run_wave`` is not patched.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from inference_benchmarker.endpoint import source_problems
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.host import raise_descriptor_limit
from inference_benchmarker.journal import Journal
from inference_benchmarker.processes import Interrupts, Processes, counting_interrupts
from inference_benchmarker.run_dir import RunDir, cannot_write, write_json
from inference_benchmarker.wave import Wave, describe_environment

if TYPE_CHECKING:
    from inference_benchmarker.plan import WavePlan

POLL_S = 0.02
LIVE_INTERVAL_S = 0.5
PATIENCE_S = 2.0  # what takes longer is said
DESCRIPTORS_BESIDE_WORKERS = 24


class Live(Protocol):
    """Who watches a wave: the live view on a terminal, plain lines elsewhere, or nobody."""

    def say(self, message: str) -> None:
        """A sentence about what happens now."""

    def update(self, journal: Journal, fresh: list[Any], now_ns: int) -> None:
        """The wave goes on; ``now_ns`` is nanoseconds after wave start, ``fresh`` the new request rows."""

    def close(self) -> None:
        """The wave is over."""


class Nobody:
    """Watches a wave in silence."""

    def say(self, message: str) -> None:
        """Say nothing."""

    def update(self, journal: Journal, fresh: list[Any], now_ns: int) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Nothing to close."""


def run_wave(plan: WavePlan, live: Live | None = None, calibration: dict[str, Any] | None = None) -> Wave:
    """Run one wave and return it, stored in its run directory. ``calibration``: what one found, to be kept with it.

    Raises BenchmarkError, before any load is sent, for a plan or a factories file that cannot work;
    KeyboardInterrupt if interrupted before the wave began. Later interrupts end the wave early and it is
    returned with what was measured.
    """
    plan = settle(plan)
    live = live or Nobody()
    run_dir = make_run_dir(plan, calibration)
    try:
        with counting_interrupts() as interrupts:
            with Processes(plan, run_dir) as processes:
                conductor = _Conductor(plan, run_dir, processes, interrupts, live)
                conductor.run()
            live.close()
            return conductor.finalise()  # after the processes' end: their last words are in the logs
    except (BenchmarkError, KeyboardInterrupt):
        _discard(run_dir)
        raise
    finally:
        live.close()


def settle(plan: WavePlan) -> WavePlan:
    """A checked plan whose file is absolute and whose seed is drawn; every cheap problem is raised here."""
    problems = plan.problems() + source_problems(plan.factories_file, plan.locust_file)
    problems += _descriptor_problems(plan.workers)
    if problems:
        raise BenchmarkError("\n".join(problems))
    return replace(
        plan,
        seed=secrets.randbits(32) if plan.seed is None else plan.seed,
        factories_file=plan.factories_file and plan.factories_file.resolve(),
        locust_file=plan.locust_file and plan.locust_file.resolve(),
    )


class _Conductor:
    """Leads one wave from this process: what it hears from the primary, sees of the processes, and tells them."""

    def __init__(
        self, plan: WavePlan, run_dir: RunDir, processes: Processes, interrupts: Interrupts, live: Live
    ) -> None:
        self.plan = plan
        self.run_dir = run_dir
        self.journal = Journal([run_dir.spool], plan.workers)
        self._processes = processes
        self._interrupts = interrupts
        self._live = live
        self._interrupts_told = 0
        self._told_lost: set[int] = set()
        self._t0: int | None = None
        self._finished = False
        self._primary_lost = False
        self._disk_error: str | None = None
        self._spill: Path | None = None
        self._next_update = time.monotonic() + PATIENCE_S
        self._ready = 0

    def run(self) -> None:
        """Until the wave is over or its primary is gone."""
        while not self._finished and not self._primary_lost:
            gone = self._processes.primary.poll() is not None
            for event in self._processes.events():
                self._take(event)
            if gone and not self._finished:
                self._lose_primary()
                return
            self._pass_on_interrupts()
            self._watch_workers()
            self._show()
            time.sleep(POLL_S)

    def finalise(self) -> Wave:
        """Put the wave together from its spool and store it."""
        try:
            self.journal.read()
            wave = Wave.of_journal(
                self.plan,
                self.journal,
                self.run_dir,
                primary_lost=self._primary_lost,
                interrupted=self._interrupts_told > 0,
                disk_error=self._disk_error,
            )
            return _store(wave, self._live)
        finally:
            if self._spill is not None:
                self._spill.unlink(missing_ok=True)

    def _take(self, event: dict[str, Any]) -> None:  # noqa: C901 - one short case for each thing the primary says
        match event["event"]:
            case "listening":
                if event["port"] != self.plan.port:
                    self._live.say(f"Port {self.plan.port} is taken; the primary listens on {event['port']}.")
                self._processes.tell_port(event["port"])
            case "page":
                self._live.say(f"Locust's page: http://127.0.0.1:{event['port']}")
            case "gathering":
                self._ready = event["ready"]
            case "started":
                self._t0 = event["t0"]
                self._next_update = 0.0
            case "overdue":
                self._live.say(f"Worker {event['worker']} does not answer; it is ended.")
                self._processes.workers[event["worker"]].kill()
            case "disk":
                self._disk_error, self._spill = event["error"], Path(event["spool"])
                self.journal.add_spool(self._spill)
                self._live.say(f"The run directory cannot be written ({event['error']}): the wave is stopped.")
            case "failed":
                raise BenchmarkError("\n".join(f"{p['message']} {p['hint']}".strip() for p in event["problems"]))
            case "cancelled":
                raise KeyboardInterrupt
            case "finished":
                self._finished = True

    def _lose_primary(self) -> None:
        """Without a primary nobody takes reports: end the workers, keep what was reported."""
        for worker in self._processes.workers:
            worker.kill()
        if self._t0 is None:
            if self._interrupts.count:
                raise KeyboardInterrupt
            tail = self.run_dir.primary_log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the primary process ended before the wave began; its log ends with:\n{tail}")
        self._primary_lost = True

    def _pass_on_interrupts(self) -> None:
        while self._interrupts_told < min(self._interrupts.count, 2):
            self._interrupts_told += 1
            first = self._interrupts_told == 1
            self._processes.tell_primary("stop" if first else "abort")
            if self._t0 is not None and first:
                self._live.say("Stopping: waiting for requests in flight. Ctrl-C again ends at once.")

    def _watch_workers(self) -> None:
        for number, worker in enumerate(self._processes.workers):
            if number not in self._told_lost and worker.poll() is not None:
                self._told_lost.add(number)
                self._processes.tell_primary(f"lost {number}")

    def _show(self) -> None:
        now = time.monotonic()
        if self._t0 is None:
            if now >= self._next_update:
                self._next_update = now + 5 * PATIENCE_S
                self._live.say(f"Loading the endpoint: {self._ready} of {self.plan.workers} workers are ready.")
            return
        if now < self._next_update:
            return
        self._next_update = now + LIVE_INTERVAL_S
        self._live.update(self.journal, self.journal.read(), time.monotonic_ns() - self._t0)


def make_run_dir(plan: WavePlan, calibration: dict[str, Any] | None = None) -> RunDir:
    """A new run directory that holds the plan, and with what and where it is run."""
    run_dir = RunDir.create(plan.output_dir)
    facts: dict[str, Any] = {"environment": describe_environment(plan)}
    if calibration is not None:
        facts["calibration"] = calibration
    try:
        write_json(run_dir.plan, {**plan.public_json(), **facts})
    except OSError as error:
        _discard(run_dir)
        raise cannot_write(plan.output_dir, error) from None
    return run_dir


def _discard(run_dir: RunDir) -> None:
    """Leave no directory of a wave that never began, unless a process left its last words there."""
    if run_dir.spool.is_file() and run_dir.spool.stat().st_size:
        return
    if any(log.stat().st_size and b"Traceback" in log.read_bytes() for log in run_dir.logs.glob("*.log")):
        return
    shutil.rmtree(run_dir.path, ignore_errors=True)


def _store(wave: Wave, live: Live) -> Wave:
    """Store the wave; where its disk is full, in the system's temporary folder, and say so."""
    try:
        wave.save()
        return wave
    except OSError as error:
        reason = error.strerror or str(error)
    origin = wave.run_dir
    wave = replace(wave, disk_error=reason)
    wave.run_dir = RunDir(Path(tempfile.mkdtemp(suffix="_benchmark")))
    try:
        write_json(wave.run_dir.plan, {**wave.plan.public_json(), "environment": wave.environment})
        wave.save()
        live.say(f"{origin and origin.path}: cannot be written ({reason}); the wave is stored in {wave.run_dir.path}.")
    except OSError:
        live.say(f"The wave could not be stored ({reason}); what is printed is all there is.")
        wave.run_dir = origin
    return wave


def _descriptor_problems(workers: int) -> list[str]:
    """Each worker takes a pipe of ours and a connection of the primary's."""
    allowed, needed = raise_descriptor_limit(), 2 * workers + DESCRIPTORS_BESIDE_WORKERS
    if needed > allowed:
        return [f"--workers {workers} needs {needed} file descriptors; this process may have {allowed} (ulimit -n)."]
    return []
