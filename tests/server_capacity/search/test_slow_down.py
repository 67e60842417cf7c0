"""An endpoint that got slower: what came before tells nothing of the rate that lasts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.search.answer import Answer, Estimate, Interval
from server_capacity.search.limits import Limit
from server_capacity.search.settings import Settings
from server_capacity.search.slow_down import SLOWER, if_it_lasts, lasts, slower, without_slow_down
from server_capacity.search.stretch import Count, Slice, Stretch
from tests.server_capacity.search.queues import Queue, play

if TYPE_CHECKING:
    import random

P99 = Limit("p99<400ms", "response_time", 0.01, 0.4)
LIMITS = P99, Limit("success>=0.95", "success", 0.05)
FOUND = Answer("found", 66.0, Interval(60.0, 72.0), P99.expression, estimates=(Estimate(P99.expression, slope=9.0),))


def at(start_s: float, rate: float, mean_s: float = 0.02, seconds: float = 8.0, failed: int = 0) -> Stretch:
    """Slices whose mean times differ by a tenth, in turn."""
    sent = round(rate)
    part = Slice(start_s, start_s + 1.0, sent, sent, (Count(sent, 0), Count(sent, failed)))
    slices = tuple(
        replace(part, start_s=start_s + second, spent_s=(sent - failed) * mean_s * (1 + 0.1 * (-1) ** second))
        for second in range(round(seconds))
    )
    return Stretch(int(start_s), rate, start_s, start_s + seconds, slices, "below")


BEFORE, AFTER, AGAIN = at(10, 120), at(90, 120, 0.08), at(100, 115, 0.08)


@pytest.mark.parametrize(
    ("stretches", "expected"),
    [
        ([BEFORE, AFTER, AGAIN], True),
        ([BEFORE, AFTER], False),
        ([BEFORE, at(90, 80, 0.08), at(100, 75, 0.08)], True),
        ([BEFORE, AFTER, AGAIN, at(110, 60), at(120, 50)], True),
        ([BEFORE, at(90, 150, 0.08), at(100, 150, 0.08)], False),
        ([BEFORE, at(22, 120, 0.08), at(24, 115, 0.08)], False),
        ([BEFORE, at(90, 120, 0.021), at(100, 115, 0.021)], False),
        ([BEFORE, at(90, 120, 0.026), at(100, 118, 0.026), at(110, 60, 0.026)], True),
        ([at(10, 120, 0.08), at(90, 120), at(100, 115)], False),
        ([at(10, 2), at(90, 2, 0.08), at(100, 2, 0.08)], False),
        ([BEFORE, AFTER, at(120, 125), at(130, 120), at(140, 119)], False),
        ([replace(BEFORE, void="schedule lag"), AFTER, AGAIN], False),
        ([at(0, 30, 0.08), at(10, 120), at(90, 60, 0.06), at(100, 60, 0.06)], False),
        ([BEFORE, at(90, 110, 0.02, failed=55), at(100, 105, 0.02, failed=55)], False),
    ],
)
def test_answers_that_took_longer_than_load_explains(stretches: list[Stretch], expected: bool) -> None:
    assert (slower(LIMITS, stretches) is not None) == expected
    kept = without_slow_down(LIMITS, stretches)
    assert [each.void for each in kept if each.void == SLOWER] == [SLOWER] * expected
    assert kept[-1].void == stretches[-1].void


def test_the_two_stretches_that_show_it_best_are_reported() -> None:
    seen = slower(LIMITS, [BEFORE, at(30, 125), at(50, 118, 0.03), AFTER, AGAIN])
    assert seen is not None
    assert (seen.before.rate, seen.after.rate) in {(120, 120), (125, 120), (120, 115), (125, 115)}
    assert seen.after.mean_s == pytest.approx(0.08)
    assert (seen.until_s, seen.from_s) == (58.0, 90.0)


@pytest.mark.parametrize(
    ("since_s", "time_s", "found", "expected"),
    [
        (80.0, 180.0, FOUND, "--time 5m"),
        (80.0, None, FOUND, "--time 5m"),
        (80.0, 600.0, FOUND, "--time 15m"),
        (100.0, 180.0, FOUND, ""),
        (100.0, 180.0, Answer("not_kept", reason="at 2/s"), "--time 5m"),
        (200.0, 360.0, Answer("not_kept", reason="at 2/s"), ""),
    ],
)
def test_too_little_since_then_is_said_with_the_time_that_it_takes(
    since_s: float, time_s: float | None, found: Answer, expected: str
) -> None:
    stretches = [replace(at(0, 120, seconds=100), void=SLOWER), at(100, 60, seconds=since_s)]
    answer = if_it_lasts(Settings(time_s=time_s), stretches, found)
    assert (answer == found) == (not expected)
    assert answer.reason.endswith(expected or found.reason)
    assert lasts(Settings(), stretches) == (since_s >= 90)
    assert if_it_lasts(Settings(), stretches[1:], found) == found


@dataclass
class Throttled(Queue):
    """Serves at two fifths of its speed from an instant on."""

    from_s: float = 0.0

    def answered_at(self, at_s: float, draw: random.Random) -> float:
        """As the queue does, in the time that a service takes then."""
        self.service = lambda of: of.expovariate(20.0 if at_s >= self.from_s else 50.0)
        return super().answered_at(at_s, draw)


@pytest.mark.parametrize("from_s", [30.0, 60.0, 150.0])
def test_the_answer_is_the_lasting_rate_or_the_time_that_it_takes(from_s: float) -> None:
    played = play(Throttled(4, lambda _: 0.0, from_s=from_s), [P99], Settings(time_s=180.0), seed=5)
    found = played.answer
    if found.interval is None:
        assert (found.outcome, found.rate) == ("cannot_tell", None)
        assert found.reason.startswith(SLOWER)
        assert from_s > 60
    else:
        assert found.interval.low < 66.9 < 1.1 * found.interval.high
        assert found.interval.high < 188.2 / 2, "what it could do at first"
