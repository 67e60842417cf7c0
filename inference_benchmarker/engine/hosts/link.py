"""The link to the agent of another host, which stays over the waves of a command: its lease, its clock, its end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.hosts.agent_messages import is_said
from inference_benchmarker.engine.hosts.clock_watch import ClockWatch
from inference_benchmarker.engine.hosts.protocol import ASK_S, KEEP_S, LEASE, LEASE_S, LOST_S, QUIET_S, SILENT_S, SOCKET
from inference_benchmarker.version import __version__
from inference_benchmarker.words.text import said

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.engine.hosts.transport import Message, Said, Transport

CLOSING_S = 6.0  # an agent needs two seconds for workers that do not end, and as much for what they left behind
KNOCK_S = 0.5  # so often, while a host is silent: a login takes about as long
_LAST_WORDS = 3
_MOST_REASON, _MOST_VERSION = 300, 40
_NO_AGENT = "it said something that no agent of this version says: what answers there is broken, or another program"


class Link:
    """Leads to the agent of a host, which serves one wave after the other. ``name``: as the user calls the host.

    ``problem`` says why it is lost, in a sentence without its end; None as long as it is there. ``hello``: its first
    word, with its cores and versions; None before it came. ``clock``: what the clock there showed in this wave.
    ``waves``: how many have begun there. ``needs_socket``: workers there reach the primary by a socket.
    """

    def __init__(self, name: str, transport: Transport, *, needs_socket: bool = True) -> None:
        self.name = name
        self.problem: str | None = None
        self.hello: Message | None = None
        self.clock = ClockWatch()
        self.waves = 0
        self._transport = transport
        self._needs_socket = needs_socket
        self._take: Callable[[Message], None] = lambda _: None
        self._heard_at = self._renewed_at = self._kept_at = self._asked_at = self._knocked_at = time.monotonic()
        self._questions: set[int] = set()  # to its clock
        self._closing = False
        self._closed = threading.Event()

    def open(self) -> None:
        """Open the way there."""
        self._transport.start(self._hear, self._end)

    def begin(self, take: Callable[[Message], None]) -> None:
        """Begin a wave there; ``take`` is given what the agent says of it, on the transport's thread."""
        self._take = take
        self.waves += 1
        self.clock = ClockWatch()
        self.send({"do": "wave"})

    def lose(self, reason: str) -> None:
        """Nothing more is asked of it, for this reason, unless there was one before."""
        self.problem = self.problem or reason
        self._take({"say": "lost"})

    def send(self, message: Message | Said) -> None:
        """Ask the agent something."""
        self._transport.send(message)

    def words_of_the_way(self) -> list[str]:
        """The last lines that came from the way there itself."""
        return self._transport.words()[-_LAST_WORDS:]

    @property
    def cores(self) -> int:
        """The number of cores that its workers may use."""
        assert self.hello is not None
        return int(self.hello["cores"])

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what runs there, by name; none before its first word."""
        return {} if self.hello is None else dict(self.hello["versions"])

    @property
    def node(self) -> str | None:
        """The node of a cluster that it is on, where it is a pod."""
        return None if self.hello is None else self.hello.get("node")

    @property
    def constants(self) -> dict[str, Any]:
        """The facts of it that stay; none before its first word."""
        return {} if self.hello is None else dict(self.hello["constants"])

    def measure_clock(self) -> None:
        """Ask its clock several times in a row."""
        self.clock.burst()
        self._ask_clock()

    def keep(self) -> None:
        """Renew its lease, and see whether it is there still; to be called often."""
        if self.hello is None:  # it logs in, for which there is a time of its own
            return
        now = time.monotonic()
        if reason := self._silence(now):
            self.lose(reason)
        if now > self._asked_at + ASK_S:
            self._ask_clock()
        if now > self._kept_at + KEEP_S:
            self._kept_at = now
            self.send({"do": "beat"})
        is_silent = self.problem is None and QUIET_S < now - self._heard_at < LEASE_S
        if is_silent and self._renewed_at < self._heard_at and now > self._knocked_at + KNOCK_S:
            self._knocked_at = now
            self._transport.knock(f"{self.hello['folder']}/{LEASE}", self._renew)

    def _silence(self, now: float) -> str | None:
        """Why it is lost by now."""
        quiet_since = max(self._heard_at, self._renewed_at)
        if now > quiet_since + LOST_S or now > self._heard_at + SILENT_S:
            return f"it has not answered for {now - self._heard_at:.0f} s"
        return None

    def _renew(self) -> None:
        """Its agent is there, and waits with us for what is on the way."""
        self._renewed_at = time.monotonic()

    def close(self) -> None:
        """End its agent; a second time does nothing."""
        if self._closing:
            return
        self._closing = True
        if self.problem is None and self.hello is not None:
            self.send({"do": "close"})
            self._closed.wait(CLOSING_S)
        self._transport.close(CLOSING_S if self._closed.is_set() else 0.0)

    def _ask_clock(self) -> None:
        self._asked_at = time.monotonic()
        self.send(self._question)

    def _question(self) -> Message:
        self._questions.add(asked := time.monotonic_ns())
        return {"do": "clock", "asked": asked}

    def _hear(self, message: Message, at: int) -> None:
        """Take what the agent says, on the transport's thread."""
        if not is_said(message) or not self._is_due(message):
            self.lose(self._other_version(message) or _NO_AGENT)
            return
        self._heard_at = time.monotonic()
        match message["say"]:
            case "clock":
                self._questions.remove(message["asked"])
                if self.clock.take(message, at):
                    self._ask_clock()
            case "hello":
                problem = self._refused(message) or self._without_socket(message)
                self.hello, self.problem = message, self.problem or problem
            case "failed":
                self.lose(said(message["reason"], _MOST_REASON))
            case "closed":
                self._take_closed()
            case _:
                self._take(message)

    def _is_due(self, message: Message) -> bool:
        """Tells whether it is the time for it: a hello comes once and before all else, an answer after its question."""
        match message["say"]:
            case "hello":
                return self.hello is None
            case "clock":
                return message["asked"] in self._questions
        return self.hello is not None

    def _take_closed(self) -> None:
        """It is over there, because we asked for it or the lease ended."""
        if not self._closing:
            self.lose(f"it heard nothing for {LEASE_S:.0f} s, and ended its workers")
        self._closed.set()

    def _end(self) -> None:
        """The way is closed, whoever closed it."""
        self._closed.set()
        if not self._closing and self.problem is None:
            self.lose(" | ".join(self.words_of_the_way()) or "its connection was closed without a message")

    def _refused(self, hello: Message) -> str | None:
        """Why no worker can run there, by its first word."""
        if reason := hello.get("failed"):
            return said(reason, _MOST_REASON)
        return self._other_version(hello)

    def _without_socket(self, hello: Message) -> str | None:
        """Why no worker there can reach the primary, though it needs a socket for that."""
        return self._transport.lead_here(f"{hello['folder']}/{SOCKET}") if self._needs_socket else None

    def _other_version(self, hello: Message) -> str | None:
        """Why an agent of another version is of no use, by its first word, which may be anything; None of ours."""
        versions = hello.get("versions")
        version = versions.get("benchmark", __version__) if isinstance(versions, dict) else __version__
        if version == __version__:
            return None
        shown = said(str(version), _MOST_VERSION)
        return f"it has version {shown}, and this host has {__version__}: {self._transport.mend}"
