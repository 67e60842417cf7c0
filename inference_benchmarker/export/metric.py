"""A metric as it is handed on, whoever takes it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from inference_benchmarker.export.buckets import Buckets

Kind = Literal["counter", "gauge", "histogram"]
PREFIX = "benchmark"
SECONDS, REQUESTS, PER_SECOND, TOKENS, NO_UNIT = "s", "{request}", "{request}/s", "{token}", ""
"""Units as OpenTelemetry writes them."""

_SUFFIXES = {SECONDS: "_seconds", PER_SECOND: "_per_second"}


@dataclass(frozen=True, slots=True)
class Point:
    """A value and whose it is."""

    labels: dict[str, str]
    value: float | Buckets


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its points. ``name`` has dots, as OpenTelemetry's names have."""

    name: str
    kind: Kind
    unit: str
    about: str
    points: tuple[Point, ...]

    @property
    def otlp_name(self) -> str:
        """Its name for OpenTelemetry."""
        return f"{PREFIX}.{self.name}"

    @property
    def prometheus_name(self) -> str:
        """Its name for Prometheus, without the ending of a counter; a collector makes the same of the other one."""
        return f"{PREFIX}_{self.name.replace('.', '_')}{_SUFFIXES.get(self.unit, '')}"
