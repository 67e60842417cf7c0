"""The requests that were sent before the load, as a file of anybody's may tell of them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.plan import WavePlan
from tests.waves import observe


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"requests": 4, "seconds": 0.5}, (4, 0.5)),
        ({"requests": 4.0, "seconds": 1}, (4, 1.0)),
        (None, None),
        ("x", None),
        ({}, None),
        ({"requests": 4}, None),
        ({"requests": -1, "seconds": 0}, None),
        ({"requests": True, "seconds": 0}, None),
        ({"requests": 1, "seconds": float("nan")}, None),
        ({"requests": 1e300, "seconds": 0}, None),
    ],
)
def test_what_is_no_number_is_as_if_nothing_were_reported(expected: Any, found: tuple[int, float] | None) -> None:
    facts = observe(WavePlan(OpenLoop(Decimal(10)), Bounds(Decimal(1))), [], environment={"warmed": expected})
    assert facts.warmed == found
