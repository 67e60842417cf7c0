"""The sessions of a part of a wave's records: when each began and ended, and which are over a limit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.records.columns import Int64, Mask, Records
    from server_capacity.search.limits import Limit

ENDS = ("turn", "ended")
"""Columns that are needed beside those that limits on requests are compared with."""


@dataclass(frozen=True, slots=True)
class SessionEnds:
    """Of each session when it began and when its last answer came (ns), whether it is over, and went to its end."""

    begun: Int64
    done: Int64
    is_over: Mask
    completed: Mask

    @classmethod
    def of(cls, part: Records) -> SessionEnds:
        """Those of records in which all requests of a session are."""
        index = part.int("index")
        last = np.append(index[1:] != index[:-1], True)[: len(index)]
        return cls(
            part.begun[last], part.int("done")[last], part.has("ended")[last], part.named("ended", "completed")[last]
        )

    @property
    def lengths(self) -> Int64:
        """From their arrival to their last answer, ns."""
        return self.done - self.begun

    def judged(self, limit: Limit, end_ns: int) -> tuple[Int64, Mask, Mask]:
        """Of each session when it is judged, whether it can be, and whether it is over the limit.

        One that is open is over a limit on its length once it is too old, by the wave's end.
        """
        if limit.bound_s is None:
            return self.done, self.is_over, ~self.completed
        bound = round(limit.bound_s * NS)
        lengths = np.where(self.is_over, self.lengths, end_ns - self.begun)
        beyond = lengths >= bound if limit.strict else lengths > bound
        at = np.where(self.is_over, self.done, np.minimum(self.begun + bound, end_ns - 1))
        return at, (self.is_over & self.completed) | beyond, beyond
