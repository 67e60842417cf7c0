"""The destinations of figures, as ``--export`` says them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.url import url_problem
from inference_benchmarker.words.redact import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
PORT = 9464  # where OpenTelemetry's own exporters for Prometheus listen
COLLECTOR = "http://127.0.0.1:4318"
METRICS_PATH = "/v1/metrics"
_OF_METRICS, _OF_ALL = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
_MOST_PORT = 65_535
_PAGE = re.compile(r"prometheus(?::(?:(?P<host>\[[0-9a-fA-F:.]+\]|[\w.-]+):)?(?P<port>[0-9]{1,5}))?")
_EXPECTED = "prometheus, prometheus:PORT, prometheus:HOST:PORT, otlp or otlp=URL"


@dataclass(frozen=True, slots=True)
class PageAt:
    """A page that Prometheus reads; on loopback, where no other host is named. Port 0: any free one."""

    host: str = LOOPBACK
    port: int = PORT


@dataclass(frozen=True, slots=True)
class Collector:
    """A collector that takes OTLP over HTTP; None: that of the environment, or this host's."""

    url: str | None = None


Destination = PageAt | Collector


def parse_destination(flag: str, text: str) -> Destination:
    """The destination that a flag's value names; BenchmarkError for one that names none."""
    kind, given, url = text.strip().partition("=")
    if kind == "otlp":
        return Collector(_collector(flag, url) if given else None)
    match = _PAGE.fullmatch(text.strip())
    if match is None or int(match["port"] or PORT) > _MOST_PORT:
        raise BenchmarkError(f"{flag} must be {_EXPECTED}, not {quoted(text)}.")
    return PageAt((match["host"] or LOOPBACK).strip("[]"), int(match["port"] or PORT))


def _collector(flag: str, url: str) -> str:
    if problem := url_problem(f"The URL of {flag} otlp", url):
        raise BenchmarkError(problem)
    return _with_path(url)


def _with_path(url: str) -> str:
    """A collector's address with the path of its metrics, where none is given."""
    host = url.partition("://")[2]
    return url if host.partition("/")[2] or "?" in host else url.rstrip("/") + METRICS_PATH


def collector_url(collector: Collector, environment: Mapping[str, str]) -> str:
    """The address of a collector: as given, else as OpenTelemetry's variables say, else this host's."""
    if collector.url is not None:
        return collector.url
    base = environment.get(_OF_ALL) or COLLECTOR
    return environment.get(_OF_METRICS) or base.rstrip("/") + METRICS_PATH


def collector_problem(environment: Mapping[str, str]) -> str:
    """The sentence on the address that OpenTelemetry's variables say, if it is none."""
    name = _OF_METRICS if environment.get(_OF_METRICS) else _OF_ALL
    url = environment.get(name)
    return url_problem(name, url) if url else ""
