"""Watches the event loop from inside: how promptly it comes round, and what runs while it does not.

A beat comes at random instants, 25 a second; how late it is handled is how long any answer or arrival waits at
that moment. Random, because a steady beat could fall into step with evenly spaced requests and always look when
they do not. A thread of the system's (gevent's would be held up as well) looks now and then whether the beat is
late, and while it is, at the frames of the code that runs. A signal would see more, but it breaks off system calls
in the user's C code.
"""

from __future__ import annotations

import os.path
import random
import sys
import sysconfig
from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, Any

from gevent.hub import Hub
from gevent.monkey import get_original

from inference_benchmarker.engine.worker import statuses
from inference_benchmarker.engine.worker.alarm import Alarm
from inference_benchmarker.engine.worker.invocation import Invocation
from inference_benchmarker.engine.worker.payloads import Payloads

if TYPE_CHECKING:
    from types import FrameType

    from inference_benchmarker.facts.client_use import Part

BEAT_NS = (20_000_000, 60_000_000)  # least and longest time between beats: waking an idle process is what they cost
LATE_NS = 5_000_000  # from here on somebody is asked for; as the least limit of the schedule lag
LOOK_S = (0.05, 0.15)  # between two looks whether a beat is late
SWITCH_S = 0.0005  # the looking thread gets its turn within a call of some milliseconds, not at its end
MOST_FRAMES = 200
MOST_STACK = 12
_INVOCATION = Invocation.attempt.__code__.co_filename
_PAYLOADS = Payloads.payload.__code__.co_filename
_HERE = os.path.dirname(_INVOCATION)  # noqa: PTH120 - of a code object's name, as all paths here
LOCUST_FILE = os.path.join(_HERE, "locust_file.py")  # noqa: PTH118
_HOOKS = statuses.hear.__code__.co_filename  # they stand between a library and who called it
WATCH_FILE = os.path.join(_HERE, "watch.py")  # noqa: PTH118
_OURS = os.path.dirname(os.path.dirname(_HERE)) + os.sep  # noqa: PTH120
_HUB = Hub.run.__code__.co_filename
_CALLS: dict[str, Part] = {_INVOCATION: "invoke", LOCUST_FILE: "invoke", _PAYLOADS: "payload"}
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


@dataclass(slots=True)
class _Seen:
    """A place that was seen in the present block: how often, and its stack when it was last."""

    place: Place
    looks: int = 0
    stack: tuple[str, ...] = ()


class LoopWatch:
    """One worker's beats. ``delays`` are those that no report has yet, in µs; places are what blocked the loop.

    ``due_ns``: the instant of the next beat, on the monotonic clock; ``block``: what was seen since it is late.
    ``thread``: that of the event loop.
    """

    def __init__(self) -> None:
        self.delays: list[int] = []
        self._alarm = Alarm(self.beat)
        self._random = random.Random()
        self.due_ns = 0
        self.places: dict[tuple[str, int], Place] = {}
        self.block: dict[tuple[str, int], _Seen] = {}
        self._looking = False
        self.thread = get_original("_thread", "get_ident")()

    def start(self) -> None:
        """Begin to beat, and to look at what runs."""
        self.due_ns = monotonic_ns()
        self._alarm.arm(self.due_ns)
        self._looking = True
        sys.setswitchinterval(SWITCH_S)
        get_original("_thread", "start_new_thread")(self._look_regularly, ())

    def begin(self) -> None:
        """Forget what the warm-up showed."""
        self.delays.clear()
        self.places.clear()

    def stop(self) -> None:
        """Beat no more."""
        self._looking = False
        self._alarm.stop()

    def worst(self) -> dict[str, Any] | None:
        """The place that was found most often, as the fields of ``client_use.Block``; None when nothing was found."""
        places = [place for place in list(self.places.values()) if place.looks]  # the looking thread adds to them
        if not places:
            return None
        place = max(places, key=lambda place: place.looks)
        share = place.looks / sum(other.looks for other in places)
        longest_s = place.longest_ns / 1e9
        return {"part": place.part, "where": place.where, "share": share, "longest_s": longest_s, "stack": place.stack}

    def beat(self) -> None:
        """The event loop has come round: note how late, and the length of a block that ends."""
        now = monotonic_ns()
        if self.block:
            self.end_block(now - self.due_ns)
        while self.due_ns <= now:  # every instant counts that passed meanwhile, or a block would hide its own length
            self.delays.append((now - self.due_ns) // 1000)
            self.due_ns += self._random.randint(*BEAT_NS)
        self._alarm.arm(self.due_ns)

    def _look_regularly(self) -> None:
        """The looking thread: while a beat is late, look every five milliseconds."""
        sleep, draw = get_original("time", "sleep"), random.Random()
        while self._looking:
            sleep(draw.uniform(*LOOK_S))
            while self._looking and monotonic_ns() - self.due_ns >= LATE_NS:
                self.look(sys._current_frames().get(self.thread))  # noqa: SLF001 - the one way to another thread
                sleep(LATE_NS / 1e9)

    def look(self, frame: FrameType | None) -> None:
        """Note what runs now."""
        frames = frames_of(frame)
        found = blamed(frames)
        if found is None:
            return
        part, culprit = found
        code = culprit.f_code
        key = (code.co_filename, code.co_firstlineno)
        place = self.places.get(key)
        if place is None:
            place = self.places[key] = Place(part, described(code.co_qualname, code.co_filename, code.co_firstlineno))
        seen = self.block.setdefault(key, _Seen(place))
        place.looks += 1
        seen.looks += 1
        seen.stack = tuple(
            described(f.f_code.co_qualname, f.f_code.co_filename, f.f_lineno) for f in reversed(frames[:MOST_STACK])
        )

    def end_block(self, late_ns: int) -> None:
        """The loop came round: the block's length goes to the place that was seen most often in it."""
        block, self.block = self.block, {}
        seen = max(list(block.values()), key=lambda seen: seen.looks)
        if late_ns > seen.place.longest_ns:
            seen.place.longest_ns, seen.place.stack = late_ns, seen.stack


def frames_of(frame: FrameType | None) -> list[FrameType]:
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
    frames = [frame for frame in frames if frame.f_code.co_filename != _HOOKS]
    for depth, frame in enumerate(frames):
        if frame.f_code.co_filename == WATCH_FILE:
            return None  # our own callback of the garbage collector: it is what held the loop up
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
    """The part that a frame of ours calls the user's code for."""
    return _CALLS.get(frame.f_code.co_filename)


def _culprit(frames: list[FrameType]) -> FrameType | None:
    return next((frame for frame in frames if not _is_library(frame.f_code.co_filename)), None)


def _is_library(path: str) -> bool:
    return path.startswith(_STANDARD_LIBRARY) or any(packages in path for packages in _PACKAGES)


def described(name: str, path: str, line: int) -> str:
    """A place in the code as it is printed: ``build (my_endpoint.py:12)``."""
    return f"{name} ({os.path.basename(path)}:{line})"  # noqa: PTH119
