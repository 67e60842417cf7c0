"""No comparison of A and B contradicts itself: hundreds that are made up are read."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.slo import MaxRegression
from tests.waves import drawn, wave
from visualization.comparison.comparison import compare
from visualization.comparison.headline import headline
from visualization.comparison.report import to_junit, to_text
from visualization.comparison.result import result_of

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.comparison import Comparison

FACTORS = (0.5, 0.97, 1.0, 1.02, 1.2, 4.0)
LIMITS = ("p50=10%", "p99=5%", "success=1%", "rate=3%")
WITHIN = re.compile(r"at (p\d+) within ([\d.]+)%")
CHANGED = re.compile(r"([\d.]+)% (slower|faster|higher|lower) ")


@cache
def one(seed: int, factor: float, cv: float, failed: float) -> Wave:
    """A wave of 6 seconds, of which a share fails."""
    times = factor * drawn(seed, rate=40, seconds=6, cv=cv)
    draw = np.random.default_rng(seed)
    outcomes = np.where(draw.random(times.size) < failed, "failed", "ok")
    return wave(times, outcomes=list(outcomes))


def comparison(seed: int, factor: float, runs: int) -> Comparison:
    draw = random.Random(f"{seed} {factor} {runs}")
    cv, before, after = draw.choice([0.02, 0.3, 2.0]), draw.choice([0.0, 0.02]), draw.choice([0.0, 0.02, 0.5, 1.0])
    base = [one(10 * number, 1.0, cv, before) for number in range(runs)]
    new = [one(10 * number + 1, factor, cv, after) for number in range(runs)]
    limits = [MaxRegression.parse(each) for each in draw.sample(LIMITS, draw.randrange(3))]
    return compare(base, new, limits, names=("A", "B"), strict=draw.random() < 0.3)


@pytest.mark.parametrize("runs", [1, 2, 5])
def test_no_comparison_contradicts_itself(runs: int) -> None:
    for seed, factor in product(range(5), FACTORS):
        require_a_comparison(comparison(seed, factor, runs))


def require_a_comparison(found: Comparison) -> None:
    """Hold its sentences against its numbers, and those against each other."""
    first, reported = headline(found), encoded(result_of(found))
    assert to_text(found).splitlines()[0] == reported["headline"] == first
    changed = [row for row in found.rows if row.outcome in ("worse", "improved")]
    for row in found.rows:
        low, high = row.interval or (None, None)
        if low is None or high is None or row.regression is None:
            assert row.outcome == "cannot tell"
            continue
        assert low <= row.regression * (1 + 1e-9) + 1e-9
        assert row.regression <= high * (1 + 1e-9) + 1e-9
        assert {"worse": low > 0, "improved": high < 0}.get(row.outcome, True)
    if first.startswith("INVALID"):
        assert found.exit_code == 3
        return
    for size, way in CHANGED.findall(first):
        ups = [
            row.change
            for row in changed
            if row.change is not None and (row.change > 0) == (way in ("slower", "higher"))
        ]
        assert any(float(size) == pytest.approx(100 * abs(change), abs=0.5) for change in ups), first
    assert bool(changed) or not CHANGED.search(first)
    if first.startswith("Cannot tell"):
        assert not changed
    for stat, within in WITHIN.findall(first):
        (row,) = (row for row in found.rows if row.primary and row.stat == stat and row.metric in first_times(found))
        assert row.outcome == "unchanged"
        assert all(100 * abs(end) <= float(within) + 1e-9 for end in row.interval or (1.0,)), first
    for check in found.checks:
        if check.state == "broken":
            assert check.row.outcome == "worse" or check.row.change is None
        if check.state == "kept":
            assert check.row.interval is not None
            assert check.row.interval[1] <= check.limit.most
    judged = {"broken"} | ({"undecided"} if found.strict else set())
    failed = any(check.state in judged for check in found.checks)
    failed = failed or (found.strict and bool(found.left_open_by))
    assert found.exit_code == int(failed)
    assert ("<failure" in to_junit(found)) == failed


def first_times(found: Comparison) -> set[str]:
    """The time that the first line is about, where it names none."""
    return {row.metric for row in found.rows if row.primary} & {"response_time", "latency"}
