"""Watches the event loop from inside: how promptly it comes round, and what runs while it does not.

A beat comes at random instants, fifty a second; how late it is handled is how long any answer or arrival
waits at that moment. Random, because a steady beat could fall into step with evenly spaced requests and always
look when they do not. While a beat is late a timer signal interrupts the running code: its frames tell who holds
the loop up. No signal is sent while beats are in time.
"""

from __future__ import annotations

import os.path
import random
import signal
import sysconfig
from collections import defaultdict
from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from gevent.hub import Hub

from inference_benchmarker.worker.requests import Requests
from inference_benchmarker.worker.scheduler import Alarm

if TYPE_CHECKING:
    from types import FrameType

    from inference_benchmarker.usage import Part

BEAT_NS = (10_000_000, 30_000_000)  # least and longest time between beats: waking an idle process is what they cost
LATE_NS = 5_000_000  # from here on somebody is asked for; as the least limit of the schedule lag
LONGEST_S = (BEAT_NS[1] + LATE_NS) / 1e9
MOST_FRAMES = 200
MOST_STACK = 12
_REQUESTS = Requests.execute.__code__.co_filename
_HERE = os.path.dirname(_REQUESTS)  # noqa: PTH120 - of a code object's name, as all paths here
_LOCUST_FILE = os.path.join(_HERE, "locust_file.py")  # noqa: PTH118
_OURS = os.path.dirname(_HERE) + os.sep  # noqa: PTH120
_HUB = Hub.run.__code__.co_filename
_CALLS: dict[str, Part] = {"_attempt": "invoke", "_drive": "invoke", "_payload": "payload", "_payload_label": "payload"}
_STANDARD_LIBRARY = ("<frozen", sysconfig.get_path("stdlib") + os.sep)
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@dataclass(slots=True)
class Place:
    """A function that was found running while the loop was late."""

    part: Part
    where: str
    looks: int = 0
    longest_ns: int = 0
    stack: tuple[str, ...] = ()


class LoopWatch:
    """One worker's beats. ``delays`` are those since ``begin``, in µs; places are what blocked the loop."""

    def __init__(self) -> None:
        self.delays: list[int] = []
        self._alarm = Alarm(self._beat)
        self._random = random.Random()
        self._due = 0
        self._places: dict[tuple[str, int], Place] = {}
        self._block: dict[tuple[str, int], list[tuple[str, ...]]] = defaultdict(list)  # the stacks seen in this one
        self._looking = False

    def start(self) -> None:
        """Begin to beat; look at what runs where nobody else has a use for the signal."""
        self._looking = signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        if self._looking:
            signal.signal(signal.SIGALRM, self._look)
            signal.siginterrupt(signal.SIGALRM, False)
        self._due = monotonic_ns()
        self._arm(self._due)

    def begin(self) -> None:
        """Forget what the warm-up showed."""
        self.delays.clear()
        self._places.clear()

    def stop(self) -> None:
        """Beat no more."""
        self._alarm.stop()
        if self._holds_signal() or 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= LONGEST_S:
            signal.setitimer(signal.ITIMER_REAL, 0)  # ours, or soon: at the process's end it would kill it

    def take_delays(self) -> list[int]:
        """The beats' delays (µs) since the last call."""
        taken, self.delays = self.delays, []
        return taken

    def worst(self) -> dict[str, Any] | None:
        """The place that was found most often, as the fields of ``usage.Block``; None when nothing was found."""
        if not self._places:
            return None
        place = max(self._places.values(), key=lambda place: place.looks)
        share = place.looks / sum(other.looks for other in self._places.values())
        longest_s = place.longest_ns / 1e9
        return {"part": place.part, "where": place.where, "share": share, "longest_s": longest_s, "stack": place.stack}

    def _beat(self) -> None:
        now = monotonic_ns()
        if self._block:
            self._end_block(now - self._due)
        while self._due <= now:  # every instant counts that passed meanwhile, or a block would hide its own length
            self.delays.append((now - self._due) // 1000)
            self._due += self._random.randint(*BEAT_NS)
        self._arm(now)

    def _arm(self, now: int) -> None:
        self._alarm.arm(self._due)
        if self._holds_signal():
            signal.setitimer(signal.ITIMER_REAL, (self._due - now + LATE_NS) / 1e9)

    def _holds_signal(self) -> bool:
        """Whether the signal is still ours: the user's code may have taken it since."""
        self._looking = self._looking and signal.getsignal(signal.SIGALRM) == self._look
        return self._looking

    def _look(self, _number: int, frame: FrameType | None) -> None:
        """Note what runs now, if the beat is late; called by the signal, so it must not raise."""
        if monotonic_ns() - self._due < LATE_NS:
            return
        if self._holds_signal():  # one by one: none comes after the user's code has taken over
            signal.setitimer(signal.ITIMER_REAL, LATE_NS / 1e9)
        frames = _frames(frame)
        found = blamed(frames)
        if found is None:
            return
        part, culprit = found
        code = culprit.f_code
        key = (code.co_filename, code.co_firstlineno)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = Place(part, described(code.co_qualname, code.co_filename, code.co_firstlineno))
        place.looks += 1
        self._block[key].append(
            tuple(
                described(f.f_code.co_qualname, f.f_code.co_filename, f.f_lineno) for f in reversed(frames[:MOST_STACK])
            )
        )

    def _end_block(self, late_ns: int) -> None:
        """The loop came round: the block's length goes to the place that was seen most often in it."""
        key = max(self._block, key=lambda key: len(self._block[key]))
        place = self._places.get(key)
        if place is not None and late_ns > place.longest_ns:
            place.longest_ns, place.stack = late_ns, self._block[key][-1]
        self._block.clear()


def _frames(frame: FrameType | None) -> list[FrameType]:
    """The running code's frames, innermost first."""
    frames: list[FrameType] = []
    while frame is not None and len(frames) < MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    return frames


def blamed(frames: list[FrameType]) -> tuple[Part, FrameType] | None:
    """Whose code runs (frames innermost first), and its innermost frame that is not a library's.

    None while the loop only waits: then it is the host that did not let this process run.
    """
    for depth, frame in enumerate(frames):
        if frame.f_code.co_filename.startswith(_OURS):
            part = _part(frame)
            if part is None or depth == 0:
                return "tool", frame
            return part, _culprit(frames[:depth]) or frames[depth - 1]
    theirs = _culprit(frames)
    if theirs is not None:  # a greenlet that the user's code started
        return "invoke", theirs
    busy = bool(frames) and frames[0].f_code.co_filename != _HUB
    return ("tool", frames[0]) if busy else None


def _part(frame: FrameType) -> Part | None:
    """What a frame of ours calls the user's code for."""
    if frame.f_code.co_filename == _LOCUST_FILE:
        return "invoke"
    return _CALLS.get(frame.f_code.co_name) if frame.f_code.co_filename == _REQUESTS else None


def _culprit(frames: list[FrameType]) -> FrameType | None:
    return next((frame for frame in frames if not _is_library(frame.f_code.co_filename)), None)


def _is_library(path: str) -> bool:
    return path.startswith(_STANDARD_LIBRARY) or any(packages in path for packages in _PACKAGES)


def described(name: str, path: str, line: int) -> str:
    """A place in the code as it is printed: ``build (my_endpoint.py:12)``."""
    return f"{name} ({os.path.basename(path)}:{line})"  # noqa: PTH119
