"""An endpoint that got slower is told of only where equal rates at different times differ clearly."""

from __future__ import annotations

from typing import Any

import pytest

from server_capacity.capacity.by_time import slower
from server_capacity.capacity.text import to_text
from tests.capacities import found, stretch


def at(start_s: float, rate: float, share: float, in_flight: int = 3) -> dict[str, Any]:
    return stretch(
        int(start_s),
        rate,
        start_s=start_s,
        end_s=start_s + 8,
        sent=int(8 * rate),
        share_over=[share],
        in_flight=in_flight,
    )


BEFORE, AFTER = at(10, 120, 0.0), at(90, 121, 0.97, 400)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([BEFORE, AFTER], True),
        ([BEFORE, at(90, 150, 0.97, 400)], False),
        ([BEFORE, at(30, 121, 0.97, 400)], False),
        ([BEFORE, at(90, 121, 0.3, 400)], False),
        ([BEFORE, at(90, 121, 0.97, 20)], False),
        ([BEFORE, AFTER, at(120, 125, 0.0)], False),
        ([{**BEFORE, "void": "schedule lag"}, AFTER], False),
    ],
)
def test_equal_rates_at_different_times_are_compared(rows: list[dict[str, Any]], told: bool) -> None:
    assert (slower(rows, 0) is not None) == told
    assert ("It got slower with time: at 121/s, 0% over at 10 s," in to_text(found(stretches=rows))) == told
