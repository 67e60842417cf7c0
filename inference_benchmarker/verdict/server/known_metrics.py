"""The metrics of inference platforms as AWS documents them: where each lives, its unit, its statistics, its kind.

Only for reading, for warnings and for hints: a metric that does not stand here is asked for like any other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Kind = Literal["count", "time", "gauge"]
"""How a metric is read: requests and errors counted, times of requests, or a state of the server."""

SAGEMAKER, INSTANCES = "AWS/SageMaker", "/aws/sagemaker/Endpoints"
COMPONENTS = "/aws/sagemaker/InferenceComponents"
LAMBDA, BALANCER, ECS, BEDROCK = "AWS/Lambda", "AWS/ApplicationELB", "AWS/ECS", "AWS/Bedrock"
TASKS = "ECS/ContainerInsights"

VARIANT = ("EndpointName", "VariantName")
COMPONENT = ("InferenceComponentName",)
_ENDPOINT = ("EndpointName",)
_FUNCTION, _MODEL = ("FunctionName",), ("ModelId",)
_LOAD_BALANCER, _TARGETS = ("LoadBalancer",), ("TargetGroup", "LoadBalancer")
_SERVICE = ("ClusterName", "ServiceName")

_ALL = ("Average", "Sum", "Minimum", "Maximum", "SampleCount", "percentiles")
_NO_PERCENTILES = _ALL[:-1]
_EXTREMES = ("Minimum", "Maximum")
_SUM, _SUM_OR_SHARE = ("Sum",), ("Average", "Sum")

_GAUGE = re.compile(
    r"Utilization|Reservation|^Concurrent|^ModelConcurrent|Loaded|Backlog|(?:Active|InUse)\w*Count|HealthyHost"
    r"|RunningTask|PendingTask|DesiredTask|Waiting|Running|QueueLength|QueueDepth|Capacity$"
)
_TIME = re.compile(r"Latency|ResponseTime|Duration|TimeToFirstToken|ProcessingTime|ModelSetupTime|TimeIn")


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """One metric as documented. ``dimensions``: the sets it is published with; ``sparse``: only when it happens."""

    namespace: str
    unit: str
    kind: Kind
    statistics: tuple[str, ...]
    dimensions: tuple[tuple[str, ...], ...]
    only: str = ""
    sparse: bool = False


def _many(names: str, known: KnownMetric) -> list[tuple[str, KnownMetric]]:
    return [(name, known) for name in names.split()]


_MICROSECONDS = KnownMetric(SAGEMAKER, "Microseconds", "time", _ALL, (VARIANT, COMPONENT))
_PERCENT = KnownMetric(INSTANCES, "Percent", "gauge", _ALL, (VARIANT,))
_MULTI_MODEL = "only multi-model endpoints publish it"
_COMPONENTS_ONLY = "only endpoints with inference components publish it"
_ASYNC = "only asynchronous endpoints publish it"
_STREAMS = "only endpoints that answer in streams publish it"
_GPU = "only instances with a GPU publish it"

_ROWS = [
    *_many("Invocations", KnownMetric(SAGEMAKER, "Count", "count", (*_SUM, "SampleCount"), (VARIANT, COMPONENT))),
    *_many("InvocationsPerInstance", KnownMetric(SAGEMAKER, "Count", "count", _SUM, (VARIANT,))),
    *_many("InvocationsPerCopy", KnownMetric(SAGEMAKER, "Count", "count", _SUM, (COMPONENT,), _COMPONENTS_ONLY)),
    *_many(
        "Invocation4XXErrors Invocation5XXErrors InvocationModelErrors",
        KnownMetric(SAGEMAKER, "Count", "count", _SUM_OR_SHARE, (VARIANT, COMPONENT)),
    ),
    *_many("ModelLatency", _MICROSECONDS),
    *_many("OverheadLatency", KnownMetric(SAGEMAKER, "Microseconds", "time", _NO_PERCENTILES, (VARIANT, COMPONENT))),
    *_many(
        "ModelSetupTime",
        KnownMetric(
            SAGEMAKER, "Microseconds", "time", _ALL, (VARIANT,), "only serverless endpoints publish it", sparse=True
        ),
    ),
    *_many("ConcurrentRequestsPerModel", KnownMetric(SAGEMAKER, "Count", "gauge", _EXTREMES, (VARIANT,))),
    *_many(
        "ConcurrentRequestsPerCopy", KnownMetric(SAGEMAKER, "Count", "gauge", _EXTREMES, (COMPONENT,), _COMPONENTS_ONLY)
    ),
    *_many(
        "NoCapacityInvocationFailures",
        KnownMetric(SAGEMAKER, "Count", "count", _SUM, (COMPONENT,), _COMPONENTS_ONLY, sparse=True),
    ),
    *_many(
        "FirstChunkLatency FirstChunkModelLatency FirstChunkOverheadLatency",
        KnownMetric(SAGEMAKER, "Microseconds", "time", _ALL, (VARIANT, COMPONENT), _STREAMS),
    ),
    *_many("MidStreamErrors", KnownMetric(SAGEMAKER, "Count", "count", _SUM_OR_SHARE, (VARIANT, COMPONENT), _STREAMS)),
    *_many(
        "ModelLoadingWaitTime ModelDownloadingTime ModelLoadingTime ModelUnloadingTime",
        KnownMetric(SAGEMAKER, "Microseconds", "count", _NO_PERCENTILES, (VARIANT,), _MULTI_MODEL, sparse=True),
    ),
    *_many(
        "ModelCacheHit",
        KnownMetric(SAGEMAKER, "None", "count", ("Average", "Sum", "SampleCount"), (VARIANT,), _MULTI_MODEL),
    ),
    *_many(
        "ApproximateBacklogSize ApproximateBacklogSizePerInstance HasBacklogWithoutCapacity",
        KnownMetric(SAGEMAKER, "Count", "gauge", ("Average", "Minimum", "Maximum"), (_ENDPOINT,), _ASYNC),
    ),
    *_many(
        "ApproximateAgeOfOldestRequest",
        KnownMetric(SAGEMAKER, "Seconds", "gauge", ("Average", "Minimum", "Maximum"), (_ENDPOINT,), _ASYNC),
    ),
    *_many(
        "InvocationsProcessed InvocationFailures ExpiredRequests RequestDownloadFailures ResponseUploadFailures",
        KnownMetric(SAGEMAKER, "Count", "count", _SUM, (VARIANT,), _ASYNC, sparse=True),
    ),
    *_many(
        "TimeInBacklog TotalProcessingTime",
        KnownMetric(SAGEMAKER, "Milliseconds", "time", _NO_PERCENTILES, (VARIANT,), _ASYNC),
    ),
    *_many(
        "RequestDownloadLatency ResponseUploadLatency",
        KnownMetric(SAGEMAKER, "Microseconds", "time", _NO_PERCENTILES, (VARIANT,), _ASYNC),
    ),
    *_many("CPUUtilization MemoryUtilization DiskUtilization", _PERCENT),
    *_many(
        "GPUUtilization GPUMemoryUtilization",
        KnownMetric(INSTANCES, "Percent", "gauge", _ALL, (VARIANT,), _GPU),
    ),
    *_many("LoadedModelCount", KnownMetric(INSTANCES, "Count", "gauge", _NO_PERCENTILES, (VARIANT,), _MULTI_MODEL)),
    *_many(
        "CPUUtilizationNormalized GPUUtilizationNormalized GPUMemoryUtilizationNormalized"
        " CPUReservation GPUReservation MemoryReservation",
        KnownMetric(INSTANCES, "Percent", "gauge", _ALL, (VARIANT,), _COMPONENTS_ONLY),
    ),
    *_many(
        "CPUUtilizationNormalized GPUUtilizationNormalized GPUMemoryUtilizationNormalized MemoryUtilizationNormalized",
        KnownMetric(COMPONENTS, "Percent", "gauge", _ALL, (COMPONENT,)),
    ),
    *_many("Invocations Errors Throttles", KnownMetric(LAMBDA, "Count", "count", _SUM, (_FUNCTION,))),
    *_many("Duration", KnownMetric(LAMBDA, "Milliseconds", "time", _ALL, (_FUNCTION,))),
    *_many("ConcurrentExecutions", KnownMetric(LAMBDA, "Count", "gauge", ("Maximum", "Average"), (_FUNCTION,))),
    *_many("RequestCount", KnownMetric(BALANCER, "Count", "count", _SUM, (_LOAD_BALANCER, _TARGETS))),
    *_many("RequestCountPerTarget", KnownMetric(BALANCER, "Count", "count", _SUM, (_TARGETS, ("TargetGroup",)))),
    *_many("TargetResponseTime", KnownMetric(BALANCER, "Seconds", "time", _ALL, (_LOAD_BALANCER, _TARGETS))),
    *_many(
        "HTTPCode_Target_2XX_Count HTTPCode_Target_3XX_Count HTTPCode_Target_4XX_Count HTTPCode_Target_5XX_Count"
        " TargetConnectionErrorCount",
        KnownMetric(BALANCER, "Count", "count", _SUM, (_LOAD_BALANCER, _TARGETS), sparse=True),
    ),
    *_many(
        "HTTPCode_ELB_3XX_Count HTTPCode_ELB_4XX_Count HTTPCode_ELB_5XX_Count HTTPCode_ELB_500_Count"
        " HTTPCode_ELB_502_Count HTTPCode_ELB_503_Count HTTPCode_ELB_504_Count"
        " RejectedConnectionCount NewConnectionCount",
        KnownMetric(BALANCER, "Count", "count", _SUM, (_LOAD_BALANCER,), sparse=True),
    ),
    *_many(
        "HealthyHostCount UnHealthyHostCount", KnownMetric(BALANCER, "Count", "gauge", _NO_PERCENTILES, (_TARGETS,))
    ),
    *_many(
        "CPUUtilization MemoryUtilization", KnownMetric(ECS, "Percent", "gauge", _ALL, (_SERVICE, ("ClusterName",)))
    ),
    *_many("RunningTaskCount", KnownMetric(TASKS, "Count", "gauge", _NO_PERCENTILES, (_SERVICE,))),
    *_many("Invocations", KnownMetric(BEDROCK, "Count", "count", ("Sum", "SampleCount"), (_MODEL,))),
    *_many("InvocationLatency", KnownMetric(BEDROCK, "Milliseconds", "time", _ALL, (_MODEL,))),
    *_many("TimeToFirstToken", KnownMetric(BEDROCK, "Milliseconds", "time", _ALL, (_MODEL,), _STREAMS)),
    *_many("InputTokenCount OutputTokenCount", KnownMetric(BEDROCK, "Count", "count", _ALL, (_MODEL,))),
    *_many(
        "InvocationClientErrors InvocationServerErrors InvocationThrottles",
        KnownMetric(BEDROCK, "Count", "count", ("Sum", "SampleCount"), (_MODEL,), sparse=True),
    ),
]
KNOWN: dict[tuple[str, str], KnownMetric] = {(known.namespace, name): known for name, known in _ROWS}
NAMESPACES = tuple(dict.fromkeys(namespace for namespace, _ in KNOWN))
_LOG_GROUPS = {
    "InferenceComponentName": f"{COMPONENTS}/",
    "EndpointName": f"{INSTANCES}/",
    "FunctionName": "/aws/lambda/",
}
"""What the log group of an endpoint is called, by the dimension that names it."""

_WHOLE = (SAGEMAKER, INSTANCES, COMPONENTS)
"""The namespaces whose metrics stand above nearly all; of others only the usual ones do."""

_ACCOUNT_WIDE = (LAMBDA, BEDROCK)
"""Namespaces that have each metric without dimensions, too."""

_SIMILAR, _SLIP = 0.6, 0.9
"""How alike two words are of which one may have been meant, and of which one surely was."""


def kind_of(namespace: str, name: str) -> Kind:
    """The way to read the metric: as documented, else by what its name says."""
    if known := KNOWN.get((namespace, name)):
        return known.kind
    if _GAUGE.search(name):
        return "gauge"
    return "time" if _TIME.search(name) else "count"


def log_groups(dimensions: Mapping[str, str]) -> list[str]:
    """The log groups of CloudWatch in which what has a metric of these dimensions writes."""
    return [prefix + dimensions[name] for name, prefix in _LOG_GROUPS.items() if name in dimensions]


def unit_of(namespace: str, name: str) -> str | None:
    """The documented unit."""
    known = KNOWN.get((namespace, name))
    return known.unit if known else None


def warning(namespace: str, name: str, dimensions: Collection[str], statistics: Collection[str]) -> str:
    """A warning of what is odd about asking for this metric, whatever the endpoint; empty where nothing is.

    It has to be right: what is not known may be somebody's own, and only a slip of the pen makes it odd.
    """
    known = KNOWN.get((namespace, name))
    if known is not None:
        return _dimensions_hint(name, known, dimensions) or unpublished(namespace, name, statistics)
    if namespace not in NAMESPACES:
        return _elsewhere(namespace, name) if nearest(namespace, NAMESPACES, _SLIP) else ""
    odd = namespace in _WHOLE or _homes(name) or nearest(name, _names(namespace), _SLIP)
    return _elsewhere(namespace, name) if odd else ""


def hint(namespace: str, name: str, dimensions: Collection[str], statistics: Collection[str]) -> str:
    """Why CloudWatch may have nothing under this name, and what to change; it calls no wrong name an error."""
    known = KNOWN.get((namespace, name))
    if known is None:
        return _elsewhere(namespace, name)
    if wrong := _dimensions_hint(name, known, dimensions):
        return wrong
    if known.sparse:
        also = f" ({known.only})" if known.only else ""
        return f"CloudWatch creates it only when it first happens{also}"
    if absent := unpublished(namespace, name, statistics):
        return absent
    if known.only:
        return known.only
    return f"do these values of {listed(dimensions)} exist in this region, and did requests reach them?"


def unpublished(namespace: str, name: str, statistics: Collection[str]) -> str:
    """Which of the statistics AWS does not document for the metric, and which it does; empty where all are."""
    known = KNOWN.get((namespace, name))
    if known is None:
        return ""
    absent = [statistic for statistic in statistics if _family(statistic) not in known.statistics]
    if not absent:
        return ""
    return f"{namespace} documents {listed(known.statistics)} for {name}, not {listed(absent)}"


def nearest(word: str, words: Collection[str], alike: float = _SIMILAR) -> str:
    """The question "Did you mean X?", after a blank, where a word comes close; else nothing."""
    by_lower = {candidate.lower(): candidate for candidate in words}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=alike)
    return f" Did you mean {by_lower[found[0]]!r}?" if found else ""


def listed(words: Collection[str], last: str = "and") -> str:
    """The words as a sentence has them: a, b and c."""
    *most, final = words or ("nothing",)
    return f"{', '.join(most)} {last} {final}" if most else final


def _elsewhere(namespace: str, name: str) -> str:
    homes = _homes(name)
    if namespace not in NAMESPACES and (close := nearest(namespace, homes or NAMESPACES)):
        return f"CloudWatch has no namespace {namespace!r} that this tool knows.{close}"
    if homes:
        return f"{name} lives in {listed(homes, 'or')}, not in {namespace}"
    return f"{namespace} has no metric {name!r} that this tool knows.{nearest(name, _names(namespace))}"


def _homes(name: str) -> list[str]:
    return [home for home, known_name in KNOWN if known_name == name]


def _names(namespace: str) -> list[str]:
    return [known_name for home, known_name in KNOWN if home == namespace]


def _dimensions_hint(name: str, known: KnownMetric, dimensions: Collection[str]) -> str:
    given = set(dimensions)
    if not given and known.namespace in _ACCOUNT_WIDE:
        return ""
    if any(set(expected) <= given for expected in known.dimensions):
        return ""
    expected = min(known.dimensions, key=lambda names: len(set(names) ^ given))
    missing = [dimension for dimension in expected if dimension not in given]
    example = " (often AllTraffic)" if "VariantName" in missing else ""
    return f"{name} is published with {listed(expected)}: add the dimension {listed(missing)}{example}"


def _family(statistic: str) -> str:
    return statistic if statistic in _ALL else "percentiles"
