"""Checks aiperf's stored result: it is the one of its wave, its counts add up, and its rates follow from them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_RISING = ("min", "p50", "p90", "p95", "p99", "max")
_DERIVED = ("fired", "success_rate", "server_rps", "exit_code")
_SIZES = (
    *("start_unix_s", "duration_s", "requests", "ok", "unanswered", "tokens_in", "tokens_out", "tokens_out_per_s"),
    "success_threshold",
)
_ROUNDING = 1e-6


def require_as_stored(folder: Path) -> None:
    """Check the result in that folder against the digest that its wave has of it; BenchmarkError where it differs."""
    from inference_benchmarker.wave.files.identity import require_unchanged
    from inference_benchmarker.wave.reader import read_digests

    run_dir = RunDir(folder.parent)
    if not is_file(run_dir.summary):
        return
    digests = read_digests(run_dir.summary)
    try:
        require_unchanged(run_dir.aiperf_summary, digests, run_dir.path)
    except UNREADABLE as error:
        raise foreign(run_dir.summary, error) from None


def check_result(result: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Raise ValueError with the first number of ``stored`` that aiperf's result cannot have.

    ``result``: what it says, with all that follows from its counts.
    """
    _require_sizes(result)
    ok, requests, counted = result["ok"], result["requests"], sum(result["errors"].values())
    if ok + counted != requests:
        raise ValueError(f"{ok:,} of {requests:,} requests are ok, and {counted:,} have an error")
    for name, values in result["times"].items():
        _check_time(name, values)
    for name in _DERIVED:
        if name in stored and not math.isclose(stored[name], result[name], rel_tol=_ROUNDING, abs_tol=1e-9):
            raise ValueError(f"{name} is {stored[name]!r:.40}, and {result[name]!r:.40} follows from the counts")


def _require_sizes(result: Mapping[str, Any]) -> None:
    """None of them is negative, and a share is at most 1."""
    sizes = {name: result[name] for name in _SIZES}
    sizes |= {f"errors.{key}": count for key, count in result["errors"].items()}
    for name, size in sizes.items():
        if size is not None and size < 0:
            raise ValueError(f"{name:.40} is {size:g}")
    if result["success_threshold"] > 1:
        raise ValueError(f"success_threshold is {result['success_threshold']:g}")


def _check_time(name: str, values: Mapping[str, float]) -> None:
    """Its percentiles rise from its least value to its greatest, and its mean lies between them."""
    rising = [(each, values[each]) for each in _RISING if each in values]
    for (lower, low), (upper, high) in pairwise(rising):
        if low > high:
            raise ValueError(f"{name:.20}.{lower} is {low:g} s, and {upper} {high:g} s")
    least, most = values.get("min", 0.0), values.get("max", math.inf)
    mean = values.get("mean", least)
    if least < 0 or not least * (1 - _ROUNDING) <= mean <= most * (1 + _ROUNDING):
        raise ValueError(f"{name:.20}.mean is {mean:g} s, of values from {least:g} to {most:g} s")
