"""The requests of clients that try again, and what came of them for their users: an arrival is a user. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY
from inference_benchmarker.summary.request_times import request_times
from inference_benchmarker.summary.statistics.streaming_histogram import StreamingHistogram

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Records
    from inference_benchmarker.summary.statistics.distribution import Distribution


@dataclass(frozen=True, slots=True)
class Repeats:
    """Arrivals of which something was sent, their requests, and users whose last attempt was ok.

    ``by_attempts``: how many arrivals took one request, two, and so on. ``user_time``: from when an arrival was due to
    the end of its last attempt, of those that ended ok or were abandoned; in seconds.
    """

    arrivals: int
    requests: int
    ok_users: int
    by_attempts: tuple[int, ...]
    user_time: Distribution | None

    @property
    def repeated(self) -> int:
        """Requests that were not the first of their arrival."""
        return self.requests - self.arrivals

    @property
    def attempts(self) -> float:
        """Requests for each arrival."""
        return self.requests / self.arrivals

    @property
    def success_by_user(self) -> float:
        """The share of the arrivals whose last attempt was ok."""
        return self.ok_users / self.arrivals


class RepeatsGathered:
    """Gathers the users: the arrivals, their requests, and what came of the last."""

    columns = (*ROW_KEY, "due", "done", "outcome")

    def __init__(self) -> None:
        self._requests = self._ok_users = 0
        self._by_attempts = np.zeros(0, np.int64)
        self._ok_s = StreamingHistogram()
        self._ages_s: list[float] = []

    def add(self, part: Records) -> None:
        """As ``Gatherer`` says."""
        lasts, user_s = part.lasts, request_times(part)["response_time"].values
        ok = part.outcome("ok") & lasts
        self._requests += len(part)
        self._ok_users += int(np.count_nonzero(ok))
        attempts = np.bincount(part.int("attempt")[lasts], minlength=len(self._by_attempts))
        attempts[: len(self._by_attempts)] += self._by_attempts
        self._by_attempts = attempts
        self._ok_s.add(user_s[ok])
        self._ages_s += user_s[part.outcome("abandoned") & lasts].tolist()

    def repeats(self) -> Repeats | None:
        """All that was gathered; None where nothing was sent."""
        if not self._requests:
            return None
        return Repeats(
            arrivals=int(self._by_attempts.sum()),
            requests=self._requests,
            ok_users=self._ok_users,
            by_attempts=tuple(self._by_attempts.tolist()),
            user_time=self._ok_s.distribution(self._ages_s),
        )
