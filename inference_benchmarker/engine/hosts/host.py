"""A machine that runs workers of a wave: what is asked about a process is asked of the host that it runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from signal import Signals


class Host(Protocol):
    """A machine that runs workers of a wave. Each of them is known by its number in the wave.

    Only values that can be sent go in and come out: a process id, a pipe or a path of that machine means nothing
    elsewhere, and none leaves the host. Answers may be as old as the last word of a host that is far away; nothing
    waits for a process but ``last_words`` and ``close``.
    """

    @property
    def workers(self) -> Sequence[int]:
        """The numbers of the workers that it runs, in order."""

    def spawn(self, workers: Sequence[int]) -> None:
        """Start these workers; they load what they need and wait for their jobs."""

    def begin(self, worker: int, job: Mapping[str, Any]) -> None:
        """Give a worker its job, a JSON object; the host adds what it alone knows (see ``worker.__main__``)."""

    def connect(self, port: int, also: str | None) -> None:
        """Tell every worker that the primary listens: on this port of its own machine, and at an address for others."""

    def signal(self, worker: int, number: Signals) -> None:
        """Send a worker a signal; one that has ended is left alone."""

    def ended(self) -> Collection[int]:
        """The workers that have ended by now."""

    def words(self, worker: int) -> list[str]:
        """The last lines that a worker printed so far."""

    def last_words(self, worker: int) -> list[str]:
        """The last lines that a worker which has ended printed."""

    def memory_left(self) -> int | None:
        """The bytes of memory that are free there; None where it is unknown."""

    def memory_of(self, worker: int) -> int:
        """The bytes of memory that a worker holds; 0 of one that has ended."""

    def tend(self) -> None:
        """Do what a host does while a wave runs; to be called often."""

    def close(self) -> tuple[str, ...]:
        """End every worker and all that they started; the names of what the user's code had left behind."""
