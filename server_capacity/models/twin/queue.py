"""Many queues of c servers side by side, one waiting line each: Kiefer and Wolfowitz's recursion over arrays. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class Queues:
    """Queues of as many servers as ``left`` has rows, one queue for each cell of a row; first come, first served.

    ``left``: the work that each server has at the beginning. Times may be in any unit, the same one everywhere.
    """

    def __init__(self, left: Floats) -> None:
        # The least first. Relative to the last arrival: small numbers stay exact.
        self._left = np.sort(left, axis=0)
        self._next = np.empty_like(self._left)

    def arrive(self, service: Floats) -> Floats:
        """A request comes to each queue: its wait and service, together."""
        left, after = self._left, self._next
        total: Floats = left[0] + service
        # Among the sorted others, the total takes its place: after[j] is the median of left[j], left[j + 1] and it.
        np.minimum(left[1:], total, out=after[:-1])
        after[-1] = total
        np.maximum(after[1:], left[1:], out=after[1:])
        self._left, self._next = after, left
        return total

    def let_pass(self, time: Floats | float) -> None:
        """So much time goes by, in each queue or in all of them."""
        np.subtract(self._left, time, out=self._left)
        np.maximum(self._left, 0, out=self._left)
