"""The log of the embedded endpoint's container: a few lines for each server error, nothing else.

A failure costs one append; its lines are worded when somebody reads them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.embedded.config import FAILED_AS_CONFIGURED

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEPT = 20_000
_REFUSAL = "[WARNING] request {number}: the queue is full, answered {status}"
_FAILURE = (
    "[ERROR] request {number}: exception on /invocations [POST]",
    "Traceback (most recent call last):",
    '  File "/opt/program/predictor.py", line 42, in invocations',
    "    predictions = model.predict(data)",
    f"RuntimeError: {FAILED_AS_CONFIGURED}",
    '169.254.178.2 - "POST /invocations HTTP/1.1" {status}',
)


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One line. ``at_ms``: since the epoch; ``id`` orders the events of a log."""

    at_ms: int
    stream: str
    id: str
    message: str


@dataclass(frozen=True, slots=True)
class _Failure:
    at_ms: int
    number: int
    status: int
    in_service: bool


class ContainerLog:
    """One endpoint's log; ``streams`` have an instance's lines each. The newest failures are kept."""

    def __init__(self, streams: list[str], started_ms: int) -> None:
        self._streams = streams
        self._started_ms = started_ms
        self._failures: deque[_Failure] = deque(maxlen=_KEPT)
        self._count = 0

    def failed(self, status: int, at_ms: int, *, in_service: bool) -> None:
        """A request ended with a status: what is the client's fault is not logged.

        ``in_service``: the model raised; else there was no place for the request.
        """
        if status >= 500:
            self._count += 1
            self._failures.append(_Failure(at_ms, self._count, status, in_service))

    def events(self) -> Iterator[LogEvent]:
        """All lines, oldest first."""
        for number, stream in enumerate(self._streams):
            yield LogEvent(self._started_ms, stream, f"{0:012d}{number:02d}", "[INFO] the model server has started")
        for failure in self._failures:
            stream = self._streams[failure.number % len(self._streams)]
            for place, line in enumerate(_FAILURE if failure.in_service else (_REFUSAL,)):
                message = line.format(number=failure.number, status=failure.status)
                yield LogEvent(failure.at_ms, stream, f"{failure.number:012d}{place:02d}", message)
