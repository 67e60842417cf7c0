"""Counts the instances of a SageMaker variant: DescribeEndpoint, again and again while a wave runs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.facts.instances import INFERRED, CannotCountError, Count, ScalingEvent, uncounted
from inference_benchmarker.facts.server_metric import SAME_CLOCK_S
from inference_benchmarker.verdict.server.known_metrics import VARIANT
from server_capacity.metrics import aws_client
from server_capacity.metrics.aws_failures import UNREADABLE, call_failure
from server_capacity.metrics.cloudwatch.autoscaling import Autoscaling, make_clients
from server_capacity.metrics.cloudwatch.fetch import seconds_ahead
from server_capacity.metrics.cloudwatch.hardware import PERMISSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inference_benchmarker.facts.instances import Followed
    from inference_benchmarker.facts.server_metric import ServerMetric
    from server_capacity.metrics.cloudwatch.block import Variant

CONNECT_S, READ_S = 2, 5


def make_client(region: str) -> Any | None:
    """A client of SageMaker's control plane that asks once: who counts asks again anyhow, and later if throttled."""
    from botocore.exceptions import BotoCoreError

    try:
        return aws_client.make_client("sagemaker", region, attempts=1, connect_s=CONNECT_S, read_s=READ_S)
    except (BotoCoreError, ValueError):
        return None


class VariantInstances:
    """Implements ``InstanceSource``."""

    source = "DescribeEndpoint"

    def __init__(self, variant: Variant, region: str, clock: Callable[[], float] = time.time) -> None:
        self._endpoint, self._variant = variant
        self._region = region
        self._clock = clock
        self._client = make_client(region)
        self._ahead_s = 0.0
        self.of = "/".join(variant)

    def count(self) -> Count:
        """The instances now, with the endpoint's status."""
        if self._client is None:
            raise CannotCountError("boto3 cannot be used for SageMaker", final=True)
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        try:
            answer = self._client.describe_endpoint(EndpointName=self._endpoint)
            count = self._instance_count(answer)
        except (BotoCoreError, ClientError, ResponseParserError, *UNREADABLE) as error:
            failure = call_failure(error, self._client, PERMISSION)
            raise CannotCountError(failure.text, final=failure.final) from None
        self._ahead_s = next(seconds_ahead(answer), self._ahead_s)
        return count

    def scaling_events(self, start: float, end: float) -> tuple[list[ScalingEvent], list[str]]:
        """The events of Application Auto Scaling and its alarms, on this machine's clock."""
        clients = make_clients(self._region)
        if clients is None:
            return [], []
        ahead = self._ahead_s if abs(self._ahead_s) > SAME_CLOCK_S else 0.0
        events, remarks = Autoscaling(*clients, self._endpoint, self._variant).scaling_events(
            start + ahead, end + ahead
        )
        return [_moved(event, -ahead) for event in events], remarks

    def _instance_count(self, answer: dict[str, Any]) -> Count:
        at, status = self._clock(), answer.get("EndpointStatus")
        for each in answer.get("ProductionVariants") or []:
            if each["VariantName"] == self._variant and "CurrentInstanceCount" in each:
                desired = each.get("DesiredInstanceCount")
                current = float(each["CurrentInstanceCount"])
                return Count(at, current, None if desired is None else float(desired), status)
        if status == "InService":  # a serverless variant, or there is none of that name, which was said before the wave
            raise CannotCountError("", final=True)
        raise CannotCountError(f"the endpoint is {status} and has no variants")


FEWEST_BUCKETS = 2
"""One bucket shows no number that stays the same."""


def by_samples(followed: Iterable[Followed], metrics: Iterable[ServerMetric]) -> Iterator[Followed]:
    """The same; of those that could not be counted, the number that the samples of a utilization let one infer.

    An instance may send several samples in a period of CloudWatch's, and not in each as many: a number that changes
    shows nothing of instances, and one that is the same throughout may be a multiple of theirs.
    """
    samples = {_of(metric.dimensions): metric.instances for metric in metrics if metric.instances}
    for each in followed:
        points = samples.get(each.of, ())
        is_steady = len(points) >= FEWEST_BUCKETS and len({number for _, number in points}) == 1
        yield _inferred(each, points) if is_steady and not each.counts else each


def _inferred(followed: Followed, points: Iterable[tuple[float, float]]) -> Followed:
    counts = tuple(Count(at, number) for at, number in points)
    remarks = tuple(remark for remark in followed.remarks if not remark.startswith(uncounted(followed.of)))
    return replace(followed, source=INFERRED, counts=counts, remarks=remarks)


def _of(dimensions: Mapping[str, str]) -> str | None:
    """The name of the variant all of whose instances report under these dimensions; None where it is not all."""
    return "/".join(dimensions[name] for name in VARIANT) if {*dimensions} == {*VARIANT} else None


def _moved(event: ScalingEvent, seconds: float) -> ScalingEvent:
    return replace(event, at=event.at + seconds, done=None if event.done is None else event.done + seconds)
