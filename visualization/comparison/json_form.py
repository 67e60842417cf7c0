"""A comparison as a JSON object: every number; times in seconds, changes as shares of the base's value. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from inference_benchmarker.version import SCHEMA_VERSION
from visualization.comparison.headline import headline
from visualization.comparison.intervals import interval

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from visualization.comparison.changes import Row, Value
    from visualization.comparison.comparison import Comparison, Side


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Every number; times in seconds, changes as shares of the base's value."""
    return {
        "schema_version": SCHEMA_VERSION,
        "headline": headline(comparison),
        "base": _side_json(comparison.base),
        "new": _side_json(comparison.new),
        "unlike": list(comparison.unlike),
        "metrics": [_row_json(row) for row in comparison.rows],
        "user_metrics": [_own_json(row) for row in comparison.own],
        "client": [_row_json(row) for row in comparison.client],
        "server_metrics": [
            {
                "metric": row.name,
                "unit": row.unit,
                "base": row.base,
                "new": row.new,
                "signs": list(row.signs),
                "change": row.change,
            }
            for row in comparison.server_rows
        ],
        "limits": [
            {"limit": check.limit.expression, "metric": check.row.name, "outcome": check.state}
            for check in comparison.checks
        ],
        "strict": comparison.strict,
        "outcome": comparison.outcome,
    }


def _run_json(wave: Wave) -> dict[str, Any]:
    path = None if wave.run_dir is None else str(wave.run_dir.path)
    return {"run_dir": path, "name": wave.plan.name, **wave.verdict.to_json()}


def _side_json(side: Side) -> dict[str, Any]:
    """Of a single run all that is said of it; of several how they end, and each."""
    runs = [_run_json(wave) for wave in side.waves]
    whole = runs[0] if len(runs) == 1 else {"verdict": "VALID" if side.valid else "INVALID"}
    return {"called": side.name, "what": side.what, **whole, "runs": runs}


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "metric": row.name,
        "base": _estimate_json(row.base),
        "new": _estimate_json(row.new),
        "change": row.change,
        "low": row.low,
        "high": None if row.high is None or math.isinf(row.high) else row.high,
        "primary": row.primary,
        "outcome": row.outcome,
    }


def _own_json(row: Row) -> dict[str, Any]:
    """Without an outcome: whether more is better is not known."""
    return {name: value for name, value in _row_json(row).items() if name not in ("outcome", "primary")}


def _estimate_json(estimate: Value | None) -> dict[str, Any] | None:
    """With its own 95% interval, not that of the change."""
    if estimate is None:
        return None
    low, high = interval(estimate) or (None, None)
    told = {"value": estimate.value, "low": low, "high": high, "lower_bound": estimate.is_lower_bound}
    return {**told, "precision": estimate.precision} if estimate.precision else told
