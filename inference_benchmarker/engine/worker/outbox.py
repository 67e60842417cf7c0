"""The batches of a worker on their way to the primary: each is sent until it is acknowledged, within bounds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

RESEND_AFTER_S = 2.0
MOST_UNHEARD = 100
"""Messages since the last acknowledgement. ZeroMQ queues 1,000 behind a link that is cut, and refuses the next one."""
PROBE_S = 10.0
_SHORTEST_S, _LONGEST_S = 0.5, 1.0
_MOST_REPORTS = 50
"""Reports of all workers in a second: one costs the primary as much as some thousand records in it."""


def report_interval_s(workers: int) -> float:
    """Seconds between two reports of a worker: half a second, with more than 25 workers more, with 50 or more one."""
    return min(max(_SHORTEST_S, workers / _MOST_REPORTS), _LONGEST_S)


class Outbox:
    """Sends what is added, and again what is not acknowledged in time; the primary takes each once, in order.

    Once ``MOST_UNHEARD`` messages were answered by nothing, what is added waits, and only the oldest is sent again.
    """

    def __init__(self, send: Callable[[bytes], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._sent_at: dict[int, float] = {}
        self._batches: dict[int, bytes] = {}
        self._unheard = 0
        self.next_sequence = 0

    def __len__(self) -> int:
        return len(self._batches)

    def add(self, batch: bytes) -> None:
        """Send the batch of ``next_sequence``. What cannot be sent (there is no memory) is kept, and sent again."""
        sequence = self.next_sequence
        self._batches[sequence] = batch
        self._sent_at[sequence] = float("-inf")
        self.next_sequence += 1
        if self._unheard < MOST_UNHEARD:
            self._put(sequence)

    def acknowledge(self, sequence: int) -> None:
        """The primary has it."""
        self._unheard = 0
        self._batches.pop(sequence, None)
        self._sent_at.pop(sequence, None)

    def resend(self) -> None:
        """Send again what was not acknowledged in time."""
        now = self._clock()
        for place, sequence in enumerate(list(self._batches)):
            if self._unheard < MOST_UNHEARD:
                if now - self._sent_at[sequence] > RESEND_AFTER_S:
                    self._put(sequence)
            elif place == 0 and now - self._sent_at[sequence] > PROBE_S:
                self._put(sequence)
            else:
                return

    def _put(self, sequence: int) -> None:
        self._unheard += 1
        self._sent_at[sequence] = self._clock()
        self._send(self._batches[sequence])
