"""Everything that may be wrong with a wave plan: its numbers, and the conflicts between its parts."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.errors import Problem, refuse
from inference_benchmarker.plan.endpoint_problems import is_unread, problems_of_files
from inference_benchmarker.plan.expectation import canary_share
from inference_benchmarker.plan.load import ClosedLoop, OpenLoop, seconds_problems
from inference_benchmarker.words.units import MAX_SECONDS
from inference_benchmarker.words.wording import size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.slo import Slo

MAX_WORKERS = 1_000
LARGEST_ANSWER = 1 << 40
RECORDS = ("all", "none")


def problems_of(plan: WavePlan, *, endpoint_needed: bool = True) -> list[Problem]:
    """Everything that is wrong with a plan; empty when it can run.

    Without ``endpoint_needed`` it may name no file: whoever asks has its requests from elsewhere.
    """
    return [*problems_of_values(plan), *problems_of_files(plan, endpoint_needed=endpoint_needed)]


def check_plan(plan: WavePlan) -> None:
    """Raise one BenchmarkError that names every problem."""
    refuse([problem.text for problem in problems_of(plan)])


def problems_of_values(plan: WavePlan) -> list[Problem]:
    """The problems of its numbers, whatever became of its endpoint: a plan that is read back has none."""
    return list(_problems_of_values(plan))


def _problems_of_values(plan: WavePlan) -> Iterator[Problem]:
    """The problems of its numbers, and of parts that exclude each other."""
    yield from plan.load.problems()
    if not is_unread(plan):
        yield from _bounds_problems(plan)
    yield from _length_problems(plan)
    yield from _stage_problems(plan)
    yield from _replay_problems(plan)
    yield from _process_problems(plan)
    yield from _hosts_problems(plan)
    yield from _timing_problems(plan)
    yield from _retry_problems(plan)
    yield from _threshold_problems(plan)
    yield from _abort_problems(plan)
    yield from _records_problems(plan)


def _bounds_problems(plan: WavePlan) -> Iterator[Problem]:
    """A load that is steered ends at a key or an order, so it needs no bound."""
    if not plan.load.is_steered:
        yield from plan.bounds.problems()
    elif plan.bounds.num_requests is not None:
        text = "--interactive: a rate that changes has no fixed number of requests: leave --num-requests out."
        yield Problem(("num_requests", "steered"), text)
    elif plan.bounds.duration_s is not None:
        yield from plan.bounds.problems()


def _length_problems(plan: WavePlan) -> Iterator[Problem]:
    """A wave that no bound ends within the longest time a wave may last."""
    number = plan.bounds.num_requests
    if isinstance(plan.load, ClosedLoop) or number is None or plan.bounds.duration_s is not None or is_unread(plan):
        return
    if any(plan.load.problems()) or any(plan.bounds.problems()) or number <= plan.load.rate * MAX_SECONDS:
        return
    text = (
        f"--num-requests {number} at {plan.load.rate} requests/s would take longer than {MAX_SECONDS:,} seconds: "
        "give a higher --client-rps, fewer requests, or an --obs-time."
    )
    yield Problem(("num_requests", "rate"), text)


def _stage_problems(plan: WavePlan) -> Iterator[Problem]:
    load = plan.load
    if not isinstance(load, OpenLoop) or not load.stages or any(load.problems()):
        return
    if plan.bounds.duration_s != load.stages_s:
        text = f"--stages last {load.stages_s:f} seconds: leave --obs-time out, or give --client-rps instead."
        yield Problem(("duration_s", "stages"), text)
    if plan.warmup_s and not load.stages[0].from_rps:
        text = "--warmup runs at the first stage's first rate, which is 0: leave it out, or begin above 0."
        yield Problem(("warmup_s", "stages"), text)


def _replay_problems(plan: WavePlan) -> Iterator[Problem]:
    load = plan.load
    if not isinstance(load, OpenLoop) or load.replay is None:
        return
    if plan.bounds.duration_s != load.length_s:
        yield Problem(
            ("replay", "duration_s"), "--replay: the recording says how long the wave lasts: leave --obs-time out."
        )
    if plan.warmup_s:
        text = "--replay: a recording has no first rate, at which a --warmup would run: leave --warmup out."
        yield Problem(("replay", "warmup_s"), text)
    if is_unread(plan) and plan.bounds.num_requests is not None:
        yield from replace(plan.bounds, duration_s=None).problems()


def _process_problems(plan: WavePlan) -> Iterator[Problem]:
    if not 1 <= plan.workers <= MAX_WORKERS:
        yield Problem(("workers",), f"--workers must be from 1 to {MAX_WORKERS:,}, not {plan.workers}.")
    if plan.port is not None and not 1 <= plan.port <= 65535:
        yield Problem(("port",), f"--port must be from 1 to 65535, not {plan.port}.")
    if plan.max_in_flight is not None and plan.max_in_flight < plan.workers:
        text = f"--max-in-flight must be at least one per worker ({plan.workers}), not {plan.max_in_flight}."
        yield Problem(("max_in_flight", "workers"), text)
    if isinstance(plan.load, ClosedLoop):
        yield from _closed_loop_problems(plan, plan.load)
    if plan.seed is not None and not 0 <= plan.seed < 2**63:
        yield Problem(("seed",), f"--seed must be a whole number from 0 to 2^63 - 1, not {plan.seed}.")


def _hosts_problems(plan: WavePlan) -> Iterator[Problem]:
    yield from plan.hosts.problems()
    if plan.hosts and plan.hosts.workers != plan.workers:
        text = f"--workers {plan.workers}: --hosts name {plan.hosts.workers}; leave --workers out, or change --hosts."
        yield Problem(("hosts", "workers"), text)


def _closed_loop_problems(plan: WavePlan, load: ClosedLoop) -> Iterator[Problem]:
    if 1 <= load.concurrency < plan.workers and not load.steered:
        text = (
            f"--concurrency {load.concurrency} cannot be split over {plan.workers} workers: "
            f"use --workers {load.concurrency} or fewer."
        )
        yield Problem(("concurrency", "workers"), text)
    if load.has_users and plan.locust_file is not None:
        text = "--think-time is for a factories file; the users of a --locust-file think by their wait_time."
        yield Problem(("think", "locust_file"), text)
    if plan.max_in_flight is not None and not load.steered:
        text = "--max-in-flight caps an open loop; with --concurrency the cap is the concurrency."
        yield Problem(("max_in_flight",), text)


def _timing_problems(plan: WavePlan) -> Iterator[Problem]:
    yield from seconds_problems("warmup_s", "--warmup", plan.warmup_s)
    yield from seconds_problems("drain_timeout_s", "--drain-timeout", plan.drain_timeout_s)
    if plan.request_timeout_s is not None:
        least = Decimal("0.001")
        yield from seconds_problems("request_timeout_s", "--request-timeout", plan.request_timeout_s, least)
    if not 1 <= plan.max_answer_size <= LARGEST_ANSWER:
        largest = size_text(LARGEST_ANSWER)
        text = f"--max-answer-size must be from 1 byte to {largest}, not {plan.max_answer_size:,} bytes."
        yield Problem(("max_answer_size",), text)
    yield from seconds_problems("load_timeout_s", "--load-timeout", plan.load_timeout_s, least=Decimal(1))


def _retry_problems(plan: WavePlan) -> Iterator[Problem]:
    yield from plan.retries.problems()
    attempt, arrival = plan.retries.timeout_s, plan.request_timeout_s
    given = [limit for limit in (attempt, arrival) if limit is not None and limit.is_finite()]
    if len(given) == 2 and given[0] >= given[1]:
        text = (
            f"--client-timeout {attempt} is for one attempt and must be below --request-timeout {arrival}, which "
            "bounds all attempts of an arrival together."
        )
        yield Problem(("timeout_s", "request_timeout_s"), text)


def _records_problems(plan: WavePlan) -> Iterator[Problem]:
    """The problems of what needs the record of each request, and nothing else."""
    if plan.records not in RECORDS:
        yield Problem(("records",), f"--records must be all or none, not {plan.records!r}.")
    if not plan.counts_requests:
        return
    text = "is computed from the record of each request: leave it out, or --records none."
    if plan.retries.retries:
        yield Problem(("records", "retries"), f"--client-retries: the result of each user {text}")
    if plan.goodput:
        yield Problem(("records", "goodput"), f"--goodput {text}")
    if canary_share(plan.expect):
        yield Problem(("records", "expect"), f"--expect canary {text}")
    for slo in plan.slos:
        if slo.metric == "tpot" or slo.is_on_user_metric:
            what = "TPOT" if slo.metric == "tpot" else "a metric of your own"
            yield Problem(("records", "slos"), f"--slo {slo.expression}: {what} {text}")


def _threshold_problems(plan: WavePlan) -> Iterator[Problem]:
    if not (math.isfinite(plan.success_threshold) and 0 <= plan.success_threshold <= 1):
        text = f"--success-threshold must be a share from 0 to 1, not {plan.success_threshold}."
        yield Problem(("success_threshold",), text)
    names = plan.load.stage_names if isinstance(plan.load, OpenLoop) else ()
    steered = isinstance(plan.load, OpenLoop) and plan.load.steered
    for slo in plan.slos:
        if slo.stage and slo.stage not in names and not (steered and slo.stage.isdecimal()):
            stages = f"the stages are {', '.join(names[:20])}" if names else "there are no --stages"
            yield Problem(("slos", "stages"), f"--slo {slo.expression}: there is no stage {slo.stage}; {stages}.")
        if slo.metric == "goodput" and not plan.goodput:
            text = f"--slo {slo.expression}: say what a good request is, e.g. --goodput 'ttft<1s,itl<50ms'."
            yield Problem(("slos", "goodput"), text)
    if isinstance(plan.load, ClosedLoop):
        yield from _open_loop_only_problems(plan)


def _open_loop_only_problems(plan: WavePlan) -> Iterator[Problem]:
    for limit in plan.goodput:
        if limit.metric == "response_time":
            text = f"--goodput {limit.expression}: a closed loop has no response time; limit latency instead."
            yield Problem(("goodput",), text)
    for slo in plan.slos:
        if what := _open_loop_only(slo):
            yield Problem(("slos",), f"--slo {slo.expression}: a closed loop has no {what}; limit latency instead.")


def _abort_problems(plan: WavePlan) -> Iterator[Problem]:
    for each in plan.abort_on:
        if each.condition.metric == "response_time" and isinstance(plan.load, ClosedLoop):
            yield Problem(("abort_on",), f"--abort-on {each.text}: a closed loop has no response time; take latency.")


def _open_loop_only(slo: Slo) -> str:
    if slo.metric == "rate":
        return "target rate"
    if slo.metric == "response_time":
        return "response time"
    return ""
