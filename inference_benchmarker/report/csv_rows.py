"""Turns a summary into one row of a table, for spreadsheets: the same columns for every wave. Pure."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.slo import FIRST_TURN, LATER_TURNS
from inference_benchmarker.report.headline import outcome
from inference_benchmarker.report.summary_json import times
from inference_benchmarker.summary.statistics.distribution import PERCENTILES, percentile_name
from inference_benchmarker.verdict.limit_rows import limit_rows
from inference_benchmarker.words.csv_cells import CleanRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.by_name import LabelRow
    from inference_benchmarker.summary.statistics.distribution import Distribution
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.verdict import Verdict

_TIMES = ("latency", "response_time", "ttft", "itl", "tpot", "lag")
_STATISTICS = ("mean", *map(percentile_name, PERCENTILES), "max")
_LEDGER = ("scheduled", "sent", "ok", "failed", "abandoned", "dropped", "lost")
_SESSIONS = ("started", "completed", "failed", "raised", "open", "good")
_RATES = ("target", "sent", "completed")
_TURNS, _TURN_TIMES = (FIRST_TURN, LATER_TURNS), ("latency", "ttft")
COLUMNS = (
    *("run", "name", "start", "verdict", "exit_code", "limited_by", "interrupted", "findings"),
    *("load", "concurrency", "workers", "endpoint", "planned_s", "duration_s"),
    *_LEDGER,
    *("success_rate", *(f"{name}_rate" for name in _RATES), "server_rps", "goodput_rate", "goodput_share"),
    *(f"{time}_{statistic}_s" for time in _TIMES for statistic in _STATISTICS),
    *("tokens_in", "tokens_out", "tokens_out_per_s", "limits_kept", "limits_missed", "missed", "errors", "metrics"),
    "aborted",
    *(f"sessions_{name}" for name in _SESSIONS),
    *("session_success", "session_rate_target", "session_rate_completed"),
    *(f"session_{statistic}_s" for statistic in _STATISTICS),
    "turns_a_session",
    "labels",
    *(f"{turns.text}_{time}_{statistic}_s" for turns in _TURNS for time in _TURN_TIMES for statistic in _STATISTICS),
    *("later_turns", "not_begun"),
    "outcome",
)
"""What a row has, in this order. Times are in seconds; a cell is empty where nothing was measured."""
UNREADABLE = "UNREADABLE"


def to_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """The head and the rows; a text of others is no formula."""
    file = io.StringIO()
    writer = CleanRows(csv.writer(file, lineterminator="\n"), ())
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([row.get(name) for name in COLUMNS])
    return file.getvalue()


def csv_row(facts: WaveFacts, summary: Summary, verdict: Verdict, run: str) -> dict[str, Any]:
    """A wave by the names of ``COLUMNS``; ``run`` says where it is stored."""
    plan, tokens, goodput = facts.plan, summary.tokens, summary.goodput
    limits = limit_rows(facts, summary)
    return {
        "run": run,
        "name": plan.name,
        "start": facts.window.start,
        "verdict": verdict.word,
        "exit_code": verdict.exit_code,
        "limited_by": verdict.limited_by,
        "interrupted": verdict.interrupted,
        "findings": " ".join(finding.code for finding in verdict.findings),
        "load": facts.load_text,
        "concurrency": plan.load.concurrency if isinstance(plan.load, ClosedLoop) else None,
        "workers": plan.workers,
        "endpoint": plan.endpoint or facts.environment.get("file"),
        "planned_s": summary.planned_s,
        "duration_s": summary.duration_s,
        **{name: getattr(summary.ledger, name) for name in _LEDGER},
        "success_rate": summary.success_rate,
        **{f"{name}_rate": getattr(summary.rates, name) for name in _RATES},
        "server_rps": summary.rates.server_rps,
        "goodput_rate": None if goodput is None else goodput.rate,
        "goodput_share": None if goodput is None else goodput.share,
        **{key: value for name in _TIMES for key, value in _time(name, getattr(summary, name)).items()},
        "tokens_in": None if tokens is None else tokens.tokens_in,
        "tokens_out": None if tokens is None else tokens.tokens_out,
        "tokens_out_per_s": None if tokens is None else tokens.tokens_out_per_s,
        "limits_kept": sum(row.outcome == "kept" for row in limits),
        "limits_missed": sum(row.outcome == "missed" for row in limits),
        "missed": "; ".join(f"{row.expression}: {row.measured}" for row in limits if row.outcome == "missed"),
        "errors": "; ".join(f"{row.key}: {row.count}" for row in summary.errors),
        "metrics": "; ".join(f"{name}: {metric.mean!r}" for name, metric in summary.metrics.items()),
        "aborted": next((each.measured for each in verdict.findings if each.code == "aborted"), None),
        **_sessions(summary),
        "labels": "; ".join(map(_label, summary.labels)),
        "outcome": outcome(summary, verdict),
    }


def _label(row: LabelRow) -> str:
    """The requests of a label: those that were ok, all that were sent, the ok ones' latency and TTFT in seconds."""
    text = f"{row.label}: {row.ok}/{row.sent}"
    for name, found in (("", row.latency), ("TTFT ", row.ttft)):
        if found is not None:
            text += f", {name}p50 {found.percentile(50):.6g}, {name}p99 {found.percentile(99):.6g}"
    return text


def _sessions(summary: Summary) -> dict[str, Any]:
    found = summary.sessions
    if found is None:
        return {}
    return {
        **{f"sessions_{name}": getattr(found, name) for name in _SESSIONS},
        "session_success": found.success,
        "session_rate_target": found.rates.target,
        "session_rate_completed": found.rates.completed,
        "turns_a_session": None if found.turns is None else found.turns.mean,
        **_time("session", found.duration),
        **_turns(summary),
        "later_turns": summary.ledger.later_turns,
        "not_begun": summary.ledger.not_begun,
    }


def _turns(summary: Summary) -> dict[str, float]:
    """The times of the first turns of sessions, and of all later ones."""
    found = [(turns.text, part) for turns in _TURNS if (part := summary.of_turns.get(turns)) is not None]
    return {
        key: value
        for turns, part in found
        for name in _TURN_TIMES
        for key, value in _time(f"{turns}_{name}", getattr(part, name)).items()
    }


def _time(name: str, distribution: Distribution | None) -> dict[str, float]:
    if distribution is None:
        return {}
    values = encoded(times(distribution))
    return {f"{name}_{statistic}_s": values[statistic] for statistic in _STATISTICS}
