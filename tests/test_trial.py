"""What one wave says about its rate: held or not, and who was in the way."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from client_capacity.conditions import Conditions
from client_capacity.search import Step
from client_capacity.trial import progress_line, shortfall, step_of
from inference_benchmarker.plan import NS
from inference_benchmarker.usage import Block, WorkerUse
from inference_benchmarker.wave import Wave
from tests.test_summary import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.record import RequestRecord

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
        (late, "client", "lag p99 8 ms > 5 ms"),
        (queueing, "endpoint", "/s completed, answers take longer and longer"),
        (uneven, None, ""),
        (failing, "errors", "30 of 300 failed, most by ValueError"),
        (hanging, "endpoint", "/s completed, 30 never answered"),
        (dropping, "client", "30 of 300 not sent"),
        (dropping_and_queueing, "endpoint", "30 of 300 not sent"),
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
    assert shortfall(wave(lost_workers=(0,)), LIMIT_S) == ("errors", "a process ended in mid-wave, see logs")


USE = WorkerUse(cpu_share=0.9, max_rss_bytes=50, block=Block("invoke", "spin (f.py:3)", 1.0, 0.01))


def test_the_code_that_held_the_loop_up_is_named() -> None:
    step = step_of(wave(late, workers=(USE, replace(USE, cpu_share=0.7, block=None))), "growing", LIMIT_S)
    assert step.reason == "lag p99 8 ms > 5 ms, blocked by spin (f.py:3)"
    assert (step.blocked_by, step.max_rss_bytes) == ("spin (f.py:3)", 50)
    assert step.worker_cpu_share == pytest.approx(0.8)
    ours = replace(USE, block=Block("tool", "Worker.run (__main__.py:1)", 1.0, 0.01))
    assert step_of(wave(late, workers=(ours,)), "growing", LIMIT_S).blocked_by is None


def test_a_step_in_which_others_took_the_core_is_disturbed() -> None:
    starved = replace(USE, block=None, starved_share=0.2)
    step = step_of(wave(late, workers=(starved,)), "growing", LIMIT_S)
    assert step.disturbed
    assert step.reason == "lag p99 8 ms > 5 ms, 20% of the time no core was free"
    assert not step_of(wave(workers=(starved,)), "growing", LIMIT_S).disturbed


def test_a_step_is_told_in_one_line() -> None:
    assert progress_line(Step("growing", 256, lag_p99_s=0.0004, worker_cpu_share=0.27)) == (
        "growing          256/s held      lag p99 0.4 ms, worker CPU 27%"
    )
    line = progress_line(Step("bisecting", 1024, "errors", "3 failed", lag_p99_s=0.0004))
    assert line == "bisecting      1,024/s not held  lag p99 0.4 ms, 3 failed"


@pytest.mark.parametrize(("rate", "seconds"), [(1000, "3.000"), (5, "4.000"), (0.5, "12.000")])
def test_a_low_rate_is_sent_for_longer(rate: float, seconds: str) -> None:
    plan = Conditions(Path("f.py")).plan(rate, 2, Path("o"))
    assert (str(plan.bounds.duration_s), plan.workers, plan.output_dir) == (seconds, 2, Path("o"))
    assert plan.target_rate == rate
