"""The object of ``capacity.json``: what a search found, as programs read it. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.experiments.measurements.counting import shown_metric
from server_capacity.experiments.measurements.curve import curve
from server_capacity.experiments.measurements.in_users import users_json
from server_capacity.experiments.measurements.kinds import tokens_at_answer
from server_capacity.experiments.measurements.user_limits import interval_json, limit_row, user_limit_rows
from server_capacity.experiments.server_side.server_attachment import at_answer, attach_server_metrics, generated_in
from server_capacity.experiments.server_side.time_breakdown import time_breakdown
from server_capacity.results.text.headline import headline
from server_capacity.results.types.standing import standing
from server_capacity.search.stretch import CLIENT

if TYPE_CHECKING:
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence, StretchRow
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.answer import Answer, Estimate
    from server_capacity.search.limits import Limit

CONFIDENCE = 0.95
REACHED = 0.999
"""The share of the highest rate that may be tried from which on it counts as tried."""
EXIT_CODES = {"found": OK, "not_kept": MISSED, "cannot_tell": MISSED, "client_limited": INVALID}


def content(
    question: Question, explored: SearchEvidence, answer: Answer, confirmed: list[Confirmed], **more: Any
) -> dict[str, Any]:
    """The object of capacity.json; ``more`` are keys that others fill in. Rates in requests/s, times in seconds."""
    told = attach_server_metrics(question.plan.server_limits, explored, confirmed)
    output = generated_in(explored)
    points, low = curve(explored.rows, question.limits), answer.interval.low if answer.interval else answer.at_least
    at_low = at_answer(confirmed)
    data = {
        "schema_version": SCHEMA_VERSION,
        "created": _created(explored),
        "name": question.plan.name,
        "endpoint": question.endpoint,
        "in": "users" if question.in_users else "rps",
        **_outcome(question, explored, answer),
        "interval": interval_json(answer.interval),
        "confidence": CONFIDENCE,
        "arrivals": None if question.in_users else question.settings.arrivals,
        "cache": "warm" if question.warm else "fresh",
        "seed": explored.waves[0].plan.seed if explored.waves else question.plan.seed,
        "precision_asked": question.settings.precision,
        "time_asked_s": question.settings.time_s,
        "load_s": explored.load_s,
        "void_s": explored.void_s,
        "workers": explored.workers,
        "limits": [
            {**_limit(limit, answer), **_at_low(place, confirmed, question)}
            for place, limit in enumerate(question.limits)
        ]
        + user_limit_rows(question, explored, confirmed)
        + told.limit_rows(confirmed),
        "curve": points,
        "stretches": [
            {**_stretch(row), **told.of_stretch(row.stretch.number), **output[row.stretch.number].to_json()}
            for row in explored.rows
        ],
        "islands": [{"low": each.low, "high": each.high} for each in answer.islands],
        "memory": _memory(answer),
        "slower": _slower(explored),
        "windows": None,
        "resources": None if question.in_users else told.resources(question.plan.server_limits, low),
        "where_time_went": time_breakdown(points, low, at_low, shown_metric(question.limits)),
        "tokens": tokens_at_answer(at_low, question.limits) if at_low else None,
        "payloads": None,
        "errors": _errors(explored, confirmed),
        "failures": list(explored.failures),
        "waves": _waves(explored, confirmed),
        "confirmation": [each.to_json(question) for each in confirmed],
        "twin": None,
        "users": users_json(question, answer, confirmed[-1].wave if confirmed else None),
        "suspended": None,
        **more,
    }
    data |= standing(data)
    return {**data, "headline": headline(data)}


def _outcome(question: Question, explored: SearchEvidence, answer: Answer) -> dict[str, Any]:
    """The outcome, its exit code and what goes with it; an interrupt goes before all else."""
    outcome: str = answer.outcome
    reason, at_least, code = answer.reason, None, EXIT_CODES.get(answer.outcome, MISSED)
    most, limited = question.settings.max_rps, _client_limit(explored, answer)
    reached = most is not None and (answer.at_least or 0.0) >= REACHED * most
    if outcome == "at_least" and reached:
        code = OK
    elif outcome in ("at_least", "cannot_tell") and limited:
        outcome, reason, code = "client_limited", limited, INVALID
    if outcome != "found" and answer.at_least is not None:
        at_least = {"rate": answer.at_least, "reason": reason}
    if explored.interrupted:
        outcome, code = "interrupted", INTERRUPTED
    return {
        "outcome": outcome,
        "exit_code": code,
        "rate": answer.rate,
        "limit": answer.limit,
        "at_least": at_least,
        "reason": reason,
    }


def _client_limit(explored: SearchEvidence, answer: Answer) -> str:
    """Why the client could do no more, where that is why no limit gave out; empty where it is not."""
    return explored.client_limit or (answer.reason if answer.reason.startswith(CLIENT) else "")


def _limit(limit: Limit, answer: Answer) -> dict[str, Any]:
    found = next((each for each in answer.estimates if each.limit == limit.expression), None)
    unit = "share" if limit.bound_s is None else "s"
    return limit_row(limit.expression, limit.metric, found, bound=limit.bound_s, unit=unit, allowed=limit.allowed)


def _at_low(place: int, confirmed: list[Confirmed], question: Question) -> dict[str, Any]:
    """The limit's value in the last wave at the interval's lower end that nothing spoilt."""
    told = [each for each in confirmed if not each.spoilt]
    row = told[-1].to_json(question)["limits"][place] if told else {"value": None, "text": ""}
    return {"at_low": row["value"], "at_low_text": row["text"]}


def _stretch(row: StretchRow) -> dict[str, Any]:
    stretch, times = row.stretch, row.counted.times
    by_limit = zip(*(each.counts for each in stretch.slices), strict=True)
    totals = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in by_limit]
    return {
        "number": stretch.number,
        "wave": row.wave,
        "purpose": stretch.purpose,
        "rate": stretch.rate,
        "start_s": stretch.start_s,
        "end_s": stretch.end_s,
        "sent": sum(each.sent for each in stretch.slices),
        "answered": sum(each.answered for each in stretch.slices),
        "failed": row.counted.failed,
        "share_over": [over / of if of else None for of, over in totals],
        "p50": None if times is None else times.percentile(50),
        "p99": None if times is None else times.percentile(99),
        "in_flight": stretch.in_flight,
        "void": stretch.void,
        "direction": stretch.purpose if stretch.purpose in ("below", "above") else None,
    }


def _memory(answer: Answer) -> dict[str, Any] | None:
    if answer.memory is None:
        return None

    def side(estimate: Estimate) -> dict[str, Any]:
        return {"rate": estimate.rate, "interval": interval_json(estimate.interval)}

    return {"below": side(answer.memory.below), "above": side(answer.memory.above), "differ": True}


def _slower(explored: SearchEvidence) -> dict[str, Any] | None:
    """Two stretches that tell that the endpoint got slower with time, and the answer of what came before."""
    if explored.slower is None:
        return None
    early = explored.early
    rate, interval = (None, None) if early is None else (early.rate, interval_json(early.interval))
    return {**asdict(explored.slower), "early": {"rate": rate, "interval": interval}}


def _created(explored: SearchEvidence) -> str | None:
    """The UTC time at which the first wave began, in ISO 8601; None without one."""
    waves = (*explored.warming, *explored.waves)
    return str(waves[0].window.to_json()["start"]) if waves else None


def _errors(explored: SearchEvidence, confirmed: list[Confirmed]) -> list[dict[str, Any]]:
    """The keys of all errors, those that came most often first, and how many requests failed with each."""
    waves = {id(wave): wave for wave in (*explored.waves, *(each.wave for each in confirmed))}.values()
    counts: Counter[str] = Counter()
    for wave in waves:
        counts.update({row.key: row.count for row in wave.summary.errors})
    return [{"key": key, "count": count} for key, count in counts.most_common()]


def _waves(explored: SearchEvidence, confirmed: list[Confirmed]) -> dict[str, list[str]]:
    def names(of: list[Any]) -> list[str]:
        return [each.run_dir.path.name for each in of if each.run_dir is not None]

    others = {id(wave) for wave in (*explored.adaptive, *(each.wave for each in confirmed))}
    return {
        "warming": names(explored.warming),
        "exploration": names(explored.adaptive),
        "narrowing": names([wave for wave in explored.waves if id(wave) not in others]),
        "confirmation": names([each.wave for each in confirmed if not each.soak]),
        "soak": names([each.wave for each in confirmed if each.soak]),
    }
