"""What one wave says about its rate: held or not, and who was in the way."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from client_capacity.conditions import Conditions, numbers
from client_capacity.rps_saturation import find_rps_saturation
from client_capacity.search import Step
from client_capacity.trial import SpokenView, progress_line, shortfall, step_of
from client_capacity.worker_saturation import find_worker_saturation
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import Connections, LoopBlock, WorkerUse
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.hosted import hosted
from tests.mentions import mentions
from tests.waves import HOST, MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.records.record import RequestRecord

PLAN = open_plan("100", "3")
LIMIT_S = 0.005


def wave(change: Callable[[RequestRecord], RequestRecord | None] = lambda record: record, **more: Any) -> Wave:
    """A faultless step of 300 arrivals, changed in one thing."""
    changed = [change(record) for record in on_time(PLAN)]
    observed = observe(PLAN, [record for record in changed if record is not None], **more)
    return Wave(**{field.name: getattr(observed, field.name) for field in fields(observed)})


def late(record: RequestRecord) -> RequestRecord:
    return record._replace(sent=record.due + 8 * MS, done=record.due + 28 * MS)


def queueing(record: RequestRecord) -> RequestRecord:
    """An endpoint that answers half of what it gets."""
    return record._replace(sent=record.due, done=2 * record.due + 20 * MS)


def uneven(record: RequestRecord) -> RequestRecord:
    """Latency of 1 to 4 s at any time: a step of 3 s never sees as many answers as requests."""
    return record._replace(sent=record.due, done=record.due + NS + record.index * 7919 % 3000 * MS)


def failing(record: RequestRecord) -> RequestRecord:
    return record._replace(outcome="failed", error="ValueError") if record.index % 10 == 0 else record


def hanging(record: RequestRecord) -> RequestRecord:
    return record._replace(outcome="abandoned", done=63 * NS) if record.index % 10 == 0 else record


def dropping(record: RequestRecord) -> RequestRecord | None:
    return None if record.index % 10 == 0 else record


def dropping_and_queueing(record: RequestRecord) -> RequestRecord | None:
    return None if record.index % 10 == 0 else queueing(record)


@pytest.mark.parametrize(
    ("change", "cause", "reason"),
    [
        (lambda record: record, None, ""),
        (late, "client", "lag p99 > 5 ms"),
        (queueing, "server", "latency grew from "),
        (uneven, None, ""),
        (failing, "errors", "30 of 300 failed, most by ValueError"),
        (hanging, "errors", "30 of 300 never answered"),
        (dropping, "client", "30 of 300 not sent"),
        (dropping_and_queueing, "server", "30 of 300 not sent"),
        (lambda record: late(failing(record)), "client", "lag p99"),
        (lambda _: None, "client", "nothing was sent"),
    ],
    ids=[
        "held",
        "late",
        "queueing",
        "uneven",
        "failing",
        "hanging",
        "dropping",
        "dropping, queueing",
        "late, failing",
        "none",
    ],
)
def test_who_was_in_the_way(
    change: Callable[[RequestRecord], RequestRecord | None], cause: str | None, reason: str
) -> None:
    found = shortfall(wave(change), LIMIT_S)
    assert found[0] == cause
    assert reason in found[1]


def test_the_limit_of_the_lag_is_the_callers() -> None:
    assert shortfall(wave(late), 0.01) == (None, "")


def test_a_lost_worker_ends_the_search() -> None:
    assert shortfall(wave(lost_workers=(0,)), LIMIT_S) == ("errors", "a process ended during the wave: see the logs")


POOL_OF_2 = Connections(opened=2, looked_at=300, waiting=290)


def test_a_pool_that_is_too_small_is_the_clients_not_the_endpoints() -> None:
    """The wave's own report says connection_pool; the search must not say the contrary."""
    step = step_of(wave(queueing, workers=(WorkerUse(connections=POOL_OF_2),)), "growing", LIMIT_S)
    assert (step.cause, step.finding) == ("client", "connection_pool")
    assert mentions(step.reason, "connection_pool", "96.67%")


def test_a_small_pool_that_answers_in_time_is_held() -> None:
    assert shortfall(wave(workers=(WorkerUse(connections=POOL_OF_2),)), LIMIT_S) == (None, "")


def test_a_pool_that_also_drops_is_named() -> None:
    cause, reason = shortfall(wave(dropping_and_queueing, workers=(WorkerUse(connections=POOL_OF_2),)), LIMIT_S)
    assert cause == "client"
    assert mentions(reason, "30", "300", "connection_pool", "9")


def test_descriptors_that_run_out_are_not_the_endpoints_errors() -> None:
    short = WorkerUse(connections=Connections(refused={"EMFILE": 30}))
    cause, reason = shortfall(wave(failing, workers=(short,)), LIMIT_S)
    assert (cause, reason) == ("client", "descriptors: 30 requests failed because no file descriptor was free")


def test_where_the_verdict_blames_the_endpoint_so_does_the_search() -> None:
    slow = wave(queueing)
    assert slow.verdict.limited_by == "server"
    step = step_of(slow, "growing", LIMIT_S)
    assert (step.cause, step.finding) == ("server", None)
    assert "schedule lag" not in step.reason


def test_a_busy_worker_that_is_on_time_is_not_blamed_for_long_and_uneven_latency() -> None:
    assert shortfall(wave(uneven, workers=(WorkerUse(cpu_share=0.97),)), LIMIT_S) == (None, "")


def test_secrets_in_a_reason_are_hidden() -> None:
    leaking = wave(lambda r: r._replace(outcome="failed", error="GET https://me:hunter22@host"))
    assert "hunter22" not in step_of(leaking, "growing", LIMIT_S).reason


USE = WorkerUse(cpu_share=0.9, max_rss_bytes=50, block=LoopBlock("invoke", "spin (f.py:3)", 1.0, 0.01))


def test_the_code_that_held_the_loop_up_is_named() -> None:
    step = step_of(wave(late, workers=(USE, replace(USE, cpu_share=0.7, block=None))), "growing", LIMIT_S)
    assert mentions(step.reason, "p99", "5 ms", "f.py:3")
    assert (step.blocked_by, step.max_rss_bytes) == ("spin (f.py:3)", 50)
    assert step.worker_cpu_share == pytest.approx(0.8)
    ours = replace(USE, block=LoopBlock("tool", "Worker.run (__main__.py:1)", 1.0, 0.01))
    assert step_of(wave(late, workers=(ours,)), "growing", LIMIT_S).blocked_by is None


def test_a_step_in_which_others_took_the_core_is_disturbed() -> None:
    starved = replace(USE, block=None, starved_share=0.2)
    step = step_of(wave(late, workers=(starved,)), "growing", LIMIT_S)
    assert step.disturbed
    assert mentions(step.reason, "p99", "5 ms", "20%")
    assert step_of(wave(late, workers=(replace(USE, starved_share=0.0), starved)), "growing", LIMIT_S).disturbed
    assert not step_of(wave(workers=(starved,)), "growing", LIMIT_S).disturbed


@pytest.mark.parametrize(
    ("host_share", "worker_share", "disturbed"), [(1.0, 0.4, True), (1.0, 0.6, False), (0.95, 0.1, False)]
)
def test_a_host_that_is_busy_with_something_else_disturbs(
    host_share: float, worker_share: float, disturbed: bool
) -> None:
    uses = tuple(replace(USE, cpu_share=2 * worker_share, starved_share=0.01) for _ in range(4))
    busy = wave(late, workers=uses, host=replace(HOST, cores=8, cpu_share_mean=host_share, cpu_share_max=host_share))
    assert step_of(busy, "growing", LIMIT_S).disturbed == disturbed


def test_the_host_that_is_late_is_named_where_another_is_not() -> None:
    lag_s = np.where(np.arange(600) % 3 == 1, 0.02, 0.0)  # of the second host's worker
    step = step_of(hosted([[0.02] * 300] * 2, lag_s=lag_s), "growing", LIMIT_S)
    assert (step.cause, step.reason, step.late_hosts) == ("client", "lag p99 > 5 ms on load2", ("load2",))
    everywhere = step_of(hosted([[0.02] * 300] * 2, lag_s=0.02), "growing", LIMIT_S)
    assert (everywhere.reason, everywhere.late_hosts) == ("lag p99 > 5 ms", ())


def test_a_step_is_reported_in_one_line() -> None:
    assert progress_line(Step("growing", 256, lag_p99_s=0.0004, worker_cpu_share=0.27)) == (
        "growing          256/s held      lag p99 0.4 ms, worker CPU 27%"
    )
    line = progress_line(Step("bisecting", 1024, "errors", "3 failed", lag_p99_s=0.0004))
    assert line == "bisecting      1,024/s not held  lag p99 0.4 ms, 3 failed"
    line = progress_line(Step("bisecting", 1024, "client", "lag p99 > 5 ms, blocked by f", lag_p99_s=0.02))
    assert line.endswith("not held  lag p99 20 ms > 5 ms, blocked by f")


def test_what_is_tried_is_said_before_and_no_two_seconds_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("client_capacity.trial.time.monotonic", lambda: now)
    said: list[tuple[float, str]] = []
    live = SpokenView(lambda message: said.append((now, message)))
    live.begin(128, "growing")
    live.say("Port 5557 is taken")
    live.say("Port 5557 is taken")
    for _ in range(24):
        now += 0.5
        live.update(SpoolState([], 1), round((now - 1) * NS))
    assert said[:2] == [(0.0, "trying 128/s (growing)..."), (0.0, "Port 5557 is taken")]
    assert mentions(said[-1][1], "128/s", "11 s", "0 sent", "0")
    times = [when for when, _ in said]
    assert max(after - before for before, after in pairwise([*times, now])) <= 2


@pytest.mark.parametrize(("step_time_s", "rate", "drain"), [(3, 1000, 6), (1, 1000, 5), (3, 0.5, 24), (30, 1000, 60)])
def test_an_endpoint_that_hangs_does_not_hold_a_step_up_for_long(step_time_s: float, rate: float, drain: float) -> None:
    plan = Conditions(Path("f.py"), step_time_s=step_time_s).plan(rate, 1, Path("o"))
    assert plan.drain_timeout_s == drain


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"max_rps": "x"}, "max_rps must be a number, not 'x'."),
        ({"lag_limit_s": None}, "lag_limit_s must be a number, not None."),
        ({"repeats": 4.5}, "repeats must be a whole number, not 4.5."),
        ({"max_workers": True}, "max_workers must be a number, not True."),
        ({"repeats": float("nan")}, "repeats must be a whole number, not nan."),
        ({"max_workers": float("inf")}, "max_workers must be a whole number, not inf."),
    ],
)
def test_an_argument_that_is_no_number_is_named(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BenchmarkError) as raised:
        numbers(**given)
    assert str(raised.value) == problem


def test_arguments_become_plain_numbers() -> None:
    given = numbers(max_rps=np.float64(5), repeats=np.int64(4), lag_limit_s=Decimal("0.01"), max_workers=None)
    assert given == {"max_rps": 5.0, "repeats": 4, "lag_limit_s": 0.01, "max_workers": None}
    assert [type(value) for value in given.values()] == [float, int, float, type(None)]


@pytest.mark.parametrize("search", [find_worker_saturation, find_rps_saturation])
def test_the_functions_name_an_argument_that_is_no_number(search: Callable[..., object]) -> None:
    with pytest.raises(BenchmarkError, match="max_rps must be a number, not 'x'"):
        search("f.py", max_rps="x")


@pytest.mark.parametrize(("rate", "seconds"), [(1000, "3.000"), (5, "4.000"), (0.5, "12.000")])
def test_a_low_rate_is_sent_for_longer(rate: float, seconds: str) -> None:
    plan = Conditions(Path("f.py")).plan(rate, 2, Path("o"))
    assert (str(plan.bounds.duration_s), plan.workers, plan.output_dir) == (seconds, 2, Path("o"))
    assert plan.target_rate == rate
