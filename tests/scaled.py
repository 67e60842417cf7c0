"""An embedded endpoint that a policy scales, and a program that has its scaling suspended until somebody ends it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from inference_benchmarker.embedded.config import EndpointConfig
from inference_benchmarker.embedded.running import start
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock
from tests.boto3_runtime import client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.embedded.running import RunningEndpoint

VARIANT = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/demo/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
BEFORE = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}
"""Of which a half is suspended already: what is put back is that, and not everything."""

SUSPENDED = dict.fromkeys(BEFORE, True)
BLOCKS = [
    CloudWatchBlock("/aws/sagemaker/Endpoints", (("EndpointName", "demo"), ("VariantName", "AllTraffic")), 60, 0.0, ())
]
SEARCH = f"""
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from server_capacity.metrics.cloudwatch.block import CloudWatchBlock
from server_capacity.provisioning.scaling import suspended_scaling
with suspended_scaling({BLOCKS!r}, Path(sys.argv[1]), print):
    time.sleep(60)
"""
PATIENCE_S = 30


class Scaled(NamedTuple):
    """The endpoint, and a client of what scales it."""

    endpoint: RunningEndpoint
    scaling: Any

    @property
    def state(self) -> dict[str, bool]:
        """What is suspended now."""
        (target,) = self.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        found: dict[str, bool] = target["SuspendedState"]
        return found


@contextmanager
def scaled() -> Iterator[Scaled]:
    """The endpoint, half suspended, with one policy."""
    with start(EndpointConfig(service="none")) as endpoint:
        scaling = client(endpoint, "application-autoscaling")
        register(scaling)
        yield Scaled(endpoint, scaling)


def register(scaling: Any) -> None:
    scaling.register_scalable_target(**VARIANT, MinCapacity=1, MaxCapacity=3, SuspendedState=BEFORE)
    metric = {"PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"}
    scaling.put_scaling_policy(
        **VARIANT,
        PolicyName="thirty-a-second",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={"TargetValue": 1800.0, "PredefinedMetricSpecification": metric},
    )


def search(endpoint: RunningEndpoint, folder: Path) -> subprocess.Popen[bytes]:
    """The program, which says a line once scaling is suspended."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", SEARCH, str(folder)],
        env={**os.environ, **endpoint.aws_environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def keeper_of(program: subprocess.Popen[bytes]) -> psutil.Process | None:
    """The program's keeper; None where it has none yet, or no longer."""
    with suppress(psutil.Error):
        return next(iter(psutil.Process(program.pid).children()), None)
    return None


def await_end(keeper: psutil.Process | None) -> None:
    """Until the keeper has ended by itself."""
    if keeper is None:
        return
    for _ in range(PATIENCE_S * 50):
        with suppress(psutil.NoSuchProcess):
            if keeper.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.02)
                continue
        return
    raise AssertionError("the keeper never ended")
