"""The use of the server's hardware: each resource as a share of its whole. Pure.

CloudWatch adds up: a full instance of SageMaker shows 100% for each of its cores, and for each of its GPUs. Others give
a share already, or what is used beside what is free or there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from inference_benchmarker.verdict.server.known_metrics import COMPONENTS, ECS, INSTANCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import Hardware, ServerMetric

IDLE, PLANNED, TIGHT, NEAR, FULL = 0.3, 0.6, 0.7, 0.8, 0.9
"""Shares of a resource: below the first it idles; from the second to the third is where to run it; then it fills up."""

Resource = Literal["CPU", "GPU", "memory", "GPU memory", "disk", "KV cache"]
CPU: Final = "CPU"
GPU: Final = "GPU"
MEMORY: Final = "memory"
GPU_MEMORY: Final = "GPU memory"
DISK: Final = "disk"
KV_CACHE: Final = "KV cache"

_NORMALIZED: dict[str, Resource] = {"CPU": CPU, "GPU": GPU, "GPUMemory": GPU_MEMORY, "Memory": MEMORY}
# CloudWatch: (namespace, metric) -> resource, and what of the hardware 100% stands for.
_CLOUDWATCH: dict[tuple[str, str], tuple[Resource, str | None]] = {
    (INSTANCES, "CPUUtilization"): (CPU, "vcpus"),
    (INSTANCES, "GPUUtilization"): (GPU, "gpus"),
    (INSTANCES, "GPUMemoryUtilization"): (GPU_MEMORY, "gpus"),
    (INSTANCES, "MemoryUtilization"): (MEMORY, None),
    (INSTANCES, "DiskUtilization"): (DISK, None),
    (ECS, "CPUUtilization"): (CPU, None),
    (ECS, "MemoryUtilization"): (MEMORY, None),
    **{
        (namespace, f"{name}UtilizationNormalized"): (resource, None)
        for namespace in (INSTANCES, COMPONENTS)
        for name, resource in _NORMALIZED.items()
    },
}
# Prometheus' presets: item -> resource, by unit; what is used, beside what is free or there.
_PRESET: dict[str, Resource] = {
    "gpu_use": GPU,
    "gpu_memory_use": GPU_MEMORY,
    "kv_cache_use": KV_CACHE,
    "cpu_use": CPU,
    "memory_use": MEMORY,
}
_WHOLE = {"Percent": 100.0, "Ratio": 1.0}
_USED, _TOTAL, _FREE = "gpu_memory_used", "gpu_memory_total", "gpu_memory_free"


@dataclass(frozen=True, slots=True)
class Use:
    """A resource over the wave: ``average`` and ``maximum`` in the metric's own unit, ``whole`` when it is full.

    ``whole`` None: how much there is of it is not known. ``of``: whose it is, where there are several. ``length_s``:
    of the time that the values cover. ``near``: idle time may be in them, as the server's buckets have it.
    """

    resource: Resource
    average: float | None
    maximum: float | None
    whole: float | None
    percent: bool = True
    of: str = ""
    hardware: Hardware | None = None
    length_s: float | None = None
    near: bool = False

    @property
    def share(self) -> float | None:
        """The average as a share of the whole; None where either is not known."""
        return self.average / self.whole if self.average is not None and self.whole else None

    @property
    def peak(self) -> float | None:
        """The maximum as a share of the whole."""
        return self.maximum / self.whole if self.maximum is not None and self.whole else None


def used_hardware(metrics: Sequence[ServerMetric]) -> list[Use]:
    """Every resource that the metrics are on, in their order."""
    return [*_by_cloudwatch(metrics), *_by_presets(metrics)]


def resource_of(metric: ServerMetric) -> Resource | None:
    """The resource whose use a metric shows; None where it shows something else."""
    if _is_known(metric):
        return _CLOUDWATCH[metric.namespace or "", metric.name][0]
    return _PRESET.get(metric.name) if metric.stream == "prometheus" and metric.unit in _WHOLE else None


def whole_of(metric: ServerMetric) -> float | None:
    """The value that a metric has when its resource is used up; None where that is not known, or it shows no use."""
    if _is_known(metric):
        counted = _CLOUDWATCH[metric.namespace or "", metric.name][1]
        number = 1 if counted is None else getattr(metric.hardware, counted, None)
        return 100.0 * number if number else None
    return None if resource_of(metric) is None else _WHOLE[metric.unit or ""]


def _by_cloudwatch(metrics: Sequence[ServerMetric]) -> Iterator[Use]:
    known = [(metric, _CLOUDWATCH[metric.namespace or "", metric.name]) for metric in metrics if _is_known(metric)]
    several = len({tuple(sorted(metric.dimensions.items())) for metric, _ in known}) > 1
    for metric, (resource, counted) in known:
        if _has_values(metric):
            yield Use(
                resource,
                metric.statistics.get("Average"),
                metric.statistics.get("Maximum"),
                whole_of(metric),
                of=_called(metric) if several else "",
                hardware=metric.hardware if counted else None,
                length_s=None if metric.start is None or metric.end is None else metric.end - metric.start,
                near="about" in metric.bounds.values(),
            )


def _is_known(metric: ServerMetric) -> bool:
    return (metric.namespace or "", metric.name) in _CLOUDWATCH


def _has_values(metric: ServerMetric) -> bool:
    return metric.statistics.get("Average") is not None or metric.statistics.get("Maximum") is not None


def _called(metric: ServerMetric) -> str:
    """The shortest name of whose metric it is: the values of its dimensions, the usual variant left out."""
    return ", ".join(value for value in metric.dimensions.values() if value != "AllTraffic")


def _by_presets(metrics: Sequence[ServerMetric]) -> Iterator[Use]:
    """Several GPUs have a row each: their mean is the share of all, the largest maximum that of the busiest.

    Several presets may report the same resource, each in its own unit: they are kept apart.
    """
    by_preset: dict[str | None, list[ServerMetric]] = {}
    for metric in metrics:
        if metric.stream == "prometheus":
            by_preset.setdefault(metric.namespace, []).append(metric)
    found = [(preset, use) for preset, rows in by_preset.items() for use in _of_preset(rows)]
    counts = Counter(use.resource for _, use in found)
    order = list(dict.fromkeys(use.resource for _, use in found))
    for preset, use in sorted(found, key=lambda pair: order.index(pair[1].resource)):
        several = [preset or ""] if counts[use.resource] > 1 else []
        yield replace(use, of=", ".join(filter(None, (*several, use.of))))


def _of_preset(metrics: Sequence[ServerMetric]) -> Iterator[Use]:
    for name, resource in _PRESET.items():
        rows = [metric for metric in metrics if metric.name == name and metric.unit in _WHOLE and _has_values(metric)]
        if rows:
            whole = _WHOLE[rows[0].unit or ""]
            average, maximum = _mean(rows, "Average"), _largest(rows)
            yield Use(resource, average, maximum, whole, percent=whole == 100, of=_gpus(rows, resource))
    used, total, free = (_mean_of(metrics, name) for name in (_USED, _TOTAL, _FREE))
    whole_memory = total if total is not None else None if used is None or free is None else used + free
    if used is not None and whole_memory:
        yield Use(GPU_MEMORY, 100 * used / whole_memory, None, 100.0)


def _gpus(rows: Sequence[ServerMetric], resource: Resource) -> str:
    return f"{len(rows)} GPUs" if resource in (GPU, GPU_MEMORY) and len(rows) > 1 else ""


def _mean_of(metrics: Sequence[ServerMetric], name: str) -> float | None:
    return _mean([metric for metric in metrics if metric.name == name], "Average")


def _mean(rows: Sequence[ServerMetric], statistic: str) -> float | None:
    values = [value for row in rows if (value := row.statistics.get(statistic)) is not None]
    return sum(values) / len(values) if values else None


def _largest(rows: Sequence[ServerMetric]) -> float | None:
    return max((value for row in rows if (value := row.statistics.get("Maximum")) is not None), default=None)
