"""Holds the numbers of summary.json against those that follow from the wave's requests. Pure.

Everything else in that file is a fact of the wave, or a verdict, which later versions may judge by other rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inference_benchmarker.exit_codes import GRAVEST_FIRST
from inference_benchmarker.typed import require

VERDICTS = ("VALID", "INVALID", "PENDING")
_NUMBERS = (
    *("ledger", "success_rate", "latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot"),
    *("rates", "metrics", "labels", "finish_reasons", "errors", "tokens", "goodput", "repeats", "stages", "warmup"),
)
_ROUNDING = 1e-6  # of values that are summed in another order


def check_report(told: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise ValueError (KeyError) where ``told``, a summary.json, has no verdict, or a number that differs.

    ``found`` is what the requests say. What only one of the two has, an earlier version did not tell, or no longer.
    """
    require(told["verdict"], str, "verdict")
    if told["verdict"] not in VERDICTS:
        raise ValueError(f"the verdict {told['verdict'][:20]!r} is none of {', '.join(VERDICTS)}")
    require(told["exit_code"], int, "exit_code")
    if told["exit_code"] not in GRAVEST_FIRST:
        raise ValueError(f"exit_code {told['exit_code']} is none that a wave ends with")
    for name in _NUMBERS:
        if name in told:
            _compare(name, told[name], found[name])


def _compare(where: str, told: Any, found: Any) -> None:
    """The same numbers and texts at every place that both have."""
    if isinstance(told, Mapping) and isinstance(found, Mapping):
        for key in told.keys() & found.keys():
            _compare(f"{where}.{key}", told[key], found[key])
    elif _is_list(told) and _is_list(found):
        if len(told) != len(found):
            raise ValueError(f"{where} has {len(told)} rows, and {len(found)} follow from the requests")
        for place, pair in enumerate(zip(told, found, strict=True)):
            _compare(f"{where}[{place}]", *pair)
    elif not _same(told, found):
        raise ValueError(f"{where} is {told!r:.40}, and {found!r:.40} follows from the requests")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(told: object, found: object) -> bool:
    if isinstance(told, (int, float)) and isinstance(found, (int, float)):
        return math.isclose(told, found, rel_tol=_ROUNDING, abs_tol=1e-9)
    return told == found
