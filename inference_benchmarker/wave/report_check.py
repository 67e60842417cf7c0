"""Checks the numbers and the verdict of summary.json against those that follow from the wave's requests. Pure.

Everything else in that file is a fact of the wave. A verdict of other rules than today's is checked against its own
findings instead (``stored_verdict``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inference_benchmarker.data.typed import require
from inference_benchmarker.exit_codes import GRAVEST_FIRST, INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.verdict.verdict import PENDING
from inference_benchmarker.wave.stored_verdict import is_judged_by_today
from inference_benchmarker.words.redact import excerpt, quoted

_CODES = {"VALID": (OK, MISSED), "INVALID": (INVALID,), PENDING: (MISSED,)}
"""The exit codes of each verdict, but for a wave that was interrupted."""
_NUMBERS = (
    *("ledger", "success_rate", "latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot"),
    *("rates", "metrics", "labels", "finish_reasons", "errors", "tokens", "goodput", "repeats", "stages", "warmup"),
)
_BELOW = "success_below_threshold"
_WITH_RATES = ("rates", "tokens", "goodput", "stages", "warmup")
_ROUNDING = 1e-6  # of values that are summed in another order


def check_report(fields: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Raise ValueError (KeyError) where ``stored``, a summary.json, has no verdict, or a number that differs.

    ``found`` is what the requests say. What only one of the two has, another version stored.
    """
    check_verdict(fields)
    other_rates = _has_other_rates(fields, found)
    for name in _NUMBERS:
        if name in fields and not (other_rates and name in _WITH_RATES):
            _compare(name, fields[name], found[name])
    if is_judged_by_today(fields) and fields["verdict"] != PENDING:  # which says of no limit yet that it is kept
        _compare("verdict", fields["verdict"], found["verdict"])
        _compare("exit_code", fields["exit_code"], found["exit_code"])
        _compare_limits(fields, found)
    elif fields["verdict"] != PENDING:
        _compare_success(fields, found)


def _compare_success(fields: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Whatever the rules, a wave with exit code 0 has no success rate below its limit."""
    missed = [each for each in found["findings"] if each["severity"] == "missed"]
    odd = [each for each in missed if each["code"] == _BELOW or each["limit"].startswith("success")]
    if odd and fields["exit_code"] == OK:
        raise ValueError(f"exit_code is 0, but of the requests too few succeeded: {excerpt(odd[0]['measured'], 60)}")


def check_verdict(fields: Mapping[str, Any]) -> None:
    """Raise ValueError (KeyError) where a summary.json has no verdict, or an exit code that is none of its own."""
    require(fields["verdict"], str, "verdict")
    if fields["verdict"] not in _CODES:
        raise ValueError(f"the verdict {quoted(fields['verdict'], 20)} is none of {', '.join(_CODES)}")
    require(fields["exit_code"], int, "exit_code")
    if fields["exit_code"] not in GRAVEST_FIRST:
        raise ValueError(f"exit_code {fields['exit_code']} is not an exit code of a wave")
    codes = (INTERRUPTED,) if fields["interrupted"] else _CODES[fields["verdict"]]
    if fields["exit_code"] not in codes:
        raise ValueError(f"exit_code {fields['exit_code']} does not belong to a wave that is {fields['verdict']}")


def _has_other_rates(fields: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Tells whether a version stored it whose rates of sessions left out those that began before the wave or stage."""
    stored = fields.get("rates")
    return "over_s" in found["rates"] and isinstance(stored, Mapping) and "over_s" not in stored


def _compare_limits(fields: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """The limits that were missed are those that the requests miss."""
    if "findings" not in fields:
        return
    before, now = ({each["limit"] for each in of["findings"] if each["severity"] == "missed"} for of in (fields, found))
    if odd := sorted(before ^ now):
        said = ("kept", "missed") if odd[0] in now else ("missed", "kept")
        raise ValueError(f"the limit {excerpt(odd[0], 60)} was {said[0]}, but the requests say that it was {said[1]}")


def _compare(where: str, value: Any, found: Any) -> None:
    """The same numbers and texts at every place that both have."""
    if where.endswith(".recovery") and _watched_longer(value, found):
        return
    if isinstance(value, Mapping) and isinstance(found, Mapping):
        for key in (key for key in value if key in found):
            _compare(f"{where}.{key}", value[key], found[key])
    elif _is_list(value) and _is_list(found):
        if len(value) != len(found):
            raise ValueError(f"{where} has {len(value)} rows, and {len(found)} follow from the requests")
        for place, pair in enumerate(zip(value, found, strict=True)):
            _compare(f"{where}[{place}]", *pair)
    elif not _same(value, found):
        raise ValueError(f"{where} is {value!r:.40}, and {found!r:.40} follows from the requests")


def _watched_longer(value: Any, found: Any) -> bool:
    """Tells whether a version stored it that watched through a rate which may be too high by itself."""
    return isinstance(value, Mapping) and value["watched_s"] > (found["watched_s"] if found else 0.0)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(value: object, found: object) -> bool:
    if isinstance(value, (int, float)) and isinstance(found, (int, float)):
        return math.isclose(value, found, rel_tol=_ROUNDING, abs_tol=1e-9)
    return value == found
