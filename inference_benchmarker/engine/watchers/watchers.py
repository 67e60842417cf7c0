"""The watchers of a running wave in the process that leads it: each looks at one thing, and does what follows."""

from __future__ import annotations

import re
import time
from signal import SIGUSR1
from typing import TYPE_CHECKING, Protocol

from inference_benchmarker.engine.watchers.disk import DiskForecast, free_bytes
from inference_benchmarker.engine.watchers.memory_forecast import MemoryForecast
from inference_benchmarker.engine.watchers.running_wave import Every
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.plan.disk_space import stored
from inference_benchmarker.plan.hosts import THIS_HOST
from inference_benchmarker.system.host import loopback_problems
from inference_benchmarker.words.wording import size_text

if TYPE_CHECKING:
    from inference_benchmarker.engine.watchers.running_wave import RunningWave

POLL_S = 0.02
PING_S = 2.0
SILENT_S = 30.0  # a primary that answers no ping for so long hangs
BEGINNING_S = 120.0  # before its first word: sixty workers may be starting beside it on two cores
ABORT_S = 3.0  # what a second Ctrl-C leaves to the primary
AT_ONCE_S = 1.5  # and a third, which may come in the same moment as the first two
DISK_S = 5.0
LOOPBACK_S = 1.0
LOOPBACK_LATER_S = 5.0  # each look takes a port for a minute
STOP_S = 0.1  # until a stop is in force, of which every worker heard
MEMORY_S = 0.2  # in which a worker can take a hundred megabytes
PAUSE_S = 1.0  # a pass that took longer stood still itself: that is no silence of the primary's
WHERE_S = 1.5  # how long a worker that is being loaded may take to tell where it is
_PLACE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?P<comma>,?) in (?P<where>\S+)')


class Watcher(Protocol):
    """One who looks at a running wave in each pass of its loop."""

    def look(self, now_s: float) -> None:
        """Look; ``now_s`` is the monotonic clock's. BenchmarkError where the wave cannot begin."""


class InterruptWatcher:
    """Passes Ctrl-C on: the first stops the wave, the second ends it. ``passed_on`` counts those passed on."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self.passed_on = 0
        self.aborted_at: float | None = None

    def look(self, now_s: float) -> None:
        """Pass on what came since."""
        wave = self._wave
        while self.passed_on < min(wave.interrupts.count, 2):
            self.passed_on += 1
            first = self.passed_on == 1
            wave.primary.tell("stop" if first else "abort")
            if not first:
                self.aborted_at = now_s
            if wave.t0 is not None and first:
                wave.live.say("Stopping: waiting for requests in flight. Ctrl-C again ends at once.")


class PrimaryWatcher:
    """Ends a primary that hangs, or that a second Ctrl-C does not end in time; a third waits less.

    ``given_up``: it was ended.
    """

    def __init__(self, wave: RunningWave, interrupts: InterruptWatcher) -> None:
        self._wave = wave
        self._interrupts = interrupts
        self._ping = Every(PING_S)
        self._last_pass_s = time.monotonic()
        self.given_up = False

    def look(self, now_s: float) -> None:
        """Ask it for a word now and then, and judge its silence."""
        primary = self._wave.primary
        if now_s - self._last_pass_s > PAUSE_S:
            primary.heard_at = now_s
        self._last_pass_s = now_s
        if self._ping.due(now_s):
            primary.tell("ping")
        if self._is_overdue(now_s):
            self._wave.live.say("The primary does not answer; ending it.")
            primary.kill()
            self.given_up = True

    def _is_overdue(self, now_s: float) -> bool:
        aborted_at = self._interrupts.aborted_at
        patience_s = AT_ONCE_S if self._wave.interrupts.count > 2 else ABORT_S
        impatient = aborted_at is not None and now_s > aborted_at + patience_s
        silent_s = SILENT_S if self._wave.is_listening else BEGINNING_S
        return impatient or now_s > self._wave.primary.heard_at + silent_s


class WorkerWatcher:
    """Tells the primary of each worker that has ended."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self._reported: set[int] = set()

    def look(self, now_s: float) -> None:  # noqa: ARG002 - every pass looks
        """Look for those that have ended since."""
        for number in self._wave.host.ended():
            if number not in self._reported:
                self._reported.add(number)
                self._wave.primary.tell(f"lost {number}")


class LoadingWatcher:
    """Gives up where loading the endpoint takes too long."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self._until_s = time.monotonic() + float(wave.plan.load_timeout_s)

    def look(self, now_s: float) -> None:
        """Raise BenchmarkError once it takes too long, with where it stands."""
        wave = self._wave
        if wave.t0 is not None or not wave.missing or now_s < self._until_s:
            return
        number = wave.missing[0]
        place = self._place(number)
        listen, name = wave.plan.hosts.listen, wave.plan.hosts.name_of(number)
        if listen is not None and name != THIS_HOST and not place:
            raise BenchmarkError(
                f"{name}: worker {number} has not come to --listen {listen} within {wave.plan.load_timeout_s} s, nor "
                f"is it in {wave.file}.",
                f"Give an address of this host that {name} reaches (no firewall between them), or leave out --listen: "
                "workers then come through ssh. A load that takes longer needs --load-timeout.",
            )
        raise BenchmarkError(
            f"{wave.file}: worker {number} has not loaded it within {wave.plan.load_timeout_s} s{place}.",
            "Make it faster, or allow more time with --load-timeout.",
        )

    def _place(self, number: int) -> str:
        """The innermost line of the user's file that a worker is in, if it can tell."""
        host, file = self._wave.host, str(self._wave.file)
        host.signal(number, SIGUSR1)
        deadline = time.monotonic() + WHERE_S
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            places = [place for line in host.words(number) if (place := _PLACE.search(line))]
            own = [place for place in places if place["file"] == file]
            if own:
                place = own[-1] if own[-1]["comma"] else own[0]  # the one prints outermost first, the other last
                return f"; it is at line {place['line']}, in {place['where'].removesuffix('()')}"
        return ""


class LoopbackWatcher:
    """Gives up where the processes cannot meet. Once they have, their silence ends the wave, and its cause is noted."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self._beginning, self._time = Every(LOOPBACK_S), Every(LOOPBACK_LATER_S)

    def look(self, now_s: float) -> None:
        """Raise BenchmarkError where loopback is down before the wave has begun; later, note it and say it once."""
        if self._wave.t0 is None:
            if self._beginning.due(now_s):
                refuse(loopback_problems())
        elif self._wave.loopback_down_ns is None and self._time.due(now_s):
            for problem in loopback_problems():
                self._wave.loopback_down_ns = self._wave.now_ns
                self._wave.live.say(f"During the wave: {problem}")


class DiskWatcher:
    """Says in time when the disk will be full."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self._disk = DiskForecast(str(wave.run_dir.path))
        self._time = Every(DISK_S)

    def look(self, now_s: float) -> None:
        """Look at the disk every few seconds."""
        wave = self._wave
        if wave.t0 is None or wave.disk_error is not None or not self._time.due(now_s):
            return
        try:
            to_store = stored(wave.run_dir.spool.stat().st_size)
        except OSError:  # it was deleted: the primary will say so
            to_store = 0
        if warning := self._disk.look(now_s, free_bytes(wave.run_dir.path), to_store):
            wave.live.say(warning)


class MemoryWatcher:
    """Ends the wave, with what is in flight, before a worker has all memory and the kernel kills one of them."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave
        self._memories = [MemoryForecast(host) for host in wave.host.hosts]
        self._time = Every(MEMORY_S)

    def look(self, now_s: float) -> None:
        """Look at the memory several times a second; BenchmarkError before the wave has begun."""
        wave = self._wave
        if wave.ended_early or wave.is_interrupted or not self._time.due(now_s):
            return
        for memory in self._memories:
            if (found := memory.look(now_s)) is not None:
                self._end(now_s, *found)
                return

    def _end(self, now_s: float, number: int, size: int) -> None:
        wave = self._wave
        if wave.t0 is None:
            raise BenchmarkError(
                f"{wave.file}: worker {number} took {size_text(size)} while it loaded it, and hardly any memory is "
                "left.",
                "Use fewer --workers, load less in each, or use a machine with more memory.",
            )
        wave.end_early(Aborted("", float(size), 0, 0, number))
        wave.drained_by = now_s + STOP_S  # what is in flight may be what grows


class DrainWatcher:
    """Ends the drain of a wave that was ended early."""

    def __init__(self, wave: RunningWave) -> None:
        self._wave = wave

    def look(self, now_s: float) -> None:
        """Abandon what is in flight once it is time."""
        wave = self._wave
        if wave.drained_by is not None and now_s >= wave.drained_by:
            wave.drained_by = None
            wave.primary.tell("abort")
