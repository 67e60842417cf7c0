"""The live view: what it says about the last seconds is what the records say."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker.cli.live.live_lines import rows
from inference_benchmarker.cli.live.progress import Meter, PanelView, PlainView, headline, is_line, line
from inference_benchmarker.cli.live.screen import Screen
from inference_benchmarker.plan.hosts import Hosts, hosts_in
from inference_benchmarker.plan.load import Bounds, OpenLoop
from inference_benchmarker.plan.steering import RateChange
from inference_benchmarker.records.batch import HAS_STREAM
from inference_benchmarker.records.histogram import Histogram
from inference_benchmarker.records.packed import BASE_DTYPE, METRIC_DTYPE, STREAM_DTYPE, TURN_DTYPE
from inference_benchmarker.records.record import NONE, Ledger
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.waves import MS, closed_plan, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.cli.live.progress import Snapshot

PLAN = open_plan("100", "60")


def cells(first: int, stop: int, *, latency_ms: int = 20, lag_ms: int = 1, **counts: int) -> list[dict[str, Any]]:
    """A feed of 100 requests a second that were answered in these seconds."""
    times = {
        "latency": Histogram.of([latency_ms * MS] * 100).to_json(),
        "response_time": Histogram.of([(latency_ms + lag_ms) * MS] * 100).to_json(),
        "lag": Histogram.of([lag_ms * MS] * 100).to_json(),
    }
    return [{"s": second, "n": 0, "sent": 100, "ok": 100, **times, **counts} for second in range(first, stop)]


def spool_state(at_s: float, *feed: dict[str, Any], **counts: int) -> SpoolState:
    made = SpoolState([], 1)
    made.workers[0].ledger, made.workers[0].at = Ledger(**counts), int(at_s * NS)
    made.feed.merge(list(feed), [])
    return made


def snapshot(*feed: dict[str, Any], at_s: float = 10, plan: Any = PLAN, **counts: int) -> Snapshot:
    return Meter(plan).take(spool_state(at_s, *feed, **counts), int(at_s * NS))


@pytest.mark.parametrize("plan", [PLAN, open_plan("0.5", None, 1_500), closed_plan(4, "60")])
def test_a_line_on_the_progress_can_be_told_from_others(plan: Any) -> None:
    for at_s in (-1, 0, 10, 59.9, 4_000):
        seen = snapshot(*cells(0, 5), at_s=at_s, plan=plan, sent=1_500, ok=1_490, failed=3, dropped=2)
        assert is_line(line(plan, seen))
    for other in (
        headline(plan),
        "Waiting for load-1, load-2 to join.",
        "3s running",
        "load-1 is lost: 10s running, sent",
    ):
        assert not is_line(other)


def test_rate_and_percentiles_are_of_the_last_five_seconds() -> None:
    seen = snapshot(*cells(0, 5, latency_ms=900), *cells(5, 10), sent=1000, ok=1000)
    assert seen.rate == 100
    assert seen.times["latency"].count == 500
    assert seen.times["latency"].percentile(100) == pytest.approx(0.02, rel=0.01)
    assert seen.times["lag"].percentile(99) == pytest.approx(0.001, rel=0.01)


def test_early_on_the_rate_is_over_the_time_there_was() -> None:
    assert snapshot(*cells(0, 2), at_s=2, sent=200, ok=200).rate == 100


def test_failed_requests_are_not_completed() -> None:
    assert snapshot(*cells(5, 10, ok=50), sent=1000, ok=500, failed=500).rate == 50


@pytest.mark.parametrize(
    ("plan", "at_s", "counts", "share", "state"),
    [
        (PLAN, -2, {}, 0, "starting"),
        (replace(PLAN, warmup_s=Decimal(5)), -2, {}, 0, "warm-up"),
        (PLAN, 30, {"sent": 3000}, 0.5, "running"),
        (PLAN, 61, {"sent": 6000, "ok": 5990}, 1, "waiting for 10 in flight"),
        (open_plan("10", None, 100), 5, {"sent": 50, "dropped": 10}, 0.6, "running"),
        (open_plan("10", "100", 100), 5, {"sent": 50}, 0.5, "running"),
        (closed_plan(2, None, 10), 5, {"sent": 9}, 0.9, "running"),
        (closed_plan(2, None, 10), 5, {"sent": 10, "ok": 8}, 1, "waiting for 2 in flight"),
    ],
)
def test_it_knows_how_far_the_wave_is(plan: Any, at_s: float, counts: dict[str, int], share: float, state: str) -> None:
    seen = snapshot(at_s=at_s, plan=plan, **counts)
    assert (seen.share, seen.state) == (share, state)


def test_a_line_says_it_in_words() -> None:
    seen = snapshot(*cells(5, 10), sent=1003, ok=1000, failed=1, dropped=7)
    assert line(PLAN, seen) == (
        "10s/60s running, sent 1,003 so far, completed 100.0/s of 100/s, in flight 2, "
        "errors 1, dropped 7, latency p50 20 ms p99 20 ms, lag p99 1 ms"
    )
    closed = closed_plan(1, None, 5)
    assert line(closed, snapshot(plan=closed, sent=1)) == (
        "10s running, sent 1 so far, completed 0.0/s, in flight 1, errors 0"
    )


def test_elsewhere_than_on_a_terminal_a_line_comes_every_ten_seconds() -> None:
    stream = io.StringIO()
    view = PlainView(PLAN, stream)
    view.say("hello")
    for half_seconds in range(-10, 61):
        view.update(spool_state(half_seconds / 2), half_seconds * NS // 2)
    view.close()
    hello, headline, *lines = stream.getvalue().splitlines()
    assert (hello, headline) == ("hello", "Sending 100 requests/s for 60 s, from 1 worker.")
    assert [text.split(",")[0] for text in lines] == ["10s/60s running", "20s/60s running", "30s/60s running"]


def test_ten_hours_elsewhere_than_on_a_terminal_are_some_hundred_lines() -> None:
    stream = io.StringIO()
    view, state = PlainView(PLAN, stream), spool_state(0)
    for second in range(0, 36_001, 5):
        view.update(state, second * NS)
    times = [int(text.partition("s")[0]) for text in stream.getvalue().splitlines()[1:]]
    assert times == [*range(10, 600, 10), *range(600, 36_001, 60)]


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (closed_plan(2, None, 10), "Keeping 2 requests in flight until 10 are sent, from 1 worker."),
        (closed_plan(1, None, 10), "Keeping 1 request in flight until 10 are sent, from 1 worker."),
        (
            open_plan("7.3", "2.5", 1000, workers=3),
            "Sending 7.3 requests/s for 2.5 s, or until 1,000 are sent, from 3 workers.",
        ),
        (
            open_plan("7.3", "2.5").on(Hosts(hosts_in("load1,load2*3"))),
            "Sending 7.3 requests/s for 2.5 s, from 2 hosts.",
        ),
        (
            open_plan("7.3", "2.5").on(Hosts(hosts_in("load1*1,load2*3"))),
            "Sending 7.3 requests/s for 2.5 s, from 4 workers.",
        ),
    ],
)
def test_the_headline_says_what_the_wave_will_do(plan: Any, sentence: str) -> None:
    assert headline(plan) == sentence


def test_the_rate_is_the_one_that_was_last_asked_for_and_the_foot_follows_at_once() -> None:
    plan = replace(PLAN, load=OpenLoop(Decimal(100), steered=True), bounds=Bounds())
    state = spool_state(10, sent=1)
    state.changes += [RateChange(9 * NS, Decimal(110)), RateChange(11 * NS, Decimal(121))]
    stream = io.StringIO()
    view = PanelView(plan, Screen(stream, colours=False))
    view.set_foot("Rate 110/s. [bold]")
    view.update(state, 10 * NS)
    assert "target" in stream.getvalue()
    view.set_foot("Rate 121/s. [bold]")
    assert "Rate 121/s. [bold]" in stream.getvalue()
    view.close()
    view.set_foot("Rate 9/s.")
    assert "Rate 9/s" not in stream.getvalue()
    assert mentions(headline(plan), "100 requests", "1 worker")


@pytest.mark.parametrize("streams", [True, False])
def test_first_and_later_turns_have_a_line_each_where_there_are_later_ones(streams: bool) -> None:
    state = spool_state(10, *cells(5, 10), sent=500, ok=500)
    state.start = {"sessions": True}
    turns, reported = np.zeros(20, TURN_DTYPE), np.zeros(20, BASE_DTYPE)
    reported["done"] = np.repeat([9 * NS, 2 * NS], 10)
    turns["turn"] = [1, 2] * 10
    reported["sent"] = reported["done"] - np.tile([400 * MS, 100 * MS], 10)
    first = np.zeros(20 if streams else 0, STREAM_DTYPE)
    if streams:
        reported["outcome"] = HAS_STREAM
        first["first_token"] = reported["sent"] + np.tile([200 * MS, 50 * MS], 10)
        first["tokens_in"] = np.tile([NONE, 1200], 10)
    state.turns.take(reported[::2], first[::2], turns[::2])
    assert not [row for row in rows(PLAN, state) if row.name.startswith("turn ")], "no later turn came yet"
    cached = np.array([(row, 0, 900.0) for row in range(10 if streams else 0)], METRIC_DTYPE)
    state.turns.take(reported[1::2], first[1::2], turns[1::2], cached)
    shown = {row.name: row.value for row in rows(PLAN, state) if row.name.startswith("turn ")}
    if streams:
        times = {"turn 1 TTFT p99": "200 ms", "turn 2+ TTFT p99": "50 ms"}
        assert shown == {**times, "turn 2+ context": "1,200 tokens, 75% cached"}, "the server says nothing of the first"
        view = PanelView(PLAN, Screen(panel := io.StringIO(), colours=False))
        view.update(state, 10 * NS)
        lines = re.sub(r"\x1b\[[?\d]*[A-Za-z]|\r", "", panel.getvalue()).splitlines()
        (context,) = (each for each in lines if "context" in each)
        assert context.split()[:7] == ["turn", "2+", "context", "1,200", "tokens,", "75%", "cached"]
        assert max(map(len, lines)) <= 80
    else:
        assert shown == {"turn 1 latency p99": "400 ms", "turn 2+ latency p99": "100 ms"}


def test_sessions_are_counted_where_arrivals_are_sessions() -> None:
    counts = {"sent": 300, "ok": 290, "failed": 5, "later_turns": 180}
    state = spool_state(10, *cells(5, 10), **counts, sessions_completed=90, sessions_failed=5, sessions_raised=2)
    state.start = {"sessions": True}
    shown = {row.name: row.value for row in rows(PLAN, state)}
    assert shown["sessions"] == "120 started, 23 open"
    assert shown["sessions completed"] == "90, 7 not"
    assert shown["sent"] == "100.0/s", "a planned rate is one of sessions"
    seen = Meter(PLAN).take(state, 10 * NS)
    assert mentions(line(PLAN, seen), "120 sessions started", "23 open")
    assert Meter(PLAN).take(state, 70 * NS).state == "waiting for 23 open sessions"
    assert mentions(headline(PLAN, sessions=True), "100 sessions/s")
    assert mentions(headline(closed_plan(7, number=20), sessions=True), "7 sessions", "until 20 are started")
