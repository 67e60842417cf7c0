"""The line on a search that runs."""

from __future__ import annotations

from dataclasses import replace

from server_capacity.experiments.capacity.progress import progress_text
from server_capacity.search.limits import Limit
from server_capacity.search.stretch import Count, Slice, Stretch

LIMIT = Limit("p99<100ms", "response_time", 0.01, 0.1)


def stretch(number: int, rate: float, over: int = 0) -> Stretch:
    """Ten seconds at a rate."""
    start_s = 10.0 * number
    counts = (Count(100, over),)
    return Stretch(number, rate, start_s, start_s + 10, (Slice(start_s, start_s + 10, 100, 100, counts),), "grow")


def test_it_says_what_is_tried_and_where_the_answer_lies() -> None:
    met, missed, running = stretch(0, 16), stretch(1, 64, over=50), stretch(2, 32)
    assert progress_text([LIMIT], [met], 60) == "10 of 60 s of load: trying 16/s"
    assert progress_text([LIMIT], [met, running], 60) == "20 of 60 s of load: trying 32/s, limits so far met at 16/s"
    found = progress_text([LIMIT], [met, missed, running], None, " users")
    assert found == "30 s of load: trying 32 users, limits so far met at 16 users, missed at 64 users"


def test_it_never_runs_backwards_where_a_stretch_is_discarded() -> None:
    met, running = stretch(0, 16), stretch(1, 32)
    void = replace(running, void="the client was the limit")
    assert progress_text([LIMIT], [met, running], 60).startswith("20 of 60 s of load: ")
    assert progress_text([LIMIT], [met, void], 60).startswith("20 of 70 s of load (10 s discarded): ")
    waiting = replace(stretch(2, 0), rate=0.0)
    assert progress_text([LIMIT], [met, void, waiting], 60).startswith(
        "20 of 70 s of load (10 s discarded): waiting until no"
    )
