"""The number of turns of conversations, and the prefix that they share."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.conversation import SharedPrefix, TurnCount
from inference_benchmarker.records.record import MOST_TURN

NUMBER = 20_000


def drawn(text: str) -> Counter[int]:
    turns, draw = TurnCount.parse(text), random.Random(1)
    return Counter(turns.draw(draw.random()) for _ in range(NUMBER))


def test_turns_are_drawn_as_they_are_called() -> None:
    assert drawn("5") == {5: NUMBER}
    assert drawn("geometric:1") == {1: NUMBER}
    even = drawn("uniform:3..8")
    assert set(even) == set(range(3, 9))
    assert all(abs(count - NUMBER / 6) < 250 for count in even.values())
    geometric = drawn("geometric:4")
    assert min(geometric) == 1
    assert sum(turns * count for turns, count in geometric.items()) / NUMBER == pytest.approx(4, rel=0.03)
    assert geometric[1] / NUMBER == pytest.approx(0.25, abs=0.01)
    assert TurnCount.parse("geometric:9").draw(1 - 2**-53) < MOST_TURN


@pytest.mark.parametrize(
    "text", ["0", "-1", "5.5", "uniform:3..2", "uniform:0..2", "geometric:0.5", "70000", "five", "", "٣", "uniform:3"]
)
def test_what_is_no_number_of_turns_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--turns"):
        TurnCount.parse(text)


def test_groups_share_a_prefix_as_often_as_they_are_popular() -> None:
    prefix, draw = SharedPrefix.parse("4000:groups=20:zipf=1.1"), random.Random(2)
    found = Counter(prefix.group(draw.random()) for _ in range(NUMBER))
    assert (prefix.tokens, set(found)) == (4000, set(range(20)))
    weights = [(place + 1) ** -1.1 for place in range(20)]
    for place, weight in enumerate(weights):
        assert found[place] / NUMBER == pytest.approx(weight / sum(weights), abs=0.012)
    assert SharedPrefix.parse("7").group(0.999) == 0
    assert SharedPrefix.parse("7:groups=4").group(0.75) == 3


@pytest.mark.parametrize("text", ["0", "5:groups=0", "5:zipf=99", "5:groups=2:zipf", "x", "5:groups=1000000"])
def test_what_is_no_prefix_is_refused(text: str) -> None:
    with pytest.raises(BenchmarkError, match="--shared-prefix"):
        SharedPrefix.parse(text)
