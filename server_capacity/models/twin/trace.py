"""A wave as the twin sees it: when each request was sent, and how long its answer took. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trace:
    """All requests of one wave in the order in which they were sent, one value of each array for each.

    ``sent_s``: seconds after wave start; not when it was due: how late a client is, is no part of the endpoint.
    ``latency_s``: from then to the end of the answer, NaN where none came.
    ``ok``: whether it was a good one. No request may be left out, whether its stretch counts or not: it was in the
    queue.
    """

    sent_s: Floats
    latency_s: Floats
    ok: Flags

    @property
    def answered(self) -> Flags:
        """True where an answer came, good or not."""
        return np.isfinite(self.latency_s)

    @property
    def ends_s(self) -> Floats:
        """When each answer ended, seconds after wave start; infinity where none came."""
        return np.where(self.answered, self.sent_s + self.latency_s, np.inf)

    def part(self, first: int, last: int) -> Trace:
        """Its requests from ``first`` up to before ``last``."""
        cut = slice(first, last)
        return Trace(self.sent_s[cut], self.latency_s[cut], self.ok[cut])
