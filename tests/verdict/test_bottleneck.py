"""Who is blamed for a wave: every finding on either side of its limit, the endpoint only where the client is clean."""

from __future__ import annotations

import heapq
import math
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker.facts.client_use import (
    Answers,
    Connections,
    HostUse,
    LoopBlock,
    LoopDelay,
    ProcessUse,
    WorkerUse,
)
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.plan import DEFAULT_MAX_IN_FLIGHT
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.client.answers import QUICK_S
from inference_benchmarker.verdict.client.bottleneck import CAUSES, CLIENT_CODES, bottleneck_findings
from inference_benchmarker.verdict.client.endpoint import SERVER_LIMITED
from inference_benchmarker.verdict.client.evidence import most_in_flight
from inference_benchmarker.verdict.verdict import judge
from inference_benchmarker.words.units import NS
from tests.mentions import mentions
from tests.waves import HOST, MS, closed_plan, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.verdict.finding import Finding

PLAN = open_plan("100", "10")
ROOMY = (DEFAULT_MAX_IN_FLIGHT,)
BUILD = "pre_computed"
QUICK = round(QUICK_S * NS)


def wave(
    change: Callable[[RequestRecord], RequestRecord | None] = lambda record: record,
    *workers: WorkerUse,
    plan: WavePlan = PLAN,
    **more: Any,
) -> WaveFacts:
    """A faultless wave, changed in one thing, of workers that used this much."""
    changed = [change(record) for record in on_time(plan)]
    kept = [record for record in changed if record is not None]
    return observe(plan, kept, workers=workers, **{"caps": ROOMY, "host": HOST, **more})


def closed(*workers: WorkerUse, users: int = 2, latency_ns: int = 20 * MS, sent: int = 100) -> WaveFacts:
    """A faultless closed loop of some users on one worker."""
    records = [
        RequestRecord(n, 0, n // users * latency_ns, n // users * latency_ns, (n // users + 1) * latency_ns)
        for n in range(sent)
    ]
    return observe(closed_plan(users, "2"), records, workers=workers, caps=(users,), host=HOST)


def found(facts: WaveFacts) -> dict[str, Finding]:
    """The findings by their code, each of them once."""
    findings = bottleneck_findings(facts, summarise(facts))
    by_code: dict[str, Finding] = {finding.code: finding for finding in findings}
    assert len(by_code) == len(findings)
    return by_code


def only(facts: WaveFacts, code: str) -> Finding:
    """The one finding there is."""
    findings = found(facts)
    assert list(findings) == [code]
    return findings[code]


def late(nanoseconds: int, latency: int = 20 * MS) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(sent=r.due + nanoseconds, done=r.due + nanoseconds + latency)


def built_in(nanoseconds: int, latency: int = 20 * MS) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(sent=r.due + nanoseconds, done=r.due + nanoseconds + latency, build_ns=nanoseconds)


def failing(count: int, error: str) -> Callable[[RequestRecord], RequestRecord]:
    return lambda r: r._replace(outcome="failed", error=error) if r.index < count else r


def delayed(p99_s: float, count: int = 1000, p95_s: float = 0.0, **more: Any) -> WorkerUse:
    delay = LoopDelay(count=count, p50_s=0.0, p95_s=p95_s, p99_s=p99_s, max_s=2 * p99_s)
    return WorkerUse(loop_delay=delay, **more)


def block(part: Any = "invoke", where: str = "spin (mine.py:3)") -> LoopBlock:
    return LoopBlock(part, where, 0.9, 0.0123)


def connected(**counts: Any) -> WorkerUse:
    return WorkerUse(connections=Connections(**counts))


def test_a_faultless_wave_has_no_finding() -> None:
    assert found(wave()) == {}
    assert found(wave(lambda record: record, WorkerUse(cpu_share=0.5, starved_share=0.05))) == {}
    assert found(closed(WorkerUse())) == {}


def test_what_the_client_is_blamed_for_is_a_closed_list() -> None:
    assert {
        "schedule_lag",
        "worker_cpu",
        "worker_memory",
        "loop_blocked",
        "payload_building",
        "payload_failed",
        "connection_pool",
        "lock_wait",
        "descriptors",
        "ports",
        "local_network",
        "heartbeats_missed",
    } == CLIENT_CODES
    assert CAUSES < CLIENT_CODES
    assert SERVER_LIMITED not in CLIENT_CODES
    assert not {"hidden_retries", "connections_opened"} & CLIENT_CODES


class TestScheduleLag:
    def test_at_the_limit_nothing_is_said(self) -> None:
        assert found(wave(late(5 * MS))) == {}
        assert found(wave(late(30 * MS, 300 * MS))) == {}

    @pytest.mark.parametrize(
        ("lag_ns", "latency_ns", "limit"), [(5_000_001, 20 * MS, "5 ms"), (31 * MS, 300 * MS, "30 ms")]
    )
    def test_above_it_the_wave_is_invalid(self, lag_ns: int, latency_ns: int, limit: str) -> None:
        lag = only(wave(late(lag_ns, latency_ns)), "schedule_lag")
        assert (lag.severity, lag.limit) == ("invalid", limit)
        assert lag.measured.startswith("p99 ")
        assert lag.measured != f"p99 {limit}"

    def test_the_time_a_payload_took_is_no_lag(self) -> None:
        assert "schedule_lag" not in found(wave(built_in(100 * MS)))

    def test_without_a_cause_the_advice_is_more_workers(self) -> None:
        advice = only(wave(late(NS), WorkerUse()), "schedule_lag").advice
        assert advice.startswith("The client cannot keep this rate: use more --workers")

    def test_a_payload_that_takes_its_time_is_named_before_any_other_cause(self) -> None:
        def change(r: RequestRecord) -> RequestRecord:
            return r._replace(sent=r.due + NS, done=r.due + NS + 20 * MS, build_ns=MS + 1000)

        starved = WorkerUse(starved_share=0.5, block=block())
        lag = found(wave(change, starved))["schedule_lag"]
        assert lag.advice.startswith("Building a payload takes ")
        assert BUILD in lag.advice
        quick = wave(lambda r: change(r)._replace(build_ns=MS - 1000), starved)
        assert found(quick)["schedule_lag"].advice.startswith("A worker waited 50% of the time for a free core")

    def test_a_worker_that_had_no_core_is_named_before_what_it_ran(self) -> None:
        workers = (WorkerUse(block=block(), cpu_share=0.4), WorkerUse(starved_share=0.2, block=block(), cpu_share=0.1))
        advice = only(wave(late(NS), *workers), "schedule_lag").advice
        assert advice.startswith("A worker waited 20% of the time for a free core")
        assert "--sample-client-hw" in advice

    @pytest.mark.parametrize(("starved", "cpu"), [(0.1, 0.0), (0.3, 0.3), (0.3, 0.8), (None, None), (0.05, 0.01)])
    def test_a_worker_that_ran_as_much_as_it_waited_was_not_starved(
        self, starved: float | None, cpu: float | None
    ) -> None:
        worker = WorkerUse(starved_share=starved, cpu_share=cpu, block=block())
        advice = only(wave(late(NS), worker), "schedule_lag").advice
        assert advice.startswith(
            "spin (mine.py:3) prevents the worker from sending on time: make it faster, or use more"
        )

    def test_only_a_block_in_invoke_is_named_as_one(self) -> None:
        workers = (WorkerUse(block=block("tool", "run")), WorkerUse(block=block("payload", "build")))
        advice = only(wave(late(NS), *workers), "schedule_lag").advice
        assert advice.startswith("The client cannot keep this rate")


BUSY_WITH_OTHERS = replace(HOST, cores=2, cpu_share_mean=0.6, cpu_share_max=0.99)


class TestOtherPrograms:
    """A host that is busy with something else: a bigger client would do, more workers would not."""

    IDLE = WorkerUse(cpu_share=0.033, starved_share=0.046)

    @staticmethod
    def advice(host: HostUse | None, *workers: WorkerUse) -> str:
        plan = replace(PLAN, workers=len(workers))
        facts = wave(late(NS), *workers, plan=plan, host=host, caps=ROOMY * len(workers))
        return only(facts, "schedule_lag").advice

    def test_they_are_named_with_both_sides_cpu(self) -> None:
        advice = self.advice(BUSY_WITH_OTHERS, self.IDLE, self.IDLE)
        assert mentions(advice, "CPU", "2 cores", "60%", "99%", "3.3%", "--sample-client-hw")

    @pytest.mark.parametrize(
        ("mean", "most", "cpu_share", "named"),
        [
            (0.51, 0.96, 0.50, True),
            (0.51, 0.95, 0.1, False),
            (0.5, 1.0, 0.1, False),
            (0.6, 1.0, 0.59, True),
            (0.6, 1.0, 0.6, False),
            (0.6, 1.0, None, False),
        ],
    )
    def test_only_where_the_host_was_full_and_less_than_half_of_it_the_workers(
        self, mean: float, most: float, cpu_share: float | None, named: bool
    ) -> None:
        host = replace(HOST, cores=1, cpu_share_mean=mean, cpu_share_max=most)
        advice = self.advice(host, WorkerUse(cpu_share=cpu_share and cpu_share / 2))
        busy = cpu_share is None or cpu_share / 2 > 0.5
        pace = "The client cannot keep this rate" if busy else "No measurement shows the cause"
        assert advice.startswith("Other programs on this host" if named else pace)

    def test_without_a_sample_of_the_host_nobody_else_is_named(self) -> None:
        assert self.advice(None, self.IDLE).startswith("No measurement shows the cause")

    def test_code_that_was_seen_to_block_is_named_before_them(self) -> None:
        assert self.advice(BUSY_WITH_OTHERS, replace(self.IDLE, block=block())).startswith("spin (mine.py:3) prevents")

    @pytest.mark.parametrize("seen", [block("tool", "run (x.py:1)"), None])
    def test_the_tool_is_not_blamed_for_a_loop_that_had_no_cpu(self, seen: LoopBlock | None) -> None:
        worker = delayed(0.02, block=seen, cpu_share=0.044)
        blocked = only(wave(late(0), worker, host=BUSY_WITH_OTHERS), "loop_blocked")
        assert mentions(blocked.measured, "p99", "20 ms")
        assert mentions(blocked.advice, "CPU", "2 cores")

    def test_invoke_is_blamed_all_the_same(self) -> None:
        worker = delayed(0.02, block=block(), cpu_share=0.044)
        blocked = only(wave(late(0), worker, host=BUSY_WITH_OTHERS), "loop_blocked")
        assert "blocked by spin" in blocked.measured
        assert "make it shorter" in blocked.advice


class TestMoreWorkers:
    @pytest.mark.parametrize(
        ("workers", "cores", "text"),
        [
            (1, None, "use more --workers; `benchmark client worker-saturation` measures what one can send"),
            (7, 8, "use more --workers (this host has 8 cores); `benchmark client worker-saturation` measures"),
            (
                8,
                8,
                "The client cannot keep this rate: use a larger client, several of them, or a lower --client-rps "
                "(each of the 8 cores has a worker already; `benchmark client rps-saturation` measures what this "
                "client can send).",
            ),
            (9, 8, "(each of the 8 cores has a worker"),
            (1, 1, "(the only core has a worker"),
        ],
    )
    def test_it_knows_the_cores(self, workers: int, cores: int | None, text: str) -> None:
        host = None if cores is None else replace(HOST, cores=cores)
        plan = replace(PLAN, workers=workers)
        assert text in only(wave(late(NS), plan=plan, host=host, caps=ROOMY * workers), "schedule_lag").advice

    def test_in_the_closed_loop_it_is_the_concurrency_that_can_be_lower(self) -> None:
        facts = replace(closed(WorkerUse(cpu_share=0.95)), host=replace(HOST, cores=1))
        assert "or a lower --concurrency (" in only(facts, "worker_cpu").advice


class TestWorkerCpu:
    @pytest.mark.parametrize("share", [None, 0.0, 0.5, 0.9])
    def test_up_to_nine_tenths_of_a_core_is_fine(self, share: float | None) -> None:
        assert found(wave(late(0), WorkerUse(cpu_share=share))) == {}

    def test_above_it_the_busiest_is_named(self) -> None:
        workers = (WorkerUse(cpu_share=0.93), WorkerUse(), WorkerUse(cpu_share=0.97))
        busy = only(wave(late(0), *workers), "worker_cpu")
        assert (busy.severity, busy.limit) == ("warning", "90%")
        assert busy.measured == "worker 2 used 97% of a core while it sent"
        assert busy.advice.startswith("Make invoke faster, or use more --workers")

    def test_a_hair_above_it_does_not_look_like_the_limit(self) -> None:
        busy = only(wave(late(0), WorkerUse(cpu_share=0.9000001)), "worker_cpu")
        assert "90.00001%" in busy.measured

    def test_it_counts_in_the_closed_loop_too(self) -> None:
        assert only(closed(WorkerUse(cpu_share=0.95)), "worker_cpu").severity == "warning"


class TestLoopBlocked:
    def test_at_the_limit_nothing_is_said(self) -> None:
        assert found(wave(late(0), delayed(0.005))) == {}
        assert found(wave(late(0, 300 * MS), delayed(0.03))) == {}

    @pytest.mark.parametrize(
        ("latency_ns", "delay_s", "limit"), [(20 * MS, 0.00501, "5 ms"), (300 * MS, 0.031, "30 ms")]
    )
    def test_above_it_the_open_loop_warns(self, latency_ns: int, delay_s: float, limit: str) -> None:
        blocked = only(wave(late(0, latency_ns), delayed(delay_s)), "loop_blocked")
        assert (blocked.severity, blocked.limit) == ("warning", limit)

    def test_in_the_closed_loop_the_wave_is_invalid(self) -> None:
        assert only(closed(delayed(0.006)), "loop_blocked").severity == "invalid"
        assert found(closed(delayed(0.005))) == {}

    def test_where_a_worker_has_one_request_at_a_time_no_answer_waits_for_it(self) -> None:
        assert found(closed(delayed(1.0), users=1)) == {}
        apart = open_plan("10", "10")
        assert found(wave(late(0), delayed(1.0), plan=apart)) == {}
        facts = wave(late(0, 100 * MS + 1), delayed(1.0), plan=apart)
        assert "loop_blocked" in found(facts), "each is answered as the next was sent"

    def test_one_request_at_a_time_that_is_late_was_held_up(self) -> None:
        facts = wave(late(6 * MS), delayed(1.0), plan=open_plan("10", "10"))
        assert set(found(facts)) == {"schedule_lag", "loop_blocked"}

    def test_one_of_two_workers_with_more_at_a_time_is_enough(self) -> None:
        def change(r: RequestRecord) -> RequestRecord:
            return r._replace(done=r.due + (300 if r.worker == 1 else 20) * MS)

        plan = replace(open_plan("10", "10"), workers=2)
        facts = wave(change, delayed(1.0), WorkerUse(), plan=plan, caps=(5000, 5000))
        assert set(found(facts)) == {"loop_blocked"}

    @pytest.mark.parametrize(
        ("count", "measured"),
        [(0, None), (19, None), (20, "p95 8 ms"), (299, "p95 8 ms"), (300, "p99 9000 ms"), (10_000, "p99 9000 ms")],
    )
    def test_the_percentile_is_one_that_so_many_beats_have(self, count: int, measured: str | None) -> None:
        findings = found(wave(late(0), delayed(9.0, count, 0.008)))
        assert [f.measured.removeprefix("event-loop delay ").replace("9 s", "9000 ms") for f in findings.values()] == (
            [] if measured is None else [measured]
        )

    def test_few_beats_whose_p95_is_in_time_are_in_time(self) -> None:
        assert found(wave(late(0), delayed(9.0, 299, 0.005))) == {}

    def test_a_worker_with_too_few_beats_hides_no_other(self) -> None:
        workers = (delayed(9.0, count=19, p95_s=9.0), WorkerUse(), delayed(0.01, block=block()), delayed(0.006))
        assert only(wave(late(0), *workers), "loop_blocked").measured.startswith("event-loop delay p99 10 ms")

    @pytest.mark.parametrize(
        ("found_there", "named", "advice"),
        [
            (
                block(),
                ", blocked by spin (mine.py:3) for up to 12.3 ms at a time",
                "make it shorter, or use more --workers",
            ),
            (
                block("payload", "b (m.py:1)"),
                ", blocked by payload building, b (m.py:1) for up to 12.3 ms at a time",
                BUILD,
            ),
            (
                block("tool", "run (x.py:1)"),
                ", blocked by the tool itself for up to 12.3 ms at a time",
                "Use more --workers",
            ),
            (None, "event-loop delay p99", "None of its code was running then"),
        ],
    )
    def test_what_held_it_up_is_named_with_one_thing_to_do(
        self, found_there: LoopBlock | None, named: str, advice: str
    ) -> None:
        blocked = only(wave(late(0), delayed(0.02, block=found_there)), "loop_blocked")
        assert named in blocked.measured
        assert advice in blocked.advice
        assert ("blocked by" in blocked.measured) == (found_there is not None)

    def test_invoke_is_not_blamed_for_a_worker_that_had_no_core(self) -> None:
        starved = delayed(0.02, block=block(), starved_share=0.3, cpu_share=0.2)
        blocked = only(wave(late(0), starved), "loop_blocked")
        assert "30% of the time for a free core" in blocked.measured + blocked.advice
        assert "spin" not in blocked.advice
        assert blocked.advice.startswith("A worker waited 30%")

    @pytest.mark.parametrize(("starved", "expected"), [(None, False), (0.1, False), (0.11, True)])
    def test_waiting_for_a_core_is_reported_even_where_it_was_not_the_cause(
        self, starved: float | None, expected: bool
    ) -> None:
        worker = delayed(0.02, block=block(), starved_share=starved, cpu_share=0.5)
        blocked = only(wave(late(0), worker), "loop_blocked")
        assert blocked.measured.endswith("; the worker waited 11% of the time for a free core") == expected
        assert "blocked by spin (mine.py:3)" in blocked.measured
        assert "make it shorter" in blocked.advice

    def test_a_starved_worker_of_which_nothing_was_seen_has_the_hosts_advice(self) -> None:
        blocked = only(wave(late(0), delayed(0.02, starved_share=0.3, cpu_share=0.2)), "loop_blocked")
        assert blocked.advice.startswith("A worker waited 30% of the time for a free core")
        unseen = only(wave(late(0), delayed(0.02)), "loop_blocked")
        assert "garbage collection, a thread that holds Python's global lock, or other programs" in unseen.advice
        assert "--sample-client-hw" in unseen.advice

    def test_a_cause_that_the_lag_names_is_reported_once(self) -> None:
        findings = found(wave(late(20 * MS), delayed(0.02, starved_share=0.3, cpu_share=0.2)))
        assert "30% of the time for a free core" in findings["schedule_lag"].advice
        assert "30%" not in findings["loop_blocked"].measured + findings["loop_blocked"].advice
        assert "schedule_lag" in findings["loop_blocked"].advice

    @pytest.mark.parametrize("use", [{}, {"starved_share": 0.3, "cpu_share": 0.2}])
    def test_a_flag_that_was_given_is_not_advised(self, use: dict[str, Any]) -> None:
        sampled = (ProcessUse("worker_0", 10.0, 20.0, 10**8, (10.0,)),)
        facts = wave(late(0), delayed(0.02, **use), processes=sampled)
        assert "--sample-client-hw" not in only(facts, "loop_blocked").advice


class TestHeartbeatsMissed:
    @pytest.mark.parametrize(("silence_s", "expected"), [(0.0, False), (3.0, False), (3.001, True), (60.0, True)])
    def test_a_silence_of_three_heartbeats_is_reported(self, silence_s: float, expected: bool) -> None:
        findings = found(wave(late(0), WorkerUse(silence_s=0.5), WorkerUse(silence_s=silence_s)))
        assert set(findings) == ({"heartbeats_missed"} if expected else set())
        if expected:
            missed = findings["heartbeats_missed"]
            assert missed.measured.startswith("worker 1 was silent for ")
            assert (missed.severity, missed.limit) == ("warning", "3 s")

    def test_it_stands_beside_what_held_the_worker_up(self) -> None:
        facts = closed(delayed(5.0, block=block(), silence_s=5.0))
        assert set(found(facts)) == {"loop_blocked", "heartbeats_missed"}
        verdict = judge(facts, summarise(facts))
        assert verdict.limited_by == "client"


class TestPayloadBuilding:
    def test_below_a_tenth_of_the_latency_it_is_fine(self) -> None:
        assert found(wave(built_in(2 * MS - 1000))) == {}
        assert found(wave(built_in(MS - 1000, 2 * MS))) == {}  # never a limit below 1 ms

    @pytest.mark.parametrize(
        ("build_ns", "latency_ns", "limit"), [(2 * MS + 1000, 20 * MS, "2 ms"), (1_001_000, MS, "1 ms")]
    )
    def test_above_it_the_share_is_in_the_response_time(self, build_ns: int, latency_ns: int, limit: str) -> None:
        building = only(wave(built_in(build_ns, latency_ns)), "payload_building")
        assert (building.severity, building.limit) == ("warning", limit)
        assert building.measured.endswith("on average")
        assert BUILD in building.advice

    def test_of_sessions_it_may_be_what_they_read_themselves(self) -> None:
        built = built_in(3 * MS)
        facts = wave(
            lambda r: built(r)._replace(session=r.index, turn=1, ended="completed"), environment={"sessions": True}
        )
        building = only(facts, "payload_building")
        assert "read it in invoke, or yield its pieces" in building.advice
        assert BUILD not in building.advice
        assert "not the endpoint's" not in building.advice

    def test_where_it_was_caught_a_millisecond_is_enough(self) -> None:
        workers = (WorkerUse(block=block()), WorkerUse(block=block("payload", "build (mine.py:9)")))
        assert found(wave(built_in(MS - 1000), *workers)) == {}
        caught = only(wave(built_in(MS + 1000), *workers), "payload_building")
        assert (caught.measured, caught.limit) == ("1.001 ms on average in build (mine.py:9)", "1 ms")

    def test_what_invoke_held_up_is_no_payload(self) -> None:
        assert found(wave(built_in(MS + 1000), WorkerUse(block=block()))) == {}


SEVERITIES = [(10, "warning"), (11, "invalid")]  # of 1,000 arrivals


class TestPayloadFailed:
    @pytest.mark.parametrize(("count", "severity"), SEVERITIES)
    def test_more_than_one_in_a_hundred_were_not_offered(self, count: int, severity: str) -> None:
        failed = only(wave(failing(count, "PayloadError KeyError")), "payload_failed")
        assert (failed.severity, failed.limit) == (severity, "0")
        assert failed.measured == f"{count} payloads could not be built (PayloadError KeyError)"

    def test_all_its_kinds_are_counted_and_the_most_frequent_named(self) -> None:
        def change(r: RequestRecord) -> RequestRecord:
            kinds = {0: "PayloadError KeyError", 1: "PayloadError", 2: "PayloadError", 3: "ValueError"}
            return r._replace(outcome="failed", error=kinds[r.index]) if r.index in kinds else r

        assert mentions(only(wave(change), "payload_failed").measured, "3 payloads", "PayloadError")

    @pytest.mark.parametrize("error", ["ValueError", "PayloadErrors", "MyError PayloadError"])
    def test_another_error_is_none(self, error: str) -> None:
        assert found(wave(failing(3, error))) == {}


class TestConnectionPool:
    @pytest.mark.parametrize("discarded", [0, 1, 10])
    def test_a_discard_in_a_hundred_requests_is_fine(self, discarded: int) -> None:
        assert found(wave(late(0), connected(opened=100, discarded=discarded))) == {}

    def test_more_of_them_are_a_full_pool(self) -> None:
        workers = (connected(opened=7, discarded=5), connected(opened=8, discarded=6))
        pool = only(wave(late(0), *workers), "connection_pool")
        assert mentions(pool.measured, "11 connections", "15 opened", "1,000 requests")
        assert (pool.severity, pool.limit) == ("warning", "1% of requests")
        assert "Latency includes a new connection for each further request" in pool.advice

    @pytest.mark.parametrize(
        ("looked_at", "waiting", "named"),
        [(19, 19, False), (20, 1, False), (20, 2, True), (100, 5, False), (100, 6, True), (0, 0, False)],
    )
    def test_more_than_a_twentieth_that_wait_are_too_many(self, looked_at: int, waiting: int, named: bool) -> None:
        findings = found(wave(late(0), connected(looked_at=looked_at, waiting=waiting)))
        assert ("connection_pool" in findings) == named
        if named:
            pool = findings["connection_pool"]
            assert (
                pool.measured
                == f"{100 * waiting // looked_at}% of the requests in flight waited for their pool's connections"
            )
            assert pool.limit == "5%"
            assert pool.advice.startswith("Latency includes that wait")

    def test_a_wait_goes_before_a_full_pool(self) -> None:
        pool = only(wave(late(0), connected(discarded=500, looked_at=100, waiting=90)), "connection_pool")
        assert pool.measured == "90% of the requests in flight waited for their pool's connections"
        few = only(wave(late(0), connected(discarded=500, looked_at=19, waiting=19)), "connection_pool")
        assert few.measured.startswith("500 connections discarded")

    def test_waits_are_counted_over_all_workers(self) -> None:
        workers = (connected(looked_at=10, waiting=2), connected(looked_at=90, waiting=4))
        assert only(wave(late(0), *workers), "connection_pool").measured.startswith("6% of the requests in flight")

    def test_the_advice_is_the_size_that_the_busiest_worker_needs(self) -> None:
        def change(r: RequestRecord) -> RequestRecord:
            return r._replace(done=r.done + (NS if r.worker == 1 else 0))

        plan = replace(PLAN, workers=2)  # of 50/s each: a second of worker 1 holds 50 requests, and 20 ms the last
        pool = only(wave(change, connected(discarded=500), plan=plan), "connection_pool")
        assert "max_pool_connections=51)" in pool.advice

    @settings(max_examples=60)
    @given(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 30)), max_size=25),
    )
    def test_most_in_flight_is_what_counting_finds(self, spans: list[tuple[int, int, int]]) -> None:
        records = [
            RequestRecord(index, worker, 0, sent, sent + length) for index, (worker, sent, length) in enumerate(spans)
        ]
        expected = max(
            (
                sum(r.worker == worker and r.sent <= instant < r.done for r in records)
                for worker in range(3)
                for instant in range(61)
            ),
            default=0,
        )
        facts = observe(closed_plan(3, workers=3), records)
        assert most_in_flight(facts) == expected


class TestLockWait:
    @pytest.mark.parametrize(("looked_at", "locked", "named"), [(100, 5, False), (100, 6, True), (19, 19, False)])
    def test_more_than_a_twentieth_that_wait_are_too_many(self, looked_at: int, locked: int, named: bool) -> None:
        facts = wave(late(0), connected(looked_at=looked_at, locked=locked))
        assert set(found(facts)) == ({"lock_wait"} if named else set())
        assert judge(facts, summarise(facts)).limited_by == ("client" if named else None)


class TestOwnQueue:
    """The requests waited within invoke for what says nothing of the endpoint: an event, a queue, a process."""

    @pytest.mark.parametrize(
        ("looked_at", "aside", "side"), [(100, 20, "server"), (100, 21, "either"), (19, 19, "server")]
    )
    def test_neither_side_is_named_alone_where_requests_waited_in_code_of_the_users(
        self, looked_at: int, aside: int, side: str
    ) -> None:
        facts = wave(late(0), connected(looked_at=looked_at, aside=aside))
        assert found(facts) == {}, "it is no fault where the endpoint kept up"
        behind = overloaded(workers=(connected(looked_at=looked_at, aside=aside),))
        assert judge(behind, summarise(behind)).limited_by == side
        assert set(found(behind)) == {"client_or_server" if side == "either" else SERVER_LIMITED}

    def test_the_report_says_the_client_or_the_server(self) -> None:
        facts = overloaded(workers=(connected(looked_at=100, aside=90),))
        summary = summarise(facts)
        text = to_text(facts, summary, judge(facts, summary))
        assert "client- or server-limited: " in text.splitlines()[0]
        assert "VALID (client- or server-limited)" in text
        assert "90% of the requests in flight waited for an event, a queue, a sleep or a process within invoke" in text
        assert "scale the endpoint" not in text

    def test_a_standstill_is_not_said_to_be_the_endpoints(self) -> None:
        def stopped(r: RequestRecord) -> RequestRecord:
            return r._replace(done=max(r.done, 6 * NS)) if 3 * NS < r.due < 6 * NS else r

        assert set(found(wave(stopped))) == {"endpoint_stalled"}
        assert set(found(wave(stopped, connected(looked_at=100, aside=90)))) == {"client_or_server"}


class TestConnectionsOpened:
    @pytest.mark.parametrize(("opened", "named"), [(2, False), (502, False), (503, True)])
    def test_half_of_the_requests_may_open_one_beyond_those_in_flight(self, opened: int, named: bool) -> None:
        """20 ms at 100/s: one in flight at a time, and for an instant two."""
        assert most_in_flight(wave(late(0))) == 2
        assert ("connections_opened" in found(wave(late(0), connected(opened=opened)))) == named

    def test_nobody_is_blamed_and_a_request_that_failed_may_have_taken_its_connection_along(self) -> None:
        facts = wave(late(0), connected(opened=1000))
        assert judge(facts, summarise(facts)).limited_by is None
        assert "connections_opened" not in found(wave(failing(600, "HttpError 500"), connected(opened=1000)))

    def test_a_full_pool_has_a_finding_of_its_own(self) -> None:
        assert set(found(wave(late(0), connected(opened=1000, discarded=1000)))) == {"connection_pool"}


class TestAnswers:
    def test_requests_that_count_though_their_response_failed_are_named_by_status(self) -> None:
        workers = (
            WorkerUse(answers=Answers(hidden={"503": 7})),
            WorkerUse(answers=Answers(hidden={"503": 1, "404": 2})),
        )
        hidden = only(wave(late(0), *workers), "hidden_statuses")
        assert hidden.measured == (
            "10 of 1,000 ok requests received a response with a status from 400 on (503: 8, 404: 2)"
        )

    def test_streams_without_text_are_named(self) -> None:
        textless = only(wave(late(0), WorkerUse(answers=Answers(textless=3))), "textless_streams")
        assert textless.measured.startswith("3 streams")

    @pytest.mark.parametrize(
        ("seen", "latency", "is_found"),
        [
            ((False, False), QUICK - 1, True),
            ((False, False), QUICK, False),
            ((False, True), QUICK - 1, False),
            ((False, None), QUICK - 1, False),
            ((None, None), QUICK - 1, False),
        ],
    )
    def test_no_connection_is_none_of_any_worker(
        self, seen: tuple[bool | None, ...], latency: int, is_found: bool
    ) -> None:
        workers = (connected(seen=each) for each in seen)
        assert ("no_connection" in found(wave(late(0, latency), *workers))) is is_found


class TestHiddenRetries:
    def test_each_is_reported_and_nobody_is_blamed(self) -> None:
        retries = only(wave(late(0), connected(retries=1), connected(retries=1233)), "hidden_retries")
        assert mentions(retries.measured, "1,234 retries", "1,000 requests")
        assert (retries.severity, retries.limit) == ("warning", "0")
        facts = wave(late(0), connected(retries=3))
        assert judge(facts, summarise(facts)).limited_by is None


def without(count: int) -> Callable[[RequestRecord], RequestRecord | None]:
    return lambda r: None if r.index < count else r


class TestDescriptors:
    @pytest.mark.parametrize(("open_at_most", "near"), [(900, False), (901, True), (1000, True)])
    def test_near_the_limit_it_warns(self, open_at_most: int, near: bool) -> None:
        workers = (
            WorkerUse(descriptors=5, descriptor_limit=1000),
            WorkerUse(descriptors=open_at_most, descriptor_limit=1000),
        )
        findings = found(wave(late(0), *workers))
        assert ("descriptors" in findings) == near
        if near:
            few = findings["descriptors"]
            assert (few.severity, few.limit) == ("warning", "1,000 open files")
            assert few.measured == f"a worker had {open_at_most:,} file descriptors open"

    @pytest.mark.parametrize(("count", "severity"), SEVERITIES)
    @pytest.mark.parametrize("name", ["EMFILE", "ENFILE"])
    def test_requests_that_failed_for_want_of_them_were_not_offered(self, count: int, severity: str, name: str) -> None:
        worker = replace(connected(refused={name: count}), descriptor_limit=128)
        few = only(wave(failing(count, "ConnectionError"), worker), "descriptors")
        assert few.measured == f"{count} requests failed because no file descriptor was free"
        assert (few.severity, few.limit) == (severity, "128 open files")

    def test_the_workers_count_them_and_no_text_does(self) -> None:
        texts = {"OSError EMFILE": ["[Errno 24] Too many open files"]}
        assert found(wave(failing(5, "OSError EMFILE"), WorkerUse(descriptor_limit=128), error_texts=texts)) == {}

    def test_a_cap_that_they_set_is_named_where_arrivals_were_dropped(self) -> None:
        worker = WorkerUse(descriptor_limit=128)
        few = only(wave(without(2), worker, dropped=[2], caps=(90,)), "descriptors")
        assert few.measured == "file descriptors allowed 90 requests in flight, so arrivals were dropped"
        assert few.severity == "warning"
        assert found(wave(late(0), worker, caps=(90,))) == {}

    def test_a_cap_of_the_user_or_the_full_one_says_nothing_about_them(self) -> None:
        mine = replace(PLAN, max_in_flight=90)
        assert found(wave(without(2), plan=mine, dropped=[2], caps=(90,))) == {}
        plan = replace(PLAN, workers=3)
        assert found(wave(without(2), plan=plan, dropped=[1, 1, 0], caps=(3334, 3333, 3333))) == {}

    def test_a_failure_goes_before_a_cap_and_a_cap_before_nearness(self) -> None:
        near = WorkerUse(descriptors=128, descriptor_limit=128)
        capped = wave(without(2), near, dropped=[2], caps=(90,))
        assert "allowed 90" in only(capped, "descriptors").measured
        failed = [r._replace(outcome="failed", error="OSError EMFILE") for r in on_time(PLAN)[2:7]] + on_time(PLAN)[7:]
        refused = replace(near, connections=Connections(refused={"EMFILE": 5}))
        facts = observe(PLAN, failed, dropped=[2], caps=(90,), workers=(refused,))
        assert "5 requests failed" in only(facts, "descriptors").measured


class TestPorts:
    @pytest.mark.parametrize(("count", "severity"), SEVERITIES)
    @pytest.mark.parametrize("name", ["EADDRNOTAVAIL", "EADDRINUSE"])
    def test_requests_that_failed_for_want_of_one_were_not_offered(self, count: int, severity: str, name: str) -> None:
        ports = only(wave(failing(count, "OSError"), connected(refused={name: count})), "ports")
        assert ports.measured == f"{count} requests failed because no local port was free"
        assert (ports.severity, ports.limit) == (severity, "1,000 ports")

    def test_without_a_host_the_limit_is_none_of_them(self) -> None:
        facts = wave(failing(3, "OSError"), connected(refused={"EADDRINUSE": 3}), host=None)
        assert only(facts, "ports").limit == "0"

    @pytest.mark.parametrize(("time_wait", "near"), [(None, False), (900, False), (901, True)])
    def test_near_the_limit_it_warns(self, time_wait: int | None, near: bool) -> None:
        findings = found(wave(late(0), connected(opened=900), host=replace(HOST, time_wait=time_wait)))
        assert ("ports" in findings) == near
        if near:
            assert findings["ports"].measured == "901 closed connections hold a local port"
            assert findings["ports"].severity == "warning"

    @pytest.mark.parametrize(("opened", "near"), [((), False), ((500,), False), ((501,), True), ((250, 251), True)])
    def test_ports_that_others_hold_are_not_this_waves(self, opened: tuple[int, ...], near: bool) -> None:
        workers = [connected(opened=count) for count in opened]
        assert ("ports" in found(wave(late(0), *workers, host=replace(HOST, time_wait=1000)))) == near

    def test_an_unknown_number_of_ports_has_no_nearness(self) -> None:
        worker = connected(opened=10**6)
        assert "ports" not in found(wave(late(0), worker, host=replace(HOST, time_wait=10**6, ephemeral_ports=None)))


class TestLocalNetwork:
    NAMES = ("ENETUNREACH", "ENETDOWN", "ENOBUFS", "EPERM", "EACCES")

    @pytest.mark.parametrize(("count", "severity"), SEVERITIES)
    @pytest.mark.parametrize("name", NAMES)
    def test_what_this_host_refused_never_reached_the_endpoint(self, name: str, count: int, severity: str) -> None:
        refused = only(wave(failing(count, "OSError"), connected(refused={name: count})), "local_network")
        assert refused.measured == f"{count} requests were refused by this host itself ({name})"
        assert (refused.severity, refused.limit) == (severity, "0")

    def test_all_workers_and_kinds_are_counted(self) -> None:
        workers = (connected(refused={"ENETUNREACH": 2}), connected(refused={"EPERM": 1, "ENETUNREACH": 1}))
        refused = only(wave(failing(9, "OSError"), *workers), "local_network")
        assert mentions(refused.measured, "4 requests", "ENETUNREACH", "EPERM")

    def test_a_refusal_of_the_endpoint_is_none_of_this_host(self) -> None:
        assert found(wave(failing(30, "ConnectionRefusedError"), connected(refused={"ECONNREFUSED": 30}))) == {}


def queue(dues: Sequence[float], services: Iterable[float], servers: int) -> list[float]:
    """Latencies of a first-come first-served queue, in seconds."""
    free = [0.0] * servers
    latencies = []
    for due, service in zip(dues, services, strict=True):
        done = max(due, heapq.heappop(free)) + service
        heapq.heappush(free, done)
        latencies.append(done - due)
    return latencies


def answered(plan: WavePlan, latencies: Iterable[float], **more: Any) -> WaveFacts:
    """An open loop sent on time and answered after these latencies."""
    records = [
        r._replace(done=r.sent + round(latency * NS)) for r, latency in zip(on_time(plan), latencies, strict=True)
    ]
    return observe(plan, records, **{"caps": ROOMY, "host": HOST, **more})


def queued(rate: int, number: int, share: float, servers: int) -> WaveFacts:
    """A wave against servers that together answer ``share`` of the arrival rate, each request in the same time."""
    plan = open_plan(str(rate), None, number)
    return answered(plan, queue([n / rate for n in range(number)], [servers / (share * rate)] * number, servers))


def overloaded(**more: Any) -> WaveFacts:
    """400/s against an endpoint that answers 200/s; ``more`` is what else there was."""
    plan = more.pop("plan", open_plan("400", "2"))
    latencies = queue([n / 400 for n in range(800)], [0.02] * 800, 4)
    return answered(plan, latencies, **more)


def capped(cap: int, *, far: bool = False, **more: Any) -> WaveFacts:
    """As ``overloaded``, but arrivals are dropped while so many are in flight; ``far``: each takes a second."""
    plan = more.pop("plan", open_plan("400", "2"))
    free, records = [0] * 4, []
    over: list[int] = []
    for r in on_time(plan):
        while over and over[0] <= r.due:
            heapq.heappop(over)
        if len(over) >= cap:
            continue
        done = r.due + NS if far else max(r.due, heapq.heappop(free)) + 20 * MS
        if not far:
            heapq.heappush(free, done)
        heapq.heappush(over, done)
        records.append(r._replace(done=done))
    dropped = len(on_time(plan)) - len(records)
    return observe(plan, records, dropped=[dropped], caps=(cap,), host=HOST, **more)


class TestServerLimited:
    @settings(max_examples=60)
    @given(
        rate=st.integers(20, 2000),
        number=st.integers(200, 1500),
        share=st.floats(0.05, 0.93, exclude_max=True),
        servers=st.integers(1, 10),
    )
    def test_an_endpoint_that_falls_behind_is_named(self, rate: int, number: int, share: float, servers: int) -> None:
        limited = only(queued(rate, number, share, servers), SERVER_LIMITED)
        assert (limited.severity, limited.limit) == ("warning", "96% completed")
        assert re.match(
            rf"[\d.,]+/s of {rate:,}/s completed during the load \([\d.]+%\); latency grew from ", limited.measured
        )
        assert re.search(r" \([\d.]+%, limit 96% completed\); latency grew from ", limited.compared)
        assert limited.measured.endswith(", at a schedule lag of p99 0 ms")

    @settings(max_examples=60)
    @given(
        rate=st.integers(20, 2000),
        number=st.integers(80, 1500),
        share=st.floats(0.97, 3.0),
        servers=st.integers(1, 10),
    )
    def test_an_endpoint_that_nearly_keeps_up_is_not(self, rate: int, number: int, share: float, servers: int) -> None:
        assert found(queued(rate, number, share, servers)) == {}

    @pytest.mark.parametrize("servers", [1, 4, 16])
    @pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
    def test_service_times_that_vary_do_not_hide_it(self, share: float, servers: int) -> None:
        random = np.random.default_rng(7)
        plan = open_plan("200", None, 4000)
        services = random.exponential(servers / (share * 200), 4000)
        facts = answered(plan, queue([n / 200 for n in range(4000)], services.tolist(), servers))
        assert set(found(facts)) == {SERVER_LIMITED}

    @pytest.mark.parametrize("share", [1.2, 1.5, 3.0])
    def test_a_queue_that_comes_and_goes_is_no_growth(self, share: float) -> None:
        named = 0
        for seed in range(20):
            random = np.random.default_rng(seed)
            services = random.exponential(4 / (share * 100), 1000)
            latencies = queue([n / 100 for n in range(1000)], services.tolist(), 4)
            named += bool(found(answered(PLAN, latencies)))
        assert named == 0

    def test_stationary_latencies_are_no_growth_however_heavy_their_tail(self) -> None:
        """Waves from two median latencies to two hundred: chance alone must not name the endpoint."""
        named = 0
        for seed in range(60):
            random = np.random.default_rng(seed)
            number, rate = int(random.integers(200, 2001)), int(random.integers(20, 401))
            median = number / rate / math.exp(random.uniform(math.log(2), math.log(200)))
            spread = math.sqrt(math.log1p(random.uniform(1, 2) ** 2))
            latencies = median * np.exp(random.normal(0, spread, number))
            named += bool(found(answered(open_plan(str(rate), None, number), latencies.tolist())))
        assert named == 0

    def test_too_few_arrivals_in_a_quarter_say_nothing(self) -> None:
        assert found(queued(10, 76, 0.5, 1)) == {}
        assert set(found(queued(10, 80, 0.5, 1))) == {SERVER_LIMITED}

    @pytest.mark.parametrize("servers", [1, 4, 16])
    @pytest.mark.parametrize("arrivals", ["constant", "poisson"])
    def test_a_load_of_nine_tenths_is_held(self, arrivals: Any, servers: int) -> None:
        """Service times vary, and the queue with them: at the wave's end it is long as often as not."""
        named = []
        for seed in range(12):
            plan = replace(PLAN, load=OpenLoop(Decimal(100), arrivals=arrivals), seed=seed)
            dues = [r.due / NS for r in on_time(plan)]
            services = np.random.default_rng(seed).exponential(servers * 0.9 / 100, len(dues))
            if found(answered(plan, queue(dues, services.tolist(), servers))):
                named.append(seed)
        assert named == []

    @pytest.mark.parametrize(
        ("worker", "more", "code"),
        [
            (WorkerUse(cpu_share=0.95), {}, "worker_cpu"),
            (connected(discarded=700), {}, "connection_pool"),
            (WorkerUse(descriptors=127, descriptor_limit=128), {}, "descriptors"),
            (WorkerUse(block=block("payload")), {"build_ns": 2 * MS}, "payload_building"),
            (connected(opened=800), {"host": replace(HOST, time_wait=1000)}, "ports"),
            (connected(refused={"EMFILE": 3}), {}, "descriptors"),
        ],
    )
    def test_what_follows_from_an_endpoint_that_is_too_slow_does_not_hide_it(
        self, worker: WorkerUse, more: dict[str, Any], code: str
    ) -> None:
        build_ns = more.pop("build_ns", 0)
        facts = overloaded(workers=(worker,), **more)
        if build_ns:
            plan = facts.plan
            records = [r._replace(sent=r.sent + build_ns, build_ns=build_ns) for r in facts.records]
            facts = observe(plan, records, workers=(worker,), caps=ROOMY, host=HOST)
        findings = found(facts)
        assert set(findings) == {code, SERVER_LIMITED}
        summary = summarise(facts)
        verdict = judge(facts, summary)
        assert verdict.limited_by == "server"
        text = to_text(facts, summary, verdict)
        assert "BOTTLENECK" not in text
        for finding in findings.values():
            assert f"   ! {finding.code}: {finding.compared}" in text
        assert "VALID (server-limited" in text

    def test_a_cap_that_descriptors_set_does_not_hide_it(self) -> None:
        """At 200/s of 400/s half of the arrivals are dropped once 90 are in flight; the latency has grown by then."""
        facts = capped(90)
        findings = found(facts)
        assert set(findings) == {"descriptors", SERVER_LIMITED}
        assert "allowed 90 requests in flight" in findings["descriptors"].measured
        assert " with 90 in flight, at a schedule lag of p99" in findings[SERVER_LIMITED].measured

    @pytest.mark.parametrize(
        ("worker", "code"),
        [
            (delayed(1.0), "loop_blocked"),
            (WorkerUse(silence_s=4.0), "heartbeats_missed"),
            (connected(refused={"ENETUNREACH": 1}), "local_network"),
            (connected(looked_at=100, waiting=50), "connection_pool"),
            (connected(looked_at=100, waiting=50, discarded=500), "connection_pool"),
        ],
    )
    def test_what_makes_answers_late_here_is_the_only_one(self, worker: WorkerUse, code: str) -> None:
        facts = overloaded(workers=(worker,))
        assert set(found(facts)) == {code}
        summary = summarise(facts)
        verdict = judge(facts, summary)
        assert verdict.limited_by == "client"
        assert f"⚠️ CLIENT BOTTLENECK detected: {code}, " in to_text(facts, summary, verdict)

    def test_a_late_client_is_the_only_one(self) -> None:
        facts = overloaded()
        late_by = [r._replace(sent=r.sent + NS, done=r.done + NS) for r in facts.records]
        assert set(found(observe(facts.plan, late_by, caps=ROOMY, host=HOST))) == {"schedule_lag"}

    def test_payloads_that_failed_are_the_only_one(self) -> None:
        facts = overloaded()
        records = list(facts.records)
        records[5] = records[5]._replace(outcome="failed", error="PayloadError KeyError")
        assert set(found(observe(facts.plan, records, caps=ROOMY, host=HOST))) == {"payload_failed"}

    def test_retries_hide_no_endpoint(self) -> None:
        assert set(found(overloaded(workers=(connected(retries=7),)))) == {"hidden_retries", SERVER_LIMITED}

    def test_the_verdict_says_which_side(self) -> None:
        facts = overloaded()
        verdict = judge(facts, summarise(facts))
        assert (verdict.limited_by, verdict.word, verdict.exit_code) == ("server", "VALID", 0)

    def test_latency_that_falls_is_no_growth(self) -> None:
        assert found(answered(PLAN, [2 - n / 1000 for n in range(1000)])) == {}

    @pytest.mark.parametrize("step", [300, 600, 800])
    def test_a_jump_within_the_wave_is_no_growth(self, step: int) -> None:
        assert found(answered(PLAN, [0.02 if n < step else 0.52 for n in range(1000)])) == {}

    def test_a_closed_loop_offers_no_more_than_is_answered(self) -> None:
        opened = overloaded()
        assert set(found(opened)) == {SERVER_LIMITED}
        assert found(observe(closed_plan(400, "2"), list(opened.records), host=HOST, caps=(400,))) == {}

    def test_abandoned_requests_count_with_their_age(self) -> None:
        """Those of the last half never came back: the drain of a second ended them."""
        plan = open_plan("100", "4")
        records = [
            r._replace(outcome="abandoned", done=5 * NS) if r.due >= 2 * NS else r._replace(done=r.sent + 20 * MS)
            for r in on_time(plan)
        ]
        limited = only(observe(plan, records, host=HOST, caps=ROOMY), SERVER_LIMITED)
        assert mentions(limited.measured, "50/s", "100/s", "50%", "20 ms", "1.5")

    def test_after_a_stop_the_quarters_are_of_what_was(self) -> None:
        plan = open_plan("400", "100")
        latencies = queue([n / 400 for n in range(800)], [0.02] * 800, 4)
        records = [
            RequestRecord(n, 0, due, due, due + round(1e9 * latencies[n]))
            for n in range(800)
            for due in (n * 2_500_000,)
        ]
        facts = observe(plan, records, stopped_at=2 * NS, host=HOST, caps=ROOMY)
        assert set(found(facts)) == {SERVER_LIMITED}

    @pytest.mark.parametrize(("dropped", "named"), [(0, False), (50, False), (51, True), (500, True)])
    def test_more_than_a_twentieth_dropped_while_latency_doubled_name_it(self, dropped: int, named: bool) -> None:
        """A jump, which is no steady growth: the queue was full before the first quarter was over."""

        def change(r: RequestRecord) -> RequestRecord | None:
            return None if r.index >= 1000 - dropped else r._replace(done=r.sent + (20 if r.index < 100 else 40) * MS)

        findings = found(wave(change, dropped=[dropped]))
        assert set(findings) == ({SERVER_LIMITED} if named else set())
        if named:
            measured = findings[SERVER_LIMITED].measured
            assert mentions(measured, "20 ms", "40 ms", "10,000")

    def test_a_cap_too_low_for_an_endpoint_that_is_just_slow_names_nobody(self) -> None:
        """Every answer takes a second, first and last alike."""
        mine = replace(open_plan("400", "2"), max_in_flight=90)
        facts = capped(90, far=True, plan=mine)
        assert facts.ledger.dropped > 0.7 * facts.ledger.scheduled
        assert found(facts) == {}

    def test_a_cap_of_the_user_hides_no_queue(self) -> None:
        facts = capped(90, plan=replace(open_plan("400", "2"), max_in_flight=90))
        assert set(found(facts)) == {SERVER_LIMITED}

    def test_a_wave_that_completed_what_arrived_names_nobody(self) -> None:
        """Latency grows tenfold and steadily, by 180 ms in ten seconds: that is two answers in a hundred too few."""
        facts = wave(lambda r: r._replace(done=r.sent + 20 * MS * (1 + r.index // 100)))
        summary = summarise(facts)
        assert summary.completed_share is not None
        assert summary.completed_share > 0.95
        assert found(facts) == {}

    @pytest.mark.parametrize(
        "error",
        [
            "HTTPError 429",
            "ConnectionRefusedError",
            "HTTPError 503",
            "ClientError ThrottlingException",
            "ClientError TooManyRequestsException",
            "ClientError ServiceUnavailable",
            "RequestTimeout",
            "ReadTimeout",
            "TimeoutError",
            "ReadTimeoutError",
            "APIConnectionError ECONNREFUSED",
            "RpcError UNAVAILABLE",
            "RpcError RESOURCE_EXHAUSTED",
            "AioRpcError DEADLINE_EXCEEDED",
        ],
    )
    @pytest.mark.parametrize(("count", "named"), [(40, False), (51, True), (600, True)])
    def test_more_than_a_twentieth_refused_or_timed_out_name_it(self, error: str, count: int, named: bool) -> None:
        findings = found(wave(failing(count, error)))
        assert (SERVER_LIMITED in findings) == named
        if named:
            text = f"{count:,} of 1,000 requests were refused or timed out ({error})"
            assert text in findings[SERVER_LIMITED].measured

    @pytest.mark.parametrize(
        "error", ["ConnectionRefusedError", "ConnectionError ECONNREFUSED", "HTTPError 503", "RpcError UNAVAILABLE"]
    )
    def test_an_endpoint_that_went_away_has_not_too_little_capacity(self, error: str) -> None:
        gone = wave(lambda r: r._replace(outcome="failed", error=error) if r.index >= 600 else r)
        assert found(gone) == {}

    def test_where_nothing_was_answered_nothing_is_known_of_its_capacity(self) -> None:
        assert found(wave(failing(1000, "HTTPError 429"))) == {}

    @pytest.mark.parametrize(
        "error", ["HTTPError 500", "HTTPError 403", "ConnectionResetError", "RpcError INTERNAL", "ValueError"]
    )
    def test_another_failure_is_no_refusal(self, error: str) -> None:
        assert found(wave(failing(500, error))) == {}

    def test_failures_that_say_nothing_of_capacity_are_left_out(self) -> None:
        """Half fail for another reason; of the rest one in twenty refused is too few, one in ten is not."""

        def change(refused: int) -> Callable[[RequestRecord], RequestRecord]:
            def changed(r: RequestRecord) -> RequestRecord:
                error = "HTTPError 500" if r.index < 500 else "HTTPError 503" if r.index < 500 + refused else None
                return r if error is None else r._replace(outcome="failed", error=error)

            return changed

        assert found(wave(change(20))) == {}
        assert set(found(wave(change(100)))) == {SERVER_LIMITED}

    def test_a_more_frequent_failure_is_not_named_as_a_refusal(self) -> None:
        def change(r: RequestRecord) -> RequestRecord:
            error = "HTTPError 500" if r.index < 200 else "HTTPError 503" if r.index < 300 else None
            return r if error is None else r._replace(outcome="failed", error=error)

        measured = only(wave(change), SERVER_LIMITED).measured
        assert mentions(measured, "100", "1,000 requests", "HTTPError", "503")

    def test_refusals_of_all_kinds_are_added_up(self) -> None:
        kinds = ("HTTPError 429", "HTTPError 503", "RequestTimeout")
        facts = wave(lambda r: r._replace(outcome="failed", error=kinds[r.index % 3]) if r.index < 60 else r)
        measured = only(facts, SERVER_LIMITED).measured
        assert mentions(measured, "60", "1,000 requests", "HTTPError", "429")

    def test_refusals_in_a_closed_loop_are_no_arrivals_left_unanswered(self) -> None:
        records = [r._replace(outcome="failed", error="HTTPError 429") if r.index < 50 else r for r in closed().records]
        assert found(observe(closed_plan(2), records, host=HOST, caps=(2,))) == {}


@pytest.mark.parametrize("stopped_at", [0, 1])
def test_a_wave_of_nothing_finds_nothing(stopped_at: int) -> None:
    assert found(observe(PLAN, [], stopped_at=stopped_at, caps=ROOMY)) == {}
