"""A fleet simulated against the embedded endpoint, whose instances come and go under a spike, as one does what it does.

The endpoint's minutes take three seconds. Poisson arrivals that two instances hold, then three times as
many: the policy adds instances, and what has queued up is worked off. The server's log tells which requests took
longer than the limit, and in which seconds more of them than are allowed. The same arrivals go through the simulation,
whose services are drawn anew a number of times. Where its minutes begin is the endpoint's: from its first activity.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from server_capacity.models.fleet.demand import Recorded
from server_capacity.models.fleet.policies import TargetTracking
from server_capacity.models.fleet.service import Service
from server_capacity.models.fleet.simulate import simulate
from tests.boto3_runtime import client
from tests.performance import measure
from tests.performance.figures import Figure, Program, below
from tests.scaled import VARIANT

if TYPE_CHECKING:
    from inference_benchmarker.embedded.running import RunningEndpoint
    from server_capacity.models.fleet.routing import Routing
    from server_capacity.models.fleet.service import Floats

FACTORIES = measure.REPOSITORY / "factories" / "http" / "factories_http.py"
FACTOR = 20.0
MINUTE_S, START_S, COOLDOWN_S = 60 / FACTOR, 240 / FACTOR, 300 / FACTOR
SERVERS, MEAN_S, INSTANCES, MOST = 2, 0.05, 2, 8
TARGET_RPS, BEFORE_RPS, SPIKE_RPS, BEFORE_S = 22.86, 40.0, 120.0, 15.0
BOUND_S, ALLOWED, WINDOW_S = 0.5, 0.1, 1.0
RUNS, SIMULATED = 3, 20
ROUTINGS: tuple[Routing, ...] = ("random", "least_outstanding")
SERVICES_S = -np.log1p(-(np.arange(4096) + 0.5) / 4096) * MEAN_S


class Spike(NamedTuple):
    """A spike as the endpoint had it: arrivals (seconds after its minutes began), and what came of it."""

    arrivals_s: Floats
    length_s: float
    over_s: float
    changes: int


def endured(routing: Routing, seconds: float, seed: int) -> Spike:
    """A spike of so many seconds."""
    settings: dict[str, Any] = {
        "servers": SERVERS * INSTANCES,
        "service": "exponential",
        "service_s": MEAN_S,
        "seed": seed,
        "instances": INSTANCES,
        "time_factor": FACTOR,
        "routing": routing,
    }
    stages = f"{BEFORE_RPS:g}:{BEFORE_S:g}s, {SPIKE_RPS:g}:{seconds:g}s"
    with start(EndpointConfig(**settings)) as endpoint:
        _scale(endpoint)
        os.environ["BENCHMARK_DEMO_URL"] = endpoint.url  # to the factories file
        wave = ("--stages", stages, "--arrivals", "poisson", "--seed", str(seed), "--workers", "1")
        measure.run(FACTORIES, endpoint.url, 1, *wave)
        log = endpoint.arrivals()
        activities = client(endpoint, "application-autoscaling").describe_scaling_activities(
            ServiceNamespace="sagemaker"
        )["ScalingActivities"]
    asked = [each["StartTime"].timestamp() - (time.time() - time.monotonic()) for each in activities]
    taken = [(came, done) for came, done in zip(log["queued_ns"], log["finish_ns"], strict=True) if done is not None]
    came, done = (np.array(column) / 1e9 for column in zip(*taken, strict=True))
    begin = min(asked) - np.ceil((min(asked) - came[0]) / MINUTE_S) * MINUTE_S
    arrivals = came - begin
    length = float(np.ceil(arrivals[-1]))
    windows = (arrivals / WINDOW_S).astype(int)
    over = np.bincount(windows, done - came > BOUND_S) > ALLOWED * np.bincount(windows)
    return Spike(arrivals, length, float(over.sum()) * WINDOW_S, len(activities))


def _scale(endpoint: RunningEndpoint) -> None:
    scaling = client(endpoint, "application-autoscaling")
    scaling.register_scalable_target(**VARIANT, MinCapacity=INSTANCES, MaxCapacity=MOST)
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    scaling.put_scaling_policy(
        **VARIANT,
        PolicyName="as-many-as-it-takes",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 60 * TARGET_RPS,
            "PredefinedMetricSpecification": metric,
        },
    )


def predicted(spike: Spike, routing: Routing) -> list[float]:
    """Seconds over the limit, of each simulation."""
    policy = TargetTracking(
        metric="invocations",
        target=TARGET_RPS * MINUTE_S,
        minimum=INSTANCES,
        maximum=MOST,
        instance_start_s=START_S,
        cooldown_out_s=COOLDOWN_S,
        cooldown_in_s=COOLDOWN_S,
        minute_s=MINUTE_S,
    )
    service, load = Service(SERVERS, 0.0, SERVICES_S), Recorded.of(spike.arrivals_s, spike.length_s)
    runs = (
        simulate(
            service,
            load,
            policy,
            routing,
            bound_s=BOUND_S,
            allowed=ALLOWED,
            seed=seed,
            minute_s=WINDOW_S,
            instances=INSTANCES,
        )
        for seed in range(SIMULATED)
    )
    return [60 * run.minutes_over for run in runs]


def figures(seconds: float) -> list[Figure]:
    """Spikes of so many seconds, with each routing."""
    found = []
    for routing in ROUTINGS:
        spikes = [endured(routing, seconds, seed) for seed in range(1, RUNS + 1)]
        simulated = [predicted(spike, routing) for spike in spikes]
        for spike, reported in zip(spikes, simulated, strict=True):
            text = f"{routing}: {spike.over_s:g} s over the limit, {spike.changes} changes of the instances; simulated"
            print(f"{text} {np.mean(reported):.3g} s, {min(reported):.3g} to {max(reported):.3g} s", file=sys.stderr)
        measured = float(np.mean([spike.over_s for spike in spikes]))
        expected = float(np.mean(simulated))
        name = f"{RUNS} spikes, {routing.replace('_', ' ')}: time over the limit"
        found += [
            Figure(f"{name}, endpoint", measured, "s"),
            Figure(f"{name}, simulated", expected, "s"),
            Figure(f"{name}, simulated off by", 100 * abs(expected / measured - 1), "%", below(15)),
        ]
    return found


PROGRAM = Program("a fleet under a spike", figures, seconds=75, quick_seconds=60)

if __name__ == "__main__":
    PROGRAM.main()
