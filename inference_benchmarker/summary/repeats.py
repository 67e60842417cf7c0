"""The requests of clients that try again, and what came of them for their users: an arrival is a user. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from inference_benchmarker.summary.distribution import Distribution
from inference_benchmarker.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts


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

    @classmethod
    def of(cls, facts: WaveFacts) -> Repeats | None:
        """Those of a wave or of a stage of it; None where clients try nothing again, or nothing was sent."""
        records = facts.records
        if not facts.plan.retries.retries or not len(records):
            return None
        lasts, user_s = records.lasts, (records.int("done") - records.arrived) / NS
        ok, abandoned = records.outcome("ok") & lasts, records.outcome("abandoned") & lasts
        return cls(
            arrivals=int(np.count_nonzero(lasts)),
            requests=len(records),
            ok_users=int(np.count_nonzero(ok)),
            by_attempts=tuple(np.bincount(records.int("attempt")[lasts]).tolist()),
            user_time=Distribution.of(user_s[ok], user_s[abandoned]),
        )

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

    def to_json(self) -> dict[str, Any]:
        """Its numbers, those that follow from them too."""
        return {
            "arrivals": self.arrivals,
            "requests": self.requests,
            "repeated": self.repeated,
            "attempts_per_arrival": self.attempts,
            "by_attempts": list(self.by_attempts),
            "success_by_user": self.success_by_user,
            "user_time": None if self.user_time is None else self.user_time.to_json(),
        }
