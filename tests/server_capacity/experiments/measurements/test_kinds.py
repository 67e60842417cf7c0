"""Tokens a second and kinds of requests, in stretches and at the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from server_capacity.experiments.measurements.completions import Span
from server_capacity.experiments.measurements.generation import generated
from server_capacity.experiments.measurements.kinds import tokens_at_answer
from server_capacity.experiments.measurements.tokens_per_request import tokens_per_request
from server_capacity.results.types.capacity import SessionsAt
from server_capacity.search.limits import limits_of
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.record import RequestRecord

LIMITS = limits_of([Slo.parse("p95<100ms")], 0.95)


def labelled(record: RequestRecord) -> RequestRecord:
    """Every fourth request is long: 300 tokens in, 50 out, 150 ms; the others are of 100, 10 and 20 ms."""
    if record.index % 4 == 3:
        return record._replace(label="long", tokens_in=300, tokens_out=50, done=record.due + 150 * MS)
    return record._replace(label="short", tokens_in=100, tokens_out=10)


def wave(*, kinds: bool = True) -> Wave:
    return wave_of(labelled if kinds else lambda record: record)


def wave_of(made: Callable[[RequestRecord], RequestRecord]) -> Wave:
    plan = open_plan("100", "20")
    facts = observe(plan, [made(record) for record in on_time(plan)])
    return Wave(**{name: getattr(facts, name) for name in facts.__slots__})


def test_kinds_are_reported_with_their_rates_and_what_they_keep() -> None:
    found = tokens_at_answer([wave(), wave()], LIMITS)
    assert found is not None
    assert found.tokens_per_s == pytest.approx(100 * (10 * 0.75 + 50 * 0.25), rel=0.02)
    assert found.requests_per_s == pytest.approx(100, rel=0.01)
    short, long = found.by_label
    assert (short.name, short.requests, short.rate) == ("short", 3000, 75)
    assert short.share_over == [0, 0]
    assert (long.name, long.requests, long.rate) == ("long", 1000, 25)
    assert long.share_over == [1, 0]
    assert long.p99 == pytest.approx(0.15)
    assert [row.name for row in found.by_input_length] == ["64 to 127", "256 to 511"]
    assert [row.requests for row in found.by_input_length] == [3000, 1000]


def test_of_sessions_there_is_one_load_at_the_answer() -> None:
    """The wave began 5% fewer sessions than its rate says: 100 turns/s instead of 105."""
    at = SessionsAt(sessions_per_s=21, begun_per_s=20, turns_per_s=105, output_tokens_per_s=105 * 20)
    found = tokens_at_answer([wave()], LIMITS, at)
    assert found is not None
    assert (found.requests_per_s, found.tokens_per_s) == (at.turns_per_s, at.output_tokens_per_s)
    assert [(row.requests, row.rate) for row in found.by_label] == [(1500, 78.75), (500, 26.25)]
    assert sum(row.rate or 0.0 for row in found.by_input_length) == at.turns_per_s
    assert tokens_at_answer([wave()], LIMITS, SessionsAt()) == tokens_at_answer([wave()], LIMITS), "unknown"


def test_without_tokens_and_labels_there_is_nothing_to_tell() -> None:
    assert tokens_at_answer([wave(kinds=False)], LIMITS) is None


def test_of_each_stretch_there_are_tokens_a_second_and_labels() -> None:
    facts: WaveFacts = wave()
    start = facts.window.start_unix_ns / NS
    found = generated(
        facts, {3: Span(start, start + 4), 4: Span(start + 4, start + 10), 5: Span(start + 30, start + 40)}
    )
    assert found[4].tokens_per_s == pytest.approx(2_000, rel=0.01)
    assert found[3].labels == {"short": 300, "long": 100}
    assert (found[5].tokens_per_s, found[5].labels) == (0, {})
    assert generated(replace(wave(kinds=False)), {1: Span(start, start + 4)})[1].tokens_per_s is None


def test_tokens_of_a_request_are_those_that_the_server_reported() -> None:
    found = tokens_per_request([wave(), wave()])
    assert found is not None
    assert (found.requests, found.input, found.cached) == (4000, 150, None)
    assert found.output == 20
    assert found.output_sd == pytest.approx(300**0.5)


def test_counted_pieces_are_no_tokens_and_failed_requests_have_none() -> None:
    assert tokens_per_request([]) is None
    assert tokens_per_request([wave_of(lambda each: each._replace(chunks=12, first_token=each.due + 1))]) is None
    broken = wave_of(lambda each: labelled(each)._replace(outcome="failed" if each.index % 4 == 3 else "ok", error="E"))
    found = tokens_per_request([broken])
    assert found is not None
    assert (found.requests, found.output, found.output_sd) == (1500, 10, 0)


def test_cached_tokens_are_a_part_of_the_input() -> None:
    """Half of the requests report a cache, one of those more than their prompt had, which cannot be true."""

    def cached(each: RequestRecord) -> RequestRecord:
        known = {0: 60.0, 1: 5000.0}.get(each.index % 4)
        return each._replace(tokens_in=100, tokens_out=10, metrics={} if known is None else {"cached_tokens": known})

    found = tokens_per_request([wave_of(cached)])
    assert found is not None
    assert (found.input, found.cached) == (100, 15)
