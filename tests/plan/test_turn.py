"""A turn of a session is checked however it is made."""

from __future__ import annotations

from typing import Any

import pytest

from inference_benchmarker.plan.turn import Turn


def test_a_turn_that_replaces_another_one_is_a_turn() -> None:
    made = Turn("x", 1.0, "a", 2)._replace(think_s=3.0)
    assert (type(made), made) == (Turn, Turn("x", 3.0, "a", 2))


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"think_s": float("nan")}, ValueError),
        ({"think_s": -1}, ValueError),
        ({"think_s": "1"}, TypeError),
        ({"label": 5}, TypeError),
        ({"left": -1}, ValueError),
        ({"left": True}, TypeError),
    ],
)
def test_no_value_that_is_not_valid_comes_in_by_replacing(more: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(more))):
        Turn("x")._replace(**more)
    with pytest.raises(error, match=next(iter(more))):
        Turn("x", **more)
