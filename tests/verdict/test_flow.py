"""Whether the endpoint fell behind, whatever its order of service: simulated queues below and above their capacity."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.facts.client_use import LoopDelay, WorkerUse
from inference_benchmarker.records.columns import Records
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.bottleneck import bottleneck_findings, limited_by
from inference_benchmarker.verdict.client.endpoint import ENDPOINT_STALLED, SERVER_LIMITED
from inference_benchmarker.verdict.client.flow import Flow
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.parts import in_memory
from tests.queues import KINDS, ORDERS, held_up, observed_at, offered, services_of, waiting

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.verdict.finding import Finding


def found(facts: WaveFacts) -> dict[str, Finding]:
    return {finding.code: finding for finding in bottleneck_findings(facts, summarise(facts))}


def named(facts: WaveFacts) -> bool:
    return SERVER_LIMITED in found(facts)


class TestOrdersOfService:
    """docs/reference/findings.md has the shares of thousands of waves; these are few, and of the clear cases."""

    @pytest.mark.parametrize("order", ORDERS)
    def test_below_capacity_nobody_is_named(self, order: str) -> None:
        cases = [(load, kind) for load in (0.3, 0.7, 0.9) for kind in KINDS]
        wrong = [
            (load, kind, seed)
            for seed, (load, kind) in enumerate(cases * 2)
            if named(offered(order, load, kind=kind, servers=(1, 4, 16)[seed % 3], poisson=seed % 2 == 0, seed=seed))
        ]
        assert wrong == []

    @pytest.mark.parametrize("order", ORDERS)
    @pytest.mark.parametrize(("load", "kind"), [(1.5, "fixed"), (2, "exponential"), (2.5, "lognormal")])
    def test_above_it_the_endpoint_is(self, order: str, load: float, kind: str) -> None:
        waves = [offered(order, load, kind=kind, servers=(1, 4, 16)[seed % 3], seed=seed) for seed in range(4)]
        assert all(named(facts) for facts in waves)

    @pytest.mark.parametrize("order", ["first come first served", "last come first served", "processor sharing"])
    def test_a_twentieth_above_it_is_enough_for_a_wave_that_is_even(self, order: str) -> None:
        assert named(offered(order, 1.05, kind="fixed", poisson=False, seconds=30, servers=4))
        assert not named(offered(order, 1.03, kind="fixed", poisson=False, seconds=30, servers=4))

    def test_the_requests_that_were_abandoned_are_none_that_were_answered(self) -> None:
        """An endpoint that serves the newest first answers fast what it answers, and the rest never."""
        facts = offered(
            "last come first served", 180 / 132, kind="fixed", rate=180, servers=4, poisson=False, drain_s=0.1
        )
        assert facts.ledger.abandoned > 400
        measured = found(facts)[SERVER_LIMITED].measured
        assert measured.startswith("13")
        assert "/s of 180/s completed during the load (73." in measured
        assert "; the requests in flight grew from 1" in measured

    @settings(max_examples=30)
    @given(st.sampled_from(sorted(ORDERS)), st.floats(1.3, 3.0), st.integers(1, 16), st.integers(0, 1000))
    def test_the_more_in_flight_the_less_was_completed(self, order: str, load: float, servers: int, seed: int) -> None:
        facts = offered(order, load, servers=servers, seed=seed)
        flow = Flow.of(facts, 10 * NS)
        over = np.sort(in_memory(facts.records).int("done"))
        completed = np.count_nonzero((over >= 2.5 * NS) & (over < 10 * NS))
        assert flow.growth == flow.sent.sum() - completed
        assert flow.share == pytest.approx(1 - 1 / load, abs=0.25)


class TestWhatIsNoQueue:
    """Whatever makes requests in flight grow for a while, and is no lack of capacity."""

    DUES = tuple(number / 100 for number in range(1000))

    def test_latencies_that_are_long_from_first_to_last(self) -> None:
        for latency in (0.02, 1, 3, 5, 8, 12):
            assert not named(observed_at(100, 10, self.DUES, [due + latency for due in self.DUES])), latency

    def test_a_tenth_or_a_half_that_takes_long(self) -> None:
        for share in (0.1, 0.5):
            for long_s in (0.5, 1, 2, 4, 6, 9):
                for seed in range(3):
                    random = np.random.default_rng(seed)
                    took = np.where(random.random(1000) < share, long_s, 0.02)
                    assert not named(observed_at(100, 10, self.DUES, list(self.DUES + took))), (share, long_s, seed)

    @pytest.mark.parametrize("paused", [[(9.0, 0.9)], [(2, 1.5), (6, 1.5)], [(at, 0.3) for at in range(10)]])
    def test_pauses_of_a_garbage_collector(self, paused: list[tuple[float, float]]) -> None:
        """Nobody is answered in a pause, and all who waited soon after it."""
        random = np.random.default_rng(3)
        services = services_of("exponential", random, 1000, 4 * 0.6 / 100)
        done = ORDERS["first come first served"](self.DUES, services, 4)
        for begin, length in paused:
            done = [
                begin + length + (instant - begin) / 3 if begin <= instant < begin + length else instant
                for instant in done
            ]
        assert not named(observed_at(100, 10, self.DUES, done))

    @pytest.mark.parametrize("until", [1, 3, 5])
    def test_a_slow_start(self, until: float) -> None:
        """Its first seconds at half its speed, then it catches up."""
        services = [0.06 if due < until else 0.02 for due in self.DUES]
        assert not named(observed_at(100, 10, self.DUES, ORDERS["first come first served"](self.DUES, services, 4)))

    def test_batches_that_wait_for_their_time(self) -> None:
        for every in (0.1, 0.5, 1.0, 2.0):
            done = [(due // every + 1) * every for due in self.DUES]
            assert not named(observed_at(100, 10, self.DUES, done)), every


class TestAFullPool:
    """What came first is the cause."""

    OVERLOADED = offered("first come first served", 1.5, kind="fixed", poisson=False, rate=300, seconds=20)

    def test_an_endpoint_that_fell_behind_before_it_was_full_is_the_limit(self) -> None:
        findings = bottleneck_findings(replace(self.OVERLOADED, workers=(waiting(9.5),)), summarise(self.OVERLOADED))
        assert [finding.code for finding in findings] == [SERVER_LIMITED, "connection_pool"], "the cause first"
        assert limited_by(findings) == "server"
        assert mentions(findings[0].measured, "1.8 s", "4.17 s")
        assert mentions(findings[0].measured, "241", "954", "9.5 s")
        assert findings[1].advice.startswith("A consequence: the endpoint fell behind before")

    @pytest.mark.parametrize("clear_until_s", [None, 0.0, 0.2])
    def test_a_pool_that_was_full_before_anything_was_seen_is(self, clear_until_s: float | None) -> None:
        findings = found(replace(self.OVERLOADED, workers=(waiting(clear_until_s),)))
        assert list(findings) == ["connection_pool"]
        assert "must hold all requests in flight" in findings["connection_pool"].advice

    def test_the_first_workers_pool_that_was_full_counts(self) -> None:
        workers = (waiting(9.5), waiting(0.0), WorkerUse())
        assert list(found(replace(self.OVERLOADED, workers=workers))) == ["connection_pool"]

    def test_a_pool_that_filled_up_by_latency_alone_is(self) -> None:
        """Each answer takes five seconds; it was full after four, and all who came then had to wait."""
        dues = [number / 100 for number in range(2000)]
        done = ORDERS["first come first served"](dues, [5.0] * 2000, 400)
        facts = observed_at(100, 20, dues, done, workers=(waiting(3.9),))
        assert list(found(facts)) == ["connection_pool"]

    def test_an_endpoint_that_kept_up_until_its_latency_jumped_was_held_up_by_the_pool(self) -> None:
        dues = [number / 100 for number in range(2000)]
        services = [0.02 if due < 10 else 0.2 for due in dues]
        facts = observed_at(100, 20, dues, ORDERS["first come first served"](dues, services, 10))
        assert list(found(replace(facts, workers=(waiting(10.0),)))) == ["connection_pool"]


def test_a_client_that_was_late_after_the_endpoint_had_fallen_behind_did_not_cause_it() -> None:
    facts = TestAFullPool.OVERLOADED
    for late_from, codes in ((15, {SERVER_LIMITED, "schedule_lag"}), (0, {"schedule_lag"})):
        records = [
            r._replace(sent=r.due + NS, done=max(r.done, r.due + NS)) if r.due >= late_from * NS else r
            for r in facts.records
        ]
        again = replace(facts, records=Records.of(records))
        assert set(found(again)) == codes


def test_one_arrival_that_was_late_at_first_takes_no_blame_from_the_endpoint() -> None:
    facts = TestAFullPool.OVERLOADED
    late = [
        r._replace(sent=r.due + NS, done=max(r.done, r.due + NS)) if r.index == 0 or r.due >= 15 * NS else r
        for r in facts.records
    ]
    again = replace(facts, records=Records.of(late))
    assert set(found(again)) == {SERVER_LIMITED, "schedule_lag"}


class TestStandstill:
    """Answers that all wait for the same instant."""

    DUES = np.arange(1000) / 100

    @pytest.mark.parametrize(("begin", "length"), [(1, 3), (4, 2), (5, 1.2), (8, 1.9)])
    def test_it_is_named_with_when_and_how_long(self, begin: float, length: float) -> None:
        facts = held_up(begin, length)
        finding = found(facts)[ENDPOINT_STALLED]
        assert f"from second {begin:.1f} on" in finding.measured
        assert limited_by([finding]) == "server"

    @pytest.mark.parametrize("length", [0.1, 0.5, 0.9])
    def test_a_pause_of_less_than_a_tenth_of_the_wave_is_none(self, length: float) -> None:
        assert not found(held_up(5, length))

    @pytest.mark.parametrize("usual", [0.5, 1, 2, 4])
    def test_nor_is_the_time_until_the_first_answer(self, usual: float) -> None:
        assert not found(observed_at(100, 10, list(self.DUES), list(self.DUES + usual)))

    def test_nor_are_pauses_that_come_again(self) -> None:
        done = [
            max(due + 0.02, next((end for end in (3.5, 8.5) if end - 1.5 <= due + 0.02 < end), 0)) for due in self.DUES
        ]
        assert not found(observed_at(100, 10, list(self.DUES), done))

    def test_nor_one_that_this_client_was_held_up_in(self) -> None:
        delay = LoopDelay(count=600, p50_s=0, p95_s=0, p99_s=0, max_s=1.9)
        facts = replace(held_up(4, 2), workers=(WorkerUse(loop_delay=delay),))
        assert not found(facts)


@pytest.mark.parametrize("onset", [5.0, 5.5, 6.0])
def test_an_endpoint_that_falls_behind_in_the_second_half_is_named(onset: float) -> None:
    dues = [number / 100 for number in range(1000)]
    services = [0.02 if due < onset else 0.02 * (1 + 1.5 * (due - onset)) for due in dues]
    facts = observed_at(100, 10, dues, ORDERS["first come first served"](dues, services, 4))
    assert "in the second half" in found(facts)[SERVER_LIMITED].measured
