"""The watch that ends a wave early, held against feeds as workers write them: no process, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.engine.watchers.abort_judge import AbortJudge, dead_endpoint
from inference_benchmarker.plan.abort_on import AbortOn
from inference_benchmarker.records.feed import KEPT_S, Feed
from inference_benchmarker.records.feed_writer import FeedWriter
from inference_benchmarker.records.record import FAILED, NONE, OK
from inference_benchmarker.words.units import NS
from tests.waves import closed_plan, open_plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inference_benchmarker.facts.aborted import Aborted

REFUSED, GONE, ERROR, UNAVAILABLE = 1, 2, 3, 4
NAMES = ("", "ConnectionRefusedError", "APIConnectionError gaierror", "HttpError 500", "HttpError 503")


class Followed:
    """A wave's feed, to which requests are added by the seconds in which they are sent and over."""

    def __init__(self, *, open_loop: bool = True) -> None:
        self.writer, self.feed = FeedWriter(), Feed()
        self.writer.open_loop = open_loop
        self._index = 0

    def send(self, sent_s: float, took_s: float | None = 0.02, error: int = 0, late_s: float = 0.0) -> None:
        """A request; one that took None is in flight."""
        sent = int(sent_s * NS)
        due = sent - int(late_s * NS)
        self.writer.sendings.append((due, sent))
        if took_s is not None:
            done = sent + int(took_s * NS)
            outcome = FAILED if error else OK
            self.writer.rows.append((self._index, due, sent, done, 0, NONE, 0, error, outcome))
        self._index += 1
        self.writer.count()
        self.feed.merge(self.writer.unreported()["feed"], NAMES)
        self.writer.mark_reported()

    def send_all(self, instants_s: Iterable[float], took_s: float | None = 0.02, error: int = 0) -> None:
        """One request at each of these instants."""
        for instant in instants_s:
            self.send(instant, took_s, error)


def steadily(start_s: float, end_s: float, rate: float = 10) -> list[float]:
    return [start_s + number / rate for number in range(round((end_s - start_s) * rate))]


def looked(followed: Followed, *conditions: str, by: int, open_loop: bool = True) -> dict[int, Aborted]:
    """What the watch said when so many seconds were whole, each asked once."""
    make = open_plan if open_loop else closed_plan
    watch = AbortJudge(make(abort_on=tuple(map(AbortOn.parse, conditions))))
    found = {second: watch.look(followed.feed, second) for second in range(by + 1)}
    return {second: aborted for second, aborted in found.items() if aborted is not None}


class TestConditions:
    def test_success_is_that_of_the_requests_that_were_over_in_the_last_seconds(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 6))
        wave.send_all(steadily(6, 10), error=ERROR)
        found = looked(wave, "success<50%@4s", by=10)
        assert min(found) == 9, "one of four whole seconds was good; of those before, two"
        assert found[9].measured == pytest.approx(1 / 4, abs=0.03)
        assert (found[9].requests, found[9].over_s) == (40, 4)
        assert found[9].condition == "success<50%@4s"

    def test_nothing_is_judged_before_its_seconds_are_over(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 12), error=ERROR)
        assert min(looked(wave, "success<50%@10s", by=12)) == 10
        assert min(looked(wave, "success<50%@10s", "success<50%@3s", by=12)) == 3

    def test_no_request_over_is_no_success_and_no_failure(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 8), took_s=None)
        assert not looked(wave, "success<50%@2s", by=8)
        assert not looked(Followed(), "success<50%@2s", "p99>1s@2s", by=8)

    @pytest.mark.parametrize(
        ("condition", "ends"),
        [
            ("p99>1s@3s", True),
            ("p50>1s@3s", False),
            ("max>1s@3s", True),
            ("min>1s@3s", False),
            ("mean>1s@3s", False),
            ("mean>100ms@3s", True),
            ("latency.p99>1s@3s", True),
            ("p50>=19ms@3s", True),
            ("lag.p99>1ms@3s", False),
            ("ttft.p99>1ms@3s", False),
        ],
    )
    def test_times_are_those_of_the_last_seconds(self, condition: str, ends: bool) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 6))
        wave.send_all((0.5, 1.5, 2.5, 3.5), took_s=2)
        assert bool(looked(wave, condition, by=6)) is ends

    def test_a_bare_percentile_is_of_response_time_and_in_the_closed_loop_of_latency(self) -> None:
        for open_loop in (True, False):
            wave = Followed(open_loop=open_loop)
            for instant in steadily(3, 8):
                wave.send(instant, late_s=2)
            found = looked(wave, "p99>1s@3s", by=8, open_loop=open_loop)
            assert bool(found) is open_loop

    def test_slow_requests_of_long_ago_are_forgotten(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 2), took_s=1.5)
        wave.send_all(steadily(2, 12))
        assert set(looked(wave, "p90>1s@2s", by=12)) == {2, 3, 4, 5}, "the last were over in the fourth second"


class TestHangs:
    def test_an_endpoint_that_answers_nobody_is_found_when_its_requests_are_older_than_the_limit(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 5))
        wave.send_all(steadily(5, 10), took_s=None)
        found = looked(wave, "p99>2s@4s", by=12)
        assert min(found) == 8
        assert found[8].measured == pytest.approx(2.5, rel=0.01)

    def test_a_few_that_hang_are_found_beside_those_that_are_answered(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 10))
        wave.send_all(steadily(2, 6, rate=1), took_s=None)
        assert min(looked(wave, "p95>1s@3s", by=10, open_loop=True)) == 5, "2 of 32"

    def test_one_that_hangs_for_ever_counts_once(self) -> None:
        """A minute later the wave is as good as the rest of it."""
        wave = Followed()
        wave.send(0.5, None)
        wave.send_all(steadily(0, 30))
        assert set(looked(wave, "max>2s@4s", by=30)) == {4, 5, 6}

    def test_a_limit_longer_than_what_the_feed_keeps_is_judged(self) -> None:
        wave = Followed()
        wave.send_all((0.1, 0.2), took_s=None)
        wave.send_all(range(0, KEPT_S + 40, 4))
        assert min(looked(wave, f"max>{KEPT_S + 10}s@10s", by=KEPT_S + 40)) == KEPT_S + 11

    def test_what_is_in_flight_and_young_tells_nothing(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 4), took_s=None)
        assert not looked(wave, "p99>5s@2s", "p99>30s@2s", by=4)

    def test_what_is_answered_at_last_is_in_flight_no_more(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 70, rate=1), took_s=3)
        assert sum(wave.feed.waiting.values()) == 0
        assert not looked(wave, "p99>4s@10s", by=70)


class TestDeadEndpoint:
    @staticmethod
    def ends(wave: Followed, by: int) -> int | None:
        return min(looked(wave, by=by), default=None)

    @pytest.mark.parametrize("error", [REFUSED, GONE])
    def test_nothing_but_refusals_end_the_wave(self, error: int) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 10), took_s=0, error=error)
        found = looked(wave, by=10)
        assert min(found) == 4
        assert (found[4].condition, found[4].measured, found[4].over_s) == ("", None, 4)

    @pytest.mark.parametrize("error", [ERROR, UNAVAILABLE])
    def test_a_server_that_answers_is_not_dead(self, error: int) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 10), error=error)
        assert self.ends(wave, 10) is None

    @pytest.mark.parametrize("began_s", [2.0, 2.35, 2.7, 2.95])
    @pytest.mark.parametrize("lasted_s", [1.0, 2.5, 2.95])
    @pytest.mark.parametrize("rate", [2, 7, 50])
    def test_one_that_is_back_within_three_seconds_goes_on(self, began_s: float, lasted_s: float, rate: float) -> None:
        """Wherever the outage lies, and however sparse the requests: asked whenever a second is whole."""
        plan, wave = open_plan(), Followed()
        watch, whole = AbortJudge(plan), 0
        for instant in steadily(0.0123, 12, rate):
            while whole < int(instant):
                whole += 1
                assert watch.look(wave.feed, whole) is None, whole
            out = began_s <= instant < began_s + lasted_s
            wave.send(instant, 0, error=REFUSED if out else 0)
            assert watch.look(wave.feed, whole) is None, instant

    def test_a_low_rate_needs_two_failures_three_seconds_apart(self) -> None:
        wave = Followed()
        wave.send(0.0, 0, REFUSED)
        assert self.ends(wave, 30) is None
        wave.send(5.0, 0, REFUSED)
        assert self.ends(wave, 30) == 5
        assert dead_endpoint(wave.feed, 3) is None, "the fifth second is not known yet"

    def test_failures_before_a_pause_tell_nothing_of_what_follows(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 2), 0, REFUSED)
        assert self.ends(wave, 60) is None

    def test_one_success_on_the_way_begins_anew(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 3), 0, REFUSED)
        wave.send(3.5, 0)
        wave.send_all(steadily(4, 7.5), 0, REFUSED)
        assert self.ends(wave, 8) is None
        wave.send_all(steadily(7.5, 9), 0, REFUSED)
        assert self.ends(wave, 9) == 8

    def test_what_hangs_from_before_does_not_hide_it(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 2), took_s=None)
        wave.send_all(steadily(2, 8), 0, REFUSED)
        assert self.ends(wave, 8) == 6

    def test_no_abort_goes_on_and_conditions_hold_all_the_same(self) -> None:
        wave = Followed()
        wave.send_all(steadily(0, 10), 0, REFUSED)
        assert AbortJudge(open_plan(abort=False)).look(wave.feed, 10) is None
        condition = AbortOn.parse("success<10%@5s")
        assert AbortJudge(open_plan(abort=False, abort_on=(condition,))).look(wave.feed, 10) is not None
