"""Streams whose speed between pieces is not that of the server: buffers, few large pieces, hidden reasoning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from inference_benchmarker.records.columns import Records
from server_capacity.results.types.price import per_million
from tests.case import case
from tests.mentions import mentions
from tests.waves import MS, chat, observe, open_plan, streamed
from visualization.pareto.pieces import HIDDEN, TOGETHER, pieces_of
from visualization.pareto.points import END_TO_END, ITL, MEDIAN, P90, Configuration, unusable_because
from visualization.pareto.result import pareto_of
from visualization.pareto.text import to_csv, to_text

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.wave.wave import Wave


def wave_of(gaps_us: list[int], first_ms: int = 20, tokens: int | None = None, **more: Any) -> WaveFacts:
    """Streams that all have these gaps."""
    base = streamed(0, first_ms, (), tokens_out=tokens or len(gaps_us) + 1, chunks=len(gaps_us) + 1, **more)
    last = base.first_token + sum(gaps_us) * 1000  # type: ignore[operator]
    stream = base._replace(gaps=tuple(gaps_us), last_token=last, done=last)
    shift = 100 * MS
    names = ("due", "sent", "first_token", "last_token", "done")
    rows = [
        stream._replace(index=at, **{name: getattr(stream, name) + at * shift for name in names}) for at in range(10)
    ]
    return observe(open_plan("10", "1"), rows)


def burst(pieces: int, us: int = 3) -> list[int]:
    """The gaps within so many pieces that came at once."""
    return [us] * (pieces - 1)


LUMPS: dict[str, WaveFacts] = {
    "24 pieces, and 6": wave_of([*burst(24), 60_000, *burst(6)], 240),
    "29 pieces, and one": wave_of([*burst(29), 30_000], 270),
    "three flushes": wave_of([*burst(10), 100_000, *burst(10), 100_000, *burst(10)], 100),
    "990 tokens, and ten": wave_of([*burst(990), 600_000, *burst(10)], 9_400),
    "two pieces of many tokens": wave_of([60_000], 240, tokens=30),
    "all at once": wave_of(burst(30), 300),
}
STEADY: dict[str, WaveFacts] = {
    "one token after another": wave_of([10_000] * 29, 10),
    "fast": wave_of([400] * 99, 10),
    "four tokens a piece": wave_of([40_000] * 15, 40, tokens=64),
    "eight tokens a piece": wave_of([80_000] * 7, 80, tokens=64),
    "steps of up to four accepted tokens": wave_of([*burst(4), *([40_000, *burst(4)] * 7)], 40),
    "steps of two and of one": wave_of([30_000, *([3, 30_000] * 10)], 40),
    "a first piece at once, and the rest at the end": wave_of([290_000, *burst(29)], 10),
    "a long pause in the middle": wave_of([*[10_000] * 15, 5_000_000, *[10_000] * 15], 10),
    "short": wave_of([10_000, 10_000], 10),
}


def test_a_buffer_that_is_emptied_more_than_once_is_recognised() -> None:
    for name, found in LUMPS.items():
        with case(name):
            assert pieces_of(found).arrive_together


def test_servers_that_send_several_tokens_at_a_time_are_not_marked() -> None:
    for name, found in STEADY.items():
        with case(name):
            assert not pieces_of(found).arrive_together


def test_the_gaps_of_each_stream_are_its_own() -> None:
    """Streams of other lengths and of no gaps stand before and after it."""
    mixed = [replace(found, records=found.records.between(0, 3)) for found in (*STEADY.values(), *LUMPS.values())]
    whole = replace(mixed[0], records=Records.joined([part for each in mixed for part in each.records.parts()]))
    found = pieces_of(whole)
    assert (found.streams, found.at_once) == (3 * len(mixed), 3 * len(LUMPS))


def thinking(hidden: float, share: float = 1.0, **more: Any) -> Wave:
    """Streams of 11 pieces, of which this share has so many more tokens of reasoning."""
    reports = pa.array([hidden if place < share * 80 else None for place in range(80)], pa.float64())
    tokens = pa.array([11 + int(hidden) if place < share * 80 else 11 for place in range(80)], pa.int64())
    made = chat(tokens_out=tokens, **more)
    assert isinstance(made.records, Records)
    return replace(made, records=Records(made.records.table.append_column("metric.reasoning_tokens", reports)))


def test_tokens_that_no_piece_has_are_no_speed_of_a_user() -> None:
    found = pareto_of([Configuration("A", (chat(),)), Configuration("B", (thinking(100),))], per_million)
    assert found.result.points[1].unusable == [HIDDEN]
    assert not {MEDIAN, P90, ITL} & {*found.points[1].speeds}
    assert END_TO_END in found.points[1].speeds
    assert all(1 not in answer.frontier for answer in found.answers)
    assert mentions(found.result.headline, f"1 of 2 runs is not usable: {HIDDEN}")
    assert mentions(to_text(found), f"✗ B, 2/s: {HIDDEN}")
    assert mentions(to_csv(found), HIDDEN)


SEEN: dict[str, Wave] = {
    "pieces that show reasoning": thinking(100, first_answer=chat().records.int("first_token") + MS),  # type: ignore[attr-defined]
    "as many pieces as tokens": thinking(0),
    "a few requests": thinking(100, share=0.05),
    "without a report": chat(),
}


def test_reasoning_that_is_streamed_or_rare_is_no_matter() -> None:
    for name, made in SEEN.items():
        with case(name):
            assert HIDDEN not in [*unusable_because(made)]
            assert TOGETHER not in [*unusable_because(made)]


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_reasoning_that_some_requests_hide_is_recognised(share: float) -> None:
    assert HIDDEN in [*unusable_because(thinking(100, share=share))]
