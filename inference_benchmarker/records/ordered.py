"""The instants of all parts of a wave in increasing order, in bounded memory. Pure.

Parts come by arrival, and what happens to their requests overlaps. So a first pass over the parts tells each one's
watermark, which nothing in a later part is below; in a second pass whatever is below it is in order for good, and the
rest is carried on: about as much as is in flight, and in the closed loop by how far workers have drifted apart.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from inference_benchmarker.records.columns import Int64, Mask, Records
    from inference_benchmarker.records.parts import InParts


N = TypeVar("N", bound=float)


class ReorderBuffer:
    """Values of any one type that numpy can sort: pushed part by part, given back in increasing order."""

    def __init__(self) -> None:
        self._carried: npt.NDArray[Any] | None = None
        self._fresh: list[npt.NDArray[Any]] = []

    def push(self, values: npt.NDArray[Any], watermark: complex | None) -> npt.NDArray[Any]:
        """The next values in order: those below the watermark, or all where there is none. They may come a part later.

        What is carried is sorted again only when as much is new, so that no value is sorted often.
        """
        self._fresh.append(values)
        carried = values[:0] if self._carried is None else self._carried
        if watermark is not None and sum(map(len, self._fresh)) < len(carried):
            return values[:0]
        both = np.concatenate([carried, *self._fresh])
        both.sort()
        cut = len(both) if watermark is None else int(np.searchsorted(both, watermark))
        self._carried, self._fresh = both[cut:].copy(), []
        return both[:cut]


def watermarks(records: InParts, *names: str) -> list[int | None]:
    """For each part the least value that these columns have in later ones; None after the last."""
    return later_least([min(int(part.int(name).min()) for name in names) for part in records.parts(*names)])


def later_least(least: Sequence[N]) -> list[N | None]:
    """The watermarks of parts with these least values."""
    later = list(accumulate(reversed(least), min))
    marks: list[N | None] = [*reversed(later[:-1])]
    return [*marks, None] if least else []


def in_order(
    records: InParts, name: str, *columns: str, where: Callable[[Records], Mask] | None = None
) -> Iterator[Int64]:
    """The values of a column in increasing order, many at a time; ``where``, which looks at ``columns``, chooses."""
    buffer = ReorderBuffer()
    for part, watermark in zip(records.parts(name, *columns), watermarks(records, name), strict=True):
        values = part.int(name)
        values = buffer.push(values if where is None else values[where(part)], watermark)
        if len(values):
            yield values


def rows_before(records: InParts, instants: Sequence[int]) -> list[int]:
    """The number of records whose arrival was due before each of these instants; in the open loop they come first."""
    before = np.zeros(len(instants), np.int64)
    for part in records.parts(*ROW_KEY, "due"):
        before += np.searchsorted(part.begun, instants)
    return [int(count) for count in before]
