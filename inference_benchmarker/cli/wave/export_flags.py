"""The flags that hand the figures of a running wave on, and where they go."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from inference_benchmarker.cli.core.flags import Flag, parse_number, read_flags
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.export.destination import Collector, PageAt, collector_problem, parse_destination
from inference_benchmarker.words.redact import quoted

WAIT_S = 20.0  # longer than Prometheus usually takes between two readings
MOST_WAIT_S = 3600.0
INTERVAL_VARIABLE = "OTEL_METRIC_EXPORT_INTERVAL"
_LEAST_INTERVAL_MS, _MOST_INTERVAL_MS = 100, 3_600_000


def _wait(flag: str, text: str) -> float:
    wait_s = parse_number(flag, text)
    if not 0 <= wait_s <= MOST_WAIT_S:
        raise BenchmarkError(f"{flag} must be from 0 to {MOST_WAIT_S:,.0f} seconds, not {wait_s:g}.")
    return wait_s


EXPORT_FLAGS = [
    Flag(
        "--export",
        "WHERE",
        "export live metrics during the wave (repeatable): prometheus[:[HOST:]PORT] (a page for Prometheus to scrape, "
        "by default on loopback, port 9464) or otlp[=URL] (an OpenTelemetry collector)",
        parse_destination,
        repeatable=True,
    ),
    Flag(
        "--export-wait",
        "S",
        "after the report, keep the page up until Prometheus has scraped the verdict, at most S seconds",
        _wait,
        default=WAIT_S,
    ),
]


@dataclass(frozen=True, slots=True)
class Exports:
    """The places that figures go to. ``interval_s``: between two sendings to a collector, where it is given."""

    pages: tuple[PageAt, ...] = ()
    collectors: tuple[Collector, ...] = ()
    wait_s: float = WAIT_S
    interval_s: float | None = None

    @property
    def asked(self) -> bool:
        """Tells whether figures go anywhere."""
        return bool(self.pages or self.collectors)


def exports_of(options: dict[str, Any], problems: list[str]) -> Exports:
    """The destinations that the flags name; what is wrong with them becomes problems."""
    values = read_flags(EXPORT_FLAGS, options, problems).values
    given = values["export"] or ()
    pages = tuple(dict.fromkeys(each for each in given if isinstance(each, PageAt)))
    collectors = tuple(dict.fromkeys(each for each in given if isinstance(each, Collector)))
    if Collector() in collectors and (problem := collector_problem(os.environ)):
        problems.append(problem)
    wait_s = WAIT_S if values["export_wait"] is None else values["export_wait"]
    return Exports(pages, collectors, wait_s, _interval_s(problems) if collectors else None)


def _interval_s(problems: list[str]) -> float | None:
    """OpenTelemetry's own variable, in ms."""
    text = os.environ.get(INTERVAL_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or not _LEAST_INTERVAL_MS <= int(text[:9]) <= _MOST_INTERVAL_MS:
        problems.append(f"{INTERVAL_VARIABLE} must be from 100 to 3,600,000 milliseconds, not {quoted(text)}.")
        return None
    return int(text) / 1000
