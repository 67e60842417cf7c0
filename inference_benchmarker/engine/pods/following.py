"""Follows a wave in its pods through connections that may break, until its results are here.

A wave needs nobody who follows it: it goes on when the command leaves, and another one may follow it later.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from inference_benchmarker.engine.pods.draft import ForeignResultsError
from inference_benchmarker.engine.pods.exec_link import ExecLink
from inference_benchmarker.engine.pods.follower import DamagedBlockError
from inference_benchmarker.engine.pods.kubectl import SOON, KubectlError
from inference_benchmarker.engine.pods.places import places_of
from inference_benchmarker.engine.pods.states import of_index, states_in
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType

    from inference_benchmarker.engine.hosts.transport import Message
    from inference_benchmarker.engine.pods.follower import Follower
    from inference_benchmarker.engine.pods.kubectl import Kubectl
    from inference_benchmarker.engine.pods.states import PodState
    from inference_benchmarker.engine.processes.interrupts import Interrupts

GIVE_UP_S = 600.0
"""A pod that does not answer for so long is left alone: its results can be fetched later."""

_POLL_S = 0.2
_AGAIN_S = (0.5, 1.0, 2.0, 5.0)  # after which a connection is tried again
_MOST_ENDS = 2  # requests to end the wave; who asks once more leaves


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of following a wave whose results are not here.

    ``is_left``: the user left. ``pod``: the first pod, which is over, or None where it is gone. ``why``: of the rest.
    """

    is_left: bool = False
    is_lost: bool = False
    pod: PodState | None = None
    why: str = ""


class Onlooker(Protocol):
    """Whoever follows the wave."""

    def tell(self, line: str) -> None:
        """Hear a line."""

    def asked(self, *, anew: bool) -> Iterable[Message]:
        """The messages for the wave now; ``anew``: on a new connection."""


class Following:
    """Follows the wave of a Job by its first pod. ``may_end``: an interrupt ends the wave early; else it leaves it."""

    def __init__(
        self, kubectl: Kubectl, selector: str, follower: Follower, onlooker: Onlooker, *, may_end: bool
    ) -> None:
        self._kubectl, self._selector = kubectl, selector
        self._follower, self._onlooker = follower, onlooker
        self._tell = onlooker.tell
        self._may_end = may_end
        self._ends = 0
        self._answered_at = time.monotonic()
        self._is_broken = False
        self._unsaid = ""
        self._words = ""  # the last ones of kubectl
        self._nodes: set[str] = set()
        self._asked_of: set[str] = set()
        self._places: dict[str, dict[str, str]] = {}

    def run(self, interrupts: Interrupts) -> Outcome | None:
        """Until the results are here and confirmed (None), or cannot come now. To be called where interrupts count."""
        failures = 0
        with _hung_up() as hung_up:
            while True:
                pod, found = self._first_pod()
                if found and (pod is None or pod.is_over):
                    return None if self._follower.is_done else Outcome(is_lost=True, pod=pod)
                self._say_broken()
                if pod is not None:
                    before = self._answered_at
                    if outcome := self._connect(pod, interrupts, hung_up):
                        return outcome
                    if self._follower.is_done:
                        return None
                    failures = 0 if self._answered_at > before else failures
                if time.monotonic() > self._answered_at + GIVE_UP_S:
                    return Outcome(why=f"it has not answered for {GIVE_UP_S:g} s{self._words and f': {self._words}'}")
                if self._wait(_AGAIN_S[min(failures, len(_AGAIN_S) - 1)], interrupts, hung_up):
                    return Outcome(is_left=True)
                failures += 1

    def _first_pod(self) -> tuple[PodState | None, bool]:
        """The pod that has the results, and whether the cluster answers."""
        try:
            states = states_in(self._kubectl.read("pods", f"--selector={self._selector}", SOON))
        except KubectlError:
            return None, False
        self._nodes = {state.node for state in states if state.node}
        return of_index(states, 0), True

    def _connect(self, pod: PodState, interrupts: Interrupts, hung_up: threading.Event) -> Outcome | None:
        """Follow over one connection, until it breaks or nothing is left to ask."""
        begun = self._first_words()
        link = ExecLink(self._kubectl, pod.name)
        over = threading.Event()
        try:
            for word in begun:
                link.send(word)
            while not (over.is_set() or self._follower.is_done):
                self._talk(link, pod, over)
                if hung_up.is_set() or self._leaves(link, interrupts):
                    return Outcome(is_left=True)
        except DamagedBlockError:
            pass
        except (ForeignResultsError, BenchmarkError) as error:  # the results cannot be taken, or stored here
            return Outcome(why=str(error).rstrip("."))
        finally:
            link.close()
        if not self._follower.is_done:
            self._words = link.words
        if not self._follower.is_done and not self._is_broken:
            self._is_broken = True
            why = self._words and f" ({self._words})"
            what = "The wave goes on" if self._follower.code is None else "Its results are fetched on a new one"
            self._unsaid = f"The connection to pod {pod.name} broke off{why}. {what}."
        return None

    def _say_broken(self) -> None:
        """Say that the connection broke off, once it is known that the pod itself has not ended."""
        if self._unsaid:
            self._tell(self._unsaid)
            self._unsaid = ""

    def _talk(self, link: ExecLink, pod: PodState, over: threading.Event) -> None:
        """Hear the next message, if one comes soon, and say what there is to say."""
        message = link.next(_POLL_S, over.set)
        if message is not None:
            self._note_answer(pod)
            for answer in self._follower.take(message):
                link.send(answer)
        for word in self._onlooker.asked(anew=False):
            link.send(word)

    def _first_words(self) -> list[Message]:
        if not self._nodes <= self._asked_of:
            self._places, self._asked_of = places_of(self._kubectl, self._nodes), self._nodes
        return [{"do": "places", "nodes": self._places}, *self._onlooker.asked(anew=True), *self._follower.begin()]

    def _note_answer(self, pod: PodState) -> None:
        self._answered_at = time.monotonic()
        if self._is_broken:
            self._is_broken = False
            self._tell(f"Connected to pod {pod.name} again.")

    def _leaves(self, link: ExecLink, interrupts: Interrupts) -> bool:
        """Tells whether the user leaves; until then each interrupt asks the wave to end."""
        if interrupts.count <= self._ends:
            return False
        if not self._may_end or self._follower.code is not None or self._ends >= _MOST_ENDS:
            return True
        self._ends += 1
        link.send({"do": "end"})
        self._tell("Interrupted: the wave ends, with its report. Ctrl-C twice more leaves it alone.")
        return False

    def _wait(self, seconds: float, interrupts: Interrupts, hung_up: threading.Event) -> bool:
        """Wait without a connection; tells whether the user leaves meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if hung_up.wait(_POLL_S) or interrupts.count > self._ends:
                return True
        return False


@contextmanager
def _hung_up() -> Iterator[threading.Event]:
    """Hear of the terminal's end, which is none of the wave's: who follows it is gone."""
    heard = threading.Event()

    def hear(_number: int, _frame: FrameType | None) -> None:
        heard.set()

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        yield heard
        return
    before = signal.signal(signal.SIGHUP, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGHUP, before)
