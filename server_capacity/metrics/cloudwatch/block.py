"""One CloudWatch block of the endpoint configuration: what may stand in it, and what it becomes. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

from inference_benchmarker.verdict.server.known_metrics import INSTANCES, SAGEMAKER, VARIANT, nearest
from server_capacity.metrics.cloudwatch.buckets import SUB_MINUTE_PERIODS, is_period, is_statistic
from server_capacity.metrics.cloudwatch.instance_types import vcpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KEYS = ("stream", "Namespace", "Dimensions", "Period", "Lag", "Wait", "Metrics", "Statistics", "InstanceType")
PLAIN_STATISTICS = ("SampleCount", "Average", "Sum", "Minimum", "Maximum", "IQM")
MOST_DIMENSIONS = 30
EXPECTED = " Expected Average, Sum, Minimum, Maximum, SampleCount, p99, tm99, TM(2%:98%) or PR(:300)."
DEFAULT_PERIOD = 60
MOST_SECONDS = 1_000_000

Dimensions = tuple[tuple[str, str], ...]
Variant = tuple[str, str]
"""Names of a SageMaker endpoint and of one of its production variants."""


@dataclass(frozen=True, slots=True)
class CloudWatchBlock:
    """A checked block: ``metrics`` are names with their statistics; ``period`` and ``lag`` in seconds.

    ``wait``: seconds after the wave for which they are waited for at most; None: as lag and period suggest.
    ``instance_type``: what the endpoint runs on, for those who may not ask SageMaker.
    """

    stream: ClassVar[str] = "cloudwatch"
    is_live_only: ClassVar[bool] = False
    variables: ClassVar[tuple[str, ...]] = ()

    namespace: str
    dimensions: Dimensions
    period: int
    lag: float
    metrics: tuple[tuple[str, tuple[str, ...]], ...]
    instance_type: str | None = None
    wait: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that it asks for."""
        return tuple(name for name, _ in self.metrics)

    @property
    def bucket_s(self) -> float:
        """The period."""
        return self.period

    def waiting(self, wait_s: float) -> CloudWatchBlock:
        """The block, waited for that many seconds after the wave at most."""
        return replace(self, wait=wait_s)

    def of_endpoint(self, name: str) -> CloudWatchBlock:
        """The block with that endpoint in place of the one that it names."""
        named = ((key, name if key == "EndpointName" else value) for key, value in self.dimensions)
        return replace(self, dimensions=tuple(named))

    @property
    def variant(self) -> Variant | None:
        """Whose instances the block reads."""
        return variant_of(self.namespace, self.dimensions)


def variant_of(namespace: str, dimensions: Dimensions) -> Variant | None:
    """The variant whose instances, all or one of them, report a metric: not a GPU or a component of theirs."""
    given = dict(dimensions)
    if namespace not in (SAGEMAKER, INSTANCES) or {*given} - {"InstanceId"} != {*VARIANT}:
        return None
    endpoint, variant = (given[name] for name in VARIANT)
    return endpoint, variant


def read_block(block: dict[str, Any]) -> CloudWatchBlock:
    """The block that ``check_block`` found nothing wrong with."""
    return CloudWatchBlock(
        namespace=block["Namespace"],
        dimensions=tuple((each["Name"], each["Value"]) for each in block.get("Dimensions", [])),
        period=int(block.get("Period", DEFAULT_PERIOD)),
        lag=float(block.get("Lag", 0)),
        metrics=tuple(
            (name, tuple(dict.fromkeys(statistics)))
            for name, statistics in zip(block["Metrics"], block["Statistics"], strict=True)
        ),
        instance_type=block.get("InstanceType"),
        wait=None if block.get("Wait") is None else float(block["Wait"]),
    )


def check_block(block: Mapping[str, object], where: str) -> list[str]:
    """Everything wrong with a CloudWatch block, each sentence beginning with ``where`` and the key."""
    problems = [f'unknown key "{key}".{nearest(key, KEYS)}' for key in block if key not in KEYS]
    problems += _namespace(block)
    problems += _dimensions(block.get("Dimensions", []))
    problems += _period(block.get("Period", DEFAULT_PERIOD))
    problems += _seconds("Lag", block.get("Lag", 0))
    problems += _seconds("Wait", block.get("Wait", 0))
    problems += _metrics(block)
    problems += _instance_type(block)
    return [f"{where}: {problem}" for problem in problems]


def _namespace(block: Mapping[str, object]) -> Iterable[str]:
    namespace = block.get("Namespace")
    if "Namespace" not in block:
        yield '"Namespace" is missing: give one such as "AWS/SageMaker" or "/aws/sagemaker/Endpoints".'
    elif not isinstance(namespace, str) or not namespace.strip():
        yield f'"Namespace" must be a string such as "AWS/SageMaker", not {namespace!r}.'


def _dimensions(dimensions: object) -> Iterable[str]:
    shape = 'a list of {"Name": ..., "Value": ...}'
    if not isinstance(dimensions, list):
        yield f'"Dimensions" must be {shape}, not {dimensions!r}.'
        return
    if len(dimensions) > MOST_DIMENSIONS:
        yield f'"Dimensions" has {len(dimensions)} entries; CloudWatch takes {MOST_DIMENSIONS} at most.'
    for place, each in enumerate(dimensions, 1):
        if not isinstance(each, dict) or set(each) != {"Name", "Value"}:
            yield f'"Dimensions" entry {place} must have "Name" and "Value" and nothing else, not {each!r}.'
        elif not all(isinstance(text, str) and text.strip() for text in each.values()):
            yield f'"Dimensions" entry {place}: "Name" and "Value" must be strings, not {each!r}.'
    names = Counter(each["Name"] for each in dimensions if isinstance(each, dict) and isinstance(each.get("Name"), str))
    for name in (name for name, count in names.items() if count > 1):
        yield f'"Dimensions" has {name!r} {names[name]} times; a metric has each dimension once.'


def _period(period: object) -> Iterable[str]:
    if not _is_number(period) or period != int(period) or not is_period(int(period)):
        short = ", ".join(str(each) for each in SUB_MINUTE_PERIODS)
        yield f'"Period" must be {short} or a multiple of 60 up to 86400 seconds, not {period!r}.'


def _seconds(key: str, given: object) -> Iterable[str]:
    if not _is_number(given) or given < 0:
        yield f'"{key}" must be a number of seconds, 0 or more, not {given!r}.'


def _metrics(block: Mapping[str, object]) -> Iterable[str]:
    metrics, statistics = block.get("Metrics"), block.get("Statistics")
    for key, given, example in (
        ("Metrics", metrics, '["CPUUtilization"]'),
        ("Statistics", statistics, '[["Average", "Maximum"]]'),
    ):
        if key not in block:
            yield f'"{key}" is missing: give a list such as {example}.'
        elif not isinstance(given, list) or not given:
            yield f'"{key}" must be a list such as {example}, not {given!r}.'
    if isinstance(metrics, list):
        yield from _names(metrics)
    if isinstance(statistics, list):
        for place, each in enumerate(statistics, 1):
            yield from _statistics(each, place)
    if isinstance(metrics, list) and isinstance(statistics, list) and len(metrics) != len(statistics):
        yield (
            f'"Metrics" has {len(metrics)} entries and "Statistics" {len(statistics)}; they are paired by position,'
            " a list of statistics for each metric."
        )


def _names(metrics: list[object]) -> Iterable[str]:
    for place, name in enumerate(metrics, 1):
        if not isinstance(name, str) or not name.strip():
            yield f'"Metrics" entry {place} must be the name of a metric, not {name!r}.'
    counts = Counter(name for name in metrics if isinstance(name, str))
    for name in (name for name, count in counts.items() if count > 1):
        yield f'"Metrics" has {name!r} {counts[name]} times; give it once with all its statistics.'


def _statistics(given: object, place: int) -> Iterable[str]:
    if not isinstance(given, list) or not given:
        yield f'"Statistics" entry {place} must be a list such as ["Average", "p99"], not {given!r}.'
        return
    for statistic in given:
        if not isinstance(statistic, str) or not is_statistic(statistic):
            close = nearest(statistic, PLAIN_STATISTICS) if isinstance(statistic, str) else ""
            yield f'"Statistics" entry {place}: CloudWatch has no statistic {statistic!r}.{close or EXPECTED}'


def _instance_type(block: Mapping[str, object]) -> Iterable[str]:
    if "InstanceType" not in block:
        return
    given, namespace = block["InstanceType"], block.get("Namespace")
    if not isinstance(given, str) or vcpus(given) is None:
        yield f'"InstanceType" must be one of SageMaker\'s types such as "ml.m5.xlarge", not {given!r}.'
    if namespace not in (SAGEMAKER, INSTANCES):
        yield f'"InstanceType" belongs to blocks of "{INSTANCES}" and "{SAGEMAKER}", not of {namespace!r}.'


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and -MOST_SECONDS <= value <= MOST_SECONDS
