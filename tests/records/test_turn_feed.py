"""First and later turns as they come in: their counts and times are those of the requests, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.feed import KEPT_S, Cell
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE, STREAM_DTYPE, TURN_DTYPE
from inference_benchmarker.records.prompts import TOO_LONG
from inference_benchmarker.records.record import NONE
from inference_benchmarker.records.turn_feed import FIRST, LATER, Contexts, TurnFeed
from inference_benchmarker.words.units import NS

# index, turn, second of its end, latency in ms, TTFT in ms (None: no stream; -1: a stream without a token), outcome,
# and of a stream its input tokens (-1: unknown) and those that were cached (None: unknown)
Turn = tuple[int, int, int, int, int | None, int, int, int | None]
TURNS = st.tuples(
    st.integers(-2, 5),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 900),
    st.none() | st.integers(-1, 50),
    st.integers(0, 2),
    st.integers(-1, 9) | st.just(TOO_LONG),
    st.none() | st.integers(-1, 9),
)


def take(feed: TurnFeed, turns: list[Turn]) -> None:
    """A report of these requests."""
    base, reported = np.zeros(len(turns), BASE_DTYPE), np.zeros(len(turns), TURN_DTYPE)
    streams = []
    cached_tokens = []
    for row, (index, turn, second, latency, ttft, outcome, tokens, cached) in enumerate(turns):
        base[row]["index"], base[row]["done"] = index, second * NS + 10**6
        base[row]["sent"] = base[row]["done"] - latency * 10**6
        base[row]["outcome"] = outcome | (HAS_STREAM if ttft is not None else 0)
        reported[row]["turn"] = turn
        if ttft is not None:
            first = NONE if ttft < 0 else base[row]["sent"] + ttft * 10**6
            streams.append((first, 0, 0, NONE if tokens < 0 else tokens, 0, 0))
            cached_tokens += [] if cached is None else [(row, 3, cached)]
    feed.take(base, np.array(streams, STREAM_DTYPE), reported, np.array(cached_tokens, METRIC_DTYPE))


def one_by_one(turns: list[Turn], *, first: bool) -> Cell:
    """The same of one part, turn by turn."""
    cell = Cell()
    times: dict[str, list[int]] = {"latency": [], "ttft": []}
    for index, turn, _, latency, ttft, outcome, *_ in turns:
        if index < 0 or (turn == 1) != first:
            continue
        cell.ok, cell.abandoned = cell.ok + (outcome == 0), cell.abandoned + (outcome == 2)
        if outcome == 1:
            cell.failed["failed"] += 1
            continue
        times["latency"].append(latency * 10**6)
        times["ttft"] += [] if ttft is None or ttft < 0 else [ttft * 10**6]
    cell.times.update({name: Histogram.of(values) for name, values in times.items() if values})
    return cell


def contexts_one_by_one(turns: list[Turn]) -> Contexts:
    """The input of the later ones, turn by turn."""
    known = [
        (tokens, cached)
        for index, turn, _, _, ttft, _, tokens, cached in turns
        if index >= 0 and turn > 1 and ttft is not None and 0 <= tokens < TOO_LONG
    ]
    both = [(tokens, cached) for tokens, cached in known if cached is not None and 0 <= cached <= tokens]
    sums = [sum(column) for column in zip(*both, strict=True)] or [0, 0]
    return Contexts(len(known), sum(tokens for tokens, _ in known), *sums)


@given(st.lists(TURNS, max_size=30), st.integers(0, 30))
def test_what_is_counted_is_what_the_requests_were(turns: list[Turn], cut: int) -> None:
    feed = TurnFeed()
    for some in (turns[:cut], turns[cut:]):
        take(feed, some)
    assert feed.total == {FIRST: one_by_one(turns, first=True), LATER: one_by_one(turns, first=False)}
    assert feed.any == any(turn > 1 and index >= 0 for index, turn, *_ in turns)
    for first, stop in ((0, 2), (1, 4)):
        some = [each for each in turns if first <= each[2] < stop]
        assert feed.over(LATER, first, stop) == one_by_one(some, first=False)
        assert feed.contexts(LATER, first, stop) == contexts_one_by_one(some)
    assert feed.second(FIRST, 2) == one_by_one([each for each in turns if each[2] == 2], first=True)


def test_its_memory_is_bounded_and_requests_that_are_no_turns_are_left_out() -> None:
    feed = TurnFeed()
    for second in range(3 * KEPT_S):
        take(feed, [(second, 2, second, 5, 1, 0, 10, 4)])
    assert feed.total[LATER].ok == 3 * KEPT_S
    assert feed.over(LATER, 0, 3 * KEPT_S).ok == KEPT_S
    kept = feed.contexts(LATER, 0, 3 * KEPT_S)
    assert (kept.requests, kept.mean, kept.cached_share) == (KEPT_S, 10, 0.4)
    feed = TurnFeed()
    feed.take(np.zeros(3, BASE_DTYPE), np.zeros(0, STREAM_DTYPE), np.zeros(0, TURN_DTYPE))
    assert not feed.any
    assert feed.total[FIRST].ok == 0


def test_a_report_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape|broadcast|cannot assign"):
        TurnFeed().take(np.zeros(3, BASE_DTYPE), np.zeros(0, STREAM_DTYPE), np.zeros(2, TURN_DTYPE))
    with pytest.raises(ValueError, match="not in its report"):
        TurnFeed().take(
            np.zeros(1, BASE_DTYPE),
            np.zeros(0, STREAM_DTYPE),
            np.ones(1, TURN_DTYPE),
            np.array([(1, 0, 5)], METRIC_DTYPE),
        )
