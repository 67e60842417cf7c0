"""The flags of `benchmark metrics`, and the window of the past that they describe."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from inference_benchmarker.cli.core.flags import Flag, Table
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.words.redact import excerpt, quoted

METRICS_DESCRIPTION = """\
Collects the server's metrics for a past window, without a wave.

  benchmark metrics --endpoint-config FILE --window -15m..now
  benchmark metrics --endpoint-config FILE \\
      --window 2026-11-22T10:00..2026-11-22T10:15
"""
METRICS_EPILOG = """\
exit codes: 0 every metric has a value, or there was nothing to count; 1 a metric has no value (the reason is given);
2 bad input; 130 interrupted
"""
METRICS_FLAGS: Table = {
    "what to read": [
        Flag("--endpoint-config", "FILE", "metrics to collect: a JSON list of CloudWatch and Prometheus blocks"),
        Flag(
            "--window",
            "FROM..TO",
            "two instants: ISO 8601 (UTC unless it has a zone), seconds since 1970, a time before now (-15m), or now",
        ),
    ],
    "output": [
        Flag("--json", None, "print the window and the metrics as in summary.json"),
        Flag("--quiet", None, "print neither progress nor warnings"),
    ],
}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_BEFORE_NOW = re.compile(r"-(\d{1,9}(?:\.\d+)?)([smhd]?)")
_EPOCH = re.compile(r"\d{1,16}(?:\.\d+)?")
_MOST_SECONDS = 1e11
"""Of the year 5138: larger numbers count milliseconds."""


class PastWindow(NamedTuple):
    """Its start and end, in seconds since 1970."""

    start: float
    end: float

    def __str__(self) -> str:
        start, end = (datetime.fromtimestamp(at, UTC) for at in self)
        length = f" ({timedelta(seconds=round(self.end - self.start))})" if end > start else ""
        return f"{start:%Y-%m-%d %H:%M:%S} to {end:%Y-%m-%d %H:%M:%S} UTC{length}"


def read_options(options: dict[str, Any], problems: list[str], now: float) -> PastWindow:
    """The window, or one error with everything that is wrong with the flags."""
    if options["endpoint_config"] is None:
        problems.append("No metrics: give --endpoint-config FILE.")
    window = PastWindow(now, now)
    if options["window"] is None:
        problems.append("No window: give --window FROM..TO, such as -15m..now.")
    else:
        try:
            window = parse_window(options["window"], now)
        except BenchmarkError as error:
            problems.append(str(error))
    refuse(problems)
    return window


def parse_window(text: str, now: float) -> PastWindow:
    """Two instants with two dots between them; ``now`` in seconds since 1970."""
    first, dots, second = text.strip().partition("..")
    if not (dots and first and second) or ".." in second:
        raise BenchmarkError(f"--window must be FROM..TO, such as -15m..now, not {quoted(text)}.")
    window = PastWindow(_instant(first, now), _instant(second, now))
    if min(window) < 0:
        raise BenchmarkError(f"--window {excerpt(text, 100)}: it begins before 1970.")
    if window.end <= window.start:
        raise BenchmarkError(f"--window {text}: its end is not after its start ({window}).")
    if window.end > now + 1:
        raise BenchmarkError(f"--window {text}: it ends in the future ({window}).", "The latest end is now.")
    return window


def _instant(text: str, now: float) -> float:
    text = text.strip()
    if text == "now":
        return now
    if before := _BEFORE_NOW.fullmatch(text):
        return now - float(before[1]) * _UNITS[before[2]]
    if _EPOCH.fullmatch(text):
        if float(text) >= _MOST_SECONDS:
            raise BenchmarkError(f"--window: {text} is too large for seconds since 1970.", "Are these milliseconds?")
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise BenchmarkError(
            f"--window: {quoted(text)} is not an instant.",
            "Give 2026-11-22T10:00 (UTC), 2026-11-22T10:00+01:00, seconds since 1970, -15m, or now.",
        ) from None
