"""Leads one wave from the process that started it."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.abort_watch import AbortWatch
from inference_benchmarker.engine.disk import DiskWatch, free_bytes
from inference_benchmarker.engine.memory_watch import MemoryWatch, available_bytes
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.host import loopback_problems
from inference_benchmarker.plan.room import stored
from inference_benchmarker.verdict.aborts import aborted_text
from inference_benchmarker.wave.finalise import finalise
from inference_benchmarker.wording import counted, size_text

if TYPE_CHECKING:
    from inference_benchmarker.engine.live import Undisturbed
    from inference_benchmarker.engine.pilot import Pilot
    from inference_benchmarker.engine.processes import Interrupts, Processes
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool_state import SpoolState
    from inference_benchmarker.wave.wave import Wave

POLL_S = 0.02
LIVE_INTERVAL_S = 0.5
PING_S = 2.0
SILENT_S = 30.0  # a primary that answers no ping for so long hangs
BEGINNING_S = 120.0  # before its first word: sixty workers may be starting beside it on two cores
ABORT_S = 3.0  # what a second Ctrl-C leaves to the primary
AT_ONCE_S = 1.5  # and a third, which may come in the same moment as the first two
DISK_S = 5.0
LOOPBACK_S = 1.0
STOP_S = 0.1  # until a stop is in force, of which every worker heard
MEMORY_S = 0.2  # in which a worker can take a hundred megabytes
DEAD_DRAIN_S = 3.0  # what is in flight to an endpoint that takes no connection any more is hardly answered
PAUSE_S = 1.0  # a pass that took longer stood still itself: that is no silence of the primary's
WHERE_S = 1.5  # how long a worker that is being loaded may take to tell where it is
BEFORE_IT_BEGAN = "Interrupted before the wave began; nothing was measured."
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?P<comma>,?) in (?P<where>\S+)')


class Conductor:
    """Leads one wave from this process: what it hears from the primary, sees of the processes, and tells them."""

    def __init__(
        self,
        plan: WavePlan,
        run_dir: RunDir,
        processes: Processes,
        spool_state: SpoolState,
        *,
        interrupts: Interrupts,
        live: Undisturbed,
        pilot: Pilot | None = None,
    ) -> None:
        self.plan = plan
        self.run_dir = run_dir
        self.worker_ended = False  # by itself, before the wave began
        self.spool_state = spool_state
        self._processes = processes
        self._interrupts = interrupts
        self._live = live
        self._pilot = pilot
        self._interrupts_told = 0
        self._told_lost: set[int] = set()
        self._t0: int | None = None
        self._finished = False
        self._primary_lost = False
        self._disk_error: str | None = None
        self._spill: Path | None = None
        now = time.monotonic()
        self._next_update = self._begun = now
        self._load_until = now + float(plan.load_timeout_s)
        self._disk = DiskWatch(str(run_dir.path))
        self._memory = MemoryWatch(plan.workers, available_bytes)
        self._next_ping = self._last_pass = self._next_disk = self._next_memory = self._next_loopback = now
        self._aborted_at: float | None = None
        self._abort_watch = AbortWatch(plan)
        self._aborted = False
        self._drained_by: float | None = None
        self._missing = list(range(plan.workers))
        self._listening = False

    def run(self) -> None:
        """Until the wave is over or its primary is gone."""
        while not self._primary_lost:
            gone = self._processes.primary.poll() is not None
            for event in self._processes.events():
                self._take(event)
            if self._finished:
                return
            if gone:
                self._lose_primary()
                return
            self._pass_on_interrupts()
            self._watch_primary()
            self._watch_workers()
            self._watch_loading()
            self._watch_loopback()
            self._watch_disk()
            self._watch_memory()
            self._ask_pilot()
            self._show()
            self._end_drain()
            self._processes.wait(POLL_S)

    def finalise(self, facts: dict[str, Any]) -> Wave:
        """Put the wave together from its spool; ``facts`` are those of ``plan.json``."""
        self.spool_state.read()
        return finalise(
            self.plan,
            self.spool_state,
            self.run_dir,
            facts,
            primary_lost=self._primary_lost,
            interrupted=self._interrupts_told > 0,
            disk_error=self._disk_error,
            left_behind=self._processes.left_behind,
        )

    def forget_spill(self) -> None:
        """Take away what the primary wrote elsewhere when the run directory's disk was full."""
        if self._spill is not None:
            self._spill.unlink(missing_ok=True)

    def _take(self, event: dict[str, Any]) -> None:  # noqa: C901 - one short case for each thing the primary says
        match event["event"]:
            case "listening":
                self._listening = True
                self._processes.tell_port(event["port"])
            case "foreign_connections":
                told = f"{event['count']:,} so far, all refused"
                self._live.say(f"Connections of other programs to port {event['port']}: {told}.")
            case "page":
                self._live.say(f"Locust's page: http://127.0.0.1:{event['port']}")
            case "gathering":
                self._missing = event["missing"]
            case "started":
                self._t0 = event["t0"]
                self._next_update = 0.0
            case "unchanged":
                self._live.say(f"The rate stays as it is: {event['reason']}.")
            case "overdue":
                self._live.say(f"Worker {event['worker']} does not answer; it is ended.")
                self._processes.workers[event["worker"]].kill()
            case "disk":
                self._disk_error, self._spill = event["error"], Path(event["spool"])
                self.spool_state.add_spool(self._spill)
                self._live.say(f"The run directory cannot be written ({event['error']}): the wave is stopped.")
            case "failed":
                raise BenchmarkError("\n".join(self._problem(problem) for problem in event["problems"]))
            case "cancelled":
                raise KeyboardInterrupt(BEFORE_IT_BEGAN)
            case "finished":
                self._finished = True

    def _problem(self, problem: dict[str, Any]) -> str:
        """A sentence or two; of a worker that ended, with its last words, whose log is kept."""
        if "ended" not in problem:
            return f"{problem['message']} {problem['hint']}".strip()
        self.worker_ended, number = True, problem["ended"]
        words = " | ".join(self._processes.last_words(number)[-3:]) or "none"
        return f"{problem['message']} Its last words: {words}. Its log: {self.run_dir.worker_log(number)}"

    def _lose_primary(self) -> None:
        """Without a primary nobody takes reports: end the workers, keep what was reported."""
        for worker in self._processes.workers:
            worker.kill()
        if self._t0 is None:
            if self._interrupts.count:
                raise KeyboardInterrupt(BEFORE_IT_BEGAN)
            tail = "\n".join(self._processes.logs.last_words(self.run_dir.primary_log))
            raise RuntimeError(f"the primary process ended before the wave began; its log ends with:\n{tail}")
        self._primary_lost = True

    def _pass_on_interrupts(self) -> None:
        while self._interrupts_told < min(self._interrupts.count, 2):
            self._interrupts_told += 1
            first = self._interrupts_told == 1
            self._processes.tell_primary("stop" if first else "abort")
            if not first:
                self._aborted_at = time.monotonic()
            if self._t0 is not None and first:
                self._live.say("Stopping: waiting for requests in flight. Ctrl-C again ends at once.")

    def _ask_pilot(self) -> None:
        """Pass on the orders of whoever steers the wave, and show what follows at once."""
        if self._pilot is None or self._t0 is None or self._interrupts.count:
            return
        for order in self._pilot.orders(self.spool_state, time.monotonic_ns() - self._t0):
            self._processes.tell_primary(order.command)
            self._next_update = 0.0

    def _watch_primary(self) -> None:
        """End a primary that hangs, or that a second Ctrl-C does not end in time; a third waits less."""
        now = time.monotonic()
        if now - self._last_pass > PAUSE_S:
            self._processes.heard_at = now
        self._last_pass = now
        if now >= self._next_ping:
            self._next_ping = now + PING_S
            self._processes.tell_primary("ping")
        patience_s = AT_ONCE_S if self._interrupts.count > 2 else ABORT_S
        impatient = self._aborted_at is not None and now > self._aborted_at + patience_s
        if impatient or now > self._processes.heard_at + (SILENT_S if self._listening else BEGINNING_S):
            self._live.say("The primary does not answer; it is ended.")
            self._processes.primary.kill()
            self._lose_primary()

    def _watch_loading(self) -> None:
        """Raise BenchmarkError where loading the endpoint takes too long, with where it stands."""
        if self._t0 is not None or not self._missing or time.monotonic() < self._load_until:
            return
        number = self._missing[0]
        file = self.plan.factories_file or self.plan.locust_file
        where = self._place(number, str(file))
        raise BenchmarkError(
            f"{file}: worker {number} has not loaded it within {self.plan.load_timeout_s} s{where}.",
            "Make it quicker, or give it more time with --load-timeout.",
        )

    def _watch_loopback(self) -> None:
        """Raise BenchmarkError where the processes cannot meet. Once they have, their silence ends the wave."""
        now = time.monotonic()
        if self._t0 is None and now >= self._next_loopback:
            refuse(loopback_problems())
            self._next_loopback = now + LOOPBACK_S

    def _watch_disk(self) -> None:
        """Say in time when the disk will be full."""
        now = time.monotonic()
        if self._t0 is None or self._disk_error is not None or now < self._next_disk:
            return
        self._next_disk = now + DISK_S
        try:
            to_store = stored(self.run_dir.spool.stat().st_size)
        except OSError:  # it was deleted: the primary will say so
            to_store = 0
        if warning := self._disk.look(now, free_bytes(self.run_dir.path), to_store):
            self._live.say(warning)

    def _watch_memory(self) -> None:
        """End the wave, with what is in flight, before a worker has all memory and the kernel kills one of them."""
        now = time.monotonic()
        if self._aborted or self._interrupts.count or now < self._next_memory:
            return
        self._next_memory = now + MEMORY_S
        found = self._memory.look([worker.pid for worker in self._processes.workers], now)
        if found is None:
            return
        number, size = found
        if self._t0 is None:
            file = self.plan.factories_file or self.plan.locust_file
            raise BenchmarkError(
                f"{file}: worker {number} took {size_text(size)} while it loaded it, and hardly any memory is left.",
                "Use fewer --workers, load less in each, or use a machine with more memory.",
            )
        self._end_early(Aborted("", float(size), 0, 0, number))
        self._drained_by = now + STOP_S  # what is in flight may be what grows

    def _place(self, number: int, file: str) -> str:
        """The innermost line of the user's file that a worker is in, if it can tell."""
        self._processes.workers[number].send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + WHERE_S
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            places = [place for line in self._processes.words(number) if (place := _PLACE.search(line))]
            own = [place for place in places if place["file"] == file]
            if own:
                place = own[-1] if own[-1]["comma"] else own[0]  # the one prints outermost first, the other last
                return f"; it is at line {place['line']}, in {place['where'].removesuffix('()')}"
        return ""

    def _watch_workers(self) -> None:
        for number, worker in enumerate(self._processes.workers):
            if number not in self._told_lost and worker.poll() is not None:
                self._told_lost.add(number)
                self._processes.tell_primary(f"lost {number}")

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._next_update:
            return
        self._next_update = now + LIVE_INTERVAL_S
        if self._t0 is None:
            self._live.starting(self._waited_for(), now - self._begun)
            return
        self.spool_state.read()
        self._live.update(self.spool_state, time.monotonic_ns() - self._t0)
        self._look_for_abort(time.monotonic_ns() - self._t0)

    def _waited_for(self) -> str:
        ready = self.plan.workers - len(self._missing)
        return f"Loading the endpoint: {ready} of {counted(self.plan.workers, 'worker is', 'workers are')} ready."

    def _look_for_abort(self, now_ns: int) -> None:
        """End the wave early where its plan says so; not one that has sent all, or that a person ended."""
        over = (self.spool_state.planned_end, self.plan.bounds.duration_ns)
        if self._aborted or self._interrupts.count or any(end is not None and now_ns >= end for end in over):
            return
        number, ledger = self.plan.bounds.num_requests, self.spool_state.ledger
        if number is not None and ledger.arrivals + ledger.dropped >= number:
            return
        aborted = self._abort_watch.look(self.spool_state.feed, self.spool_state.whole_seconds)
        if aborted is None:
            return
        self._end_early(aborted)
        self._live.say("Requests in flight are waited for.")
        if aborted.by_dead_endpoint:
            self._drained_by = time.monotonic() + DEAD_DRAIN_S

    def _end_early(self, aborted: Aborted) -> None:
        self._aborted = True
        self._processes.tell_primary(f"aborted {json.dumps(aborted.to_json())}")
        self._live.say(f"The wave is ended: {aborted_text(aborted)}.")

    def _end_drain(self) -> None:
        if self._drained_by is not None and time.monotonic() >= self._drained_by:
            self._drained_by = None
            self._processes.tell_primary("abort")
