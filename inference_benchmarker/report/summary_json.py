"""Turns a summary into the JSON object of ``summary.json``, for programs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.report.instances import instances_json
from inference_benchmarker.report.stages import stage_json
from inference_benchmarker.summary.counted import not_told
from inference_benchmarker.verdict.server import diagnose
from inference_benchmarker.version import SCHEMA_VERSION

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.by_name import LabelRow
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.verdict import Verdict


def to_json(facts: WaveFacts, summary: Summary, verdict: Verdict) -> dict[str, Any]:
    """summary.json: floats in seconds; the report's numbers and the facts a run is loaded back from."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": facts.plan.name,
        **verdict.to_json(),
        "records": {
            "kept": facts.plan.records,
            "rows": len(facts.warmup) + len(facts.records),
            "not_told": list(not_told(facts)),
        },
        "window": facts.window.to_json(),
        "environment": facts.environment,
        "ledger": {
            **summary.ledger.to_json(),
            "workers": [ledger.to_json() for ledger in summary.worker_ledgers],
        },
        "lost_workers": list(facts.lost_workers),
        "primary_lost": facts.primary_lost,
        "disk_error": facts.disk_error,
        "aborted": None if facts.aborted is None else facts.aborted.to_json(),
        "left_behind": list(facts.left_behind),
        "foreign_connections": facts.foreign_connections,
        "success_rate": summary.success_rate,
        "rates": summary.rates.to_json(),
        **_metrics_json(summary),
        "metrics": {name: each.to_json() for name, each in summary.metrics.items()},
        "tokens": None if summary.tokens is None else summary.tokens.to_json(),
        "goodput": None if summary.goodput is None else summary.goodput.to_json(),
        "sessions": _sessions_json(summary),
        "repeats": None if summary.repeats is None else summary.repeats.to_json(),
        "stages": [stage_json(row, facts.plan.slos) for row in summary.stages] or None,
        "labels": [_label_json(row) for row in summary.labels],
        "errors": [
            {"key": row.key, "count": row.count, "first_s": row.first_s, "texts": list(row.texts)}
            for row in summary.errors
        ],
        "finish_reasons": summary.finish_reasons,
        "warmup": None if summary.warmup is None else _warmup_json(summary.warmup),
        "server_metrics": None
        if facts.server_metrics is None
        else [metric.to_json() for metric in facts.server_metrics],
        "server_logs": None if facts.server_logs is None else [log.to_json() for log in facts.server_logs],
        "instances": instances_json(facts, verdict),
        "diagnosis": [remark.to_json() for remark in diagnose(facts, summary, verdict.limited_by)],
        "hosts": [row.to_json() for row in summary.hosts] or None,
        "calibration": facts.calibration,
        "client": {
            "caps": list(facts.caps),
            "workers": [use.to_json() for use in facts.workers],
            "host": None if facts.host is None else facts.host.to_json(),
            "processes": [process.to_json() for process in facts.processes],
        },
    }


def _sessions_json(summary: Summary) -> dict[str, Any] | None:
    """The sessions with their turns, and all times of the first turns, the later ones, and those that a limit names."""
    if summary.sessions is None:
        return None
    parts = {turns.text: {"sent": part.ledger.sent, **_metrics_json(part)} for turns, part in summary.of_turns.items()}
    return {**summary.sessions.to_json(), "of_turns": parts}


def _metrics_json(summary: Summary) -> dict[str, Any]:
    names = ("latency", "response_time", "failed_latency", "lag", "build", "ttft", "itl", "tpot")
    return {name: _distribution_json(getattr(summary, name)) for name in names}


def _distribution_json(distribution: Distribution | None) -> dict[str, Any] | None:
    return None if distribution is None else distribution.to_json()


def _label_json(row: LabelRow) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in ("label", "sent", "ok", "failed")}
    return {
        **counts,
        "latency": _distribution_json(row.latency),
        "response_time": _distribution_json(row.response_time),
    }


def _warmup_json(warmup: Summary) -> dict[str, Any]:
    counts = {name: getattr(warmup.ledger, name) for name in ("sent", "ok", "failed", "abandoned")}
    return {"planned_s": warmup.planned_s, **counts, "rate": warmup.rates.sent, **_metrics_json(warmup)}
