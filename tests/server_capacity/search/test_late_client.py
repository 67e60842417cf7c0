"""Stretches in which this client was late count for nothing, and what they leave does not promise too much."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.estimate import answer
from server_capacity.search.limits import Limit
from server_capacity.search.settings import Settings
from server_capacity.search.stretch import CLIENT
from tests.server_capacity.search.queues import Queue, play

if TYPE_CHECKING:
    from server_capacity.search.stretch import Stretch

P99 = Limit("p99<100ms", "response_time", 0.01, 0.1)
TRUTH = 174.0


def waited(stretch: Stretch) -> bool:
    """Tells whether a stretch near the answer had more than half of the allowed share over."""
    of, over = (sum(part.counts[0][place] for part in stretch.slices) for place in (0, 1))
    return stretch.purpose in ("above", "below") and over > 0.5 * P99.allowed * of


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_client_that_is_late_when_many_wait_leaves_an_interval_that_holds(seed: int) -> None:
    """Every second stretch that speaks against a rate is lost, and none that speaks for it."""
    stretches = play(Queue(4, lambda _: 0.02), [P99], Settings(), seed=seed).stretches
    late = [each.number for each in stretches if waited(each)][::2]
    found = answer(
        [P99], Settings(), [replace(each, void=CLIENT) if each.number in late else each for each in stretches]
    )

    assert late
    assert found.interval is not None
    assert found.interval.low <= TRUTH <= found.interval.high
