"""A wave whose rate changes, judged by the log of the endpoint that it was sent to."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.plan import WavePlan
from tests.bench import NS, Bench, Finished, factories, ids

pytestmark = pytest.mark.process

STAGES = "calm=40:0.5s, 40..160:0.5s, 0:0.4s, spike=400:0.3s"
PLANNED = {"calm": 20, "2": 50, "3": 0, "spike": 120}


def test_every_stage_is_sent_as_planned_by_any_number_of_workers(bench: Bench) -> None:
    with ExitStack() as stack:
        started = []
        for workers in (1, 3):
            endpoint = stack.enter_context(bench.endpoint(service="none"))
            flags = ("--stages", STAGES, "--warmup", "0.5", "--workers", workers, "--slo", "spike:success>=1")
            started.append(
                (endpoint, bench.start(*flags, factories=factories("return post(payload)"), target=endpoint))
            )
        waves = []
        for endpoint, running in started:
            wave = running.finish()
            wave.check_books()
            log = endpoint.arrivals()
            check_stages(wave, [queued - wave.summary["window"]["t0_monotonic_ns"] for queued in log["queued_ns"]])
            assert len(ids(log)) == sum(PLANNED.values()) + 20, "the warm-up runs at the first rate"
            waves.append(wave)
    plan = WavePlan.from_json(json.loads((waves[0].folder / "plan.json").read_text()))
    planned = [(arrival.index, arrival.due) for arrival in TokenBucket.of(plan).arrivals(0)]
    for wave in waves:
        assert [(row["index"], row["due"]) for row in wave.everything] == planned


def check_stages(wave: Finished, arrived: list[int]) -> None:
    """As many as planned in each stage, none of them at the endpoint before it began, and none due in the pause."""
    rows = {row["name"]: row for row in wave.summary["stages"]}
    assert {name: (row["planned"], row["sent"], row["ok"]) for name, row in rows.items()} == {
        name: (count, count, count) for name, count in PLANNED.items()
    }
    arrived = sorted(arrived)[20:]
    first = {name: arrived[sum(list(PLANNED.values())[:place])] for place, name in enumerate(PLANNED) if PLANNED[name]}
    assert all(first[name] >= rows[name]["start_s"] * NS for name in first)
    assert not [row for row in wave.rows if 1.0 * NS < row["due"] < 1.4 * NS]
