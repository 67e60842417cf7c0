"""The object of ``capacity.json``: what a search found, as programs read it. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.verdict.client.answers import answer_warnings
from inference_benchmarker.verdict.client.evidence import Evidence
from inference_benchmarker.verdict.client.network import seen_aside
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.experiments.measurements.counting import shown_metric
from server_capacity.experiments.measurements.curve import curve
from server_capacity.experiments.measurements.kinds import tokens_at_answer
from server_capacity.experiments.measurements.limit_rows import interval_of, limit_row, side_of
from server_capacity.experiments.measurements.sessions_at_answer import sessions_at
from server_capacity.experiments.measurements.user_count_search import users_of
from server_capacity.experiments.measurements.user_limits import user_limit_rows
from server_capacity.experiments.server_side.server_attachment import at_answer, attach_server_metrics, generated_in
from server_capacity.experiments.server_side.time_breakdown import time_breakdown
from server_capacity.results.text.headline import headline, rate_text
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.capacity import AtLeast, CapacityResult, Failed
from server_capacity.results.types.result_status import settled
from server_capacity.results.types.search_waves import StretchRow
from server_capacity.results.types.server_side import At, Memory, Slower
from server_capacity.search.stretch import CLIENT, with_client

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements import evidence
    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.generation import Generated
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.server_side.server_attachment import ServerAssessment
    from server_capacity.results.types.capacity import Outcome
    from server_capacity.results.types.search_waves import LimitRow
    from server_capacity.search.answer import Answer

CONFIDENCE = 0.95
REACHED = 0.999
"""The share of the highest rate that may be tried from which on it counts as tried."""
EXIT_CODES = {"found": OK, "not_kept": MISSED, "cannot_tell": MISSED, "client_limited": INVALID}


def content(question: Question, explored: SearchEvidence, answer: Answer, confirmed: list[Confirmed]) -> CapacityResult:
    """The result but for what is computed from the waves beside the answer. Rates in requests/s, times in seconds."""
    attached = attach_server_metrics(question.plan.server_limits, explored, confirmed)
    output = generated_in(explored)
    points, low = curve(explored.rows, question.limits), answer.interval.low if answer.interval else answer.at_least
    at_low, load = at_answer(confirmed), rate_text(low, interval_of(answer.interval), question.unit)
    outcome, reason, code = _outcome(question, explored, answer)
    at_least = answer.at_least if answer.outcome != "found" else None
    sessions = sessions_at(question, at_low)
    found = CapacityResult(
        schema_version=SCHEMA_VERSION,
        created=_created(explored),
        name=question.plan.name,
        endpoint=question.endpoint,
        in_=question.kind,
        outcome="interrupted" if explored.interrupted else outcome,
        exit_code=INTERRUPTED if explored.interrupted else code,
        rate=answer.rate,
        limit=answer.limit,
        at_least=None if at_least is None else AtLeast(at_least, reason),
        reason=reason,
        interval=interval_of(answer.interval),
        confidence=CONFIDENCE,
        arrivals=None if question.in_users else question.settings.arrivals,
        cache=question.cache,
        seed=explored.waves[0].plan.seed if explored.waves else question.plan.seed,
        precision_asked=question.settings.precision,
        time_asked_s=question.settings.time_s,
        load_s=explored.load_s,
        void_s=explored.void_s,
        shared_s=explored.shared_s if explored.shared else None,
        shared_void_s=explored.shared_void_s if explored.shared else None,
        workers=explored.workers,
        limits=[
            *(_limit(place, answer, confirmed, question) for place in range(len(question.limits))),
            *user_limit_rows(question, explored, confirmed),
            *attached.limit_rows(confirmed),
        ],
        curve=points,
        stretches=[_stretch(row, attached, output[row.stretch.number]) for row in explored.rows],
        islands=[Interval(each.low, each.high) for each in answer.islands],
        memory=_memory(answer),
        slower=_slower(explored),
        own_waits=_own_waits(explored),
        warnings=_warnings(explored, confirmed),
        resources=attached.resources(question.plan.server_limits, low) if question.is_of_rates else None,
        where_time_went=time_breakdown(points, low, at_low, shown_metric(question.limits), load),
        tokens=tokens_at_answer(at_low, question.limits, sessions) if at_low else None,
        canaries=None if question.canaries is None else list(question.canaries),
        errors=_errors(explored, confirmed),
        failures=list(explored.failures),
        waves=_waves(explored, confirmed),
        confirmation=[each.to_result(question) for each in confirmed],
        sessions=sessions,
        users=users_of(question, answer, confirmed[-1].wave if confirmed else None),
    )
    found = settled(found)
    return replace(found, headline=headline(found))


def _memory(answer: Answer) -> Memory | None:
    found = answer.memory
    return None if found is None else Memory(side_of(found.below), side_of(found.above), differ=found.differ)


def _outcome(question: Question, explored: SearchEvidence, answer: Answer) -> tuple[Outcome, str, int]:
    """The outcome of a search that nobody interrupted, its reason, and its exit code."""
    most, limited = question.settings.max_rps, _client_limit(explored, answer)
    reached = most is not None and (answer.at_least or 0.0) >= REACHED * most
    if answer.outcome == "at_least" and reached:
        return "at_least", answer.reason, OK
    if answer.outcome in ("at_least", "cannot_tell") and limited:
        return "client_limited", limited, INVALID
    reason = with_client(answer.reason, [row.stretch for row in explored.rows])
    return answer.outcome, reason, EXIT_CODES.get(answer.outcome, MISSED)


def _client_limit(explored: SearchEvidence, answer: Answer) -> str:
    """Why the client could do no more, where that is why no limit was violated; empty where it is not."""
    return explored.client_limit or (answer.reason if answer.reason.startswith(CLIENT) else "")


def _limit(place: int, answer: Answer, confirmed: list[Confirmed], question: Question) -> LimitRow:
    """A limit with its value in the last wave at the interval's lower end that nothing spoilt."""
    limit, usable = question.limits[place], [each for each in confirmed if not each.spoilt]
    at_low = usable[-1].to_result(question).limits[place] if usable else None
    return limit_row(
        limit.expression,
        limit.metric,
        next((each for each in answer.estimates if each.limit == limit.expression), None),
        bound=limit.bound_s,
        unit="share" if limit.bound_s is None else "s",
        allowed=limit.allowed,
        at_low=None if at_low is None else at_low.value,
        at_low_text=(None if at_low is None else at_low.text) or "",
    )


def _stretch(row: evidence.CountedStretch, server_assessment: ServerAssessment, output: Generated) -> StretchRow:
    stretch, times = row.stretch, row.counted.times
    by_limit = zip(*(each.counts for each in stretch.slices), strict=True)
    totals = [tuple(map(sum, zip(*pairs, strict=True))) for pairs in by_limit]
    return StretchRow(
        number=stretch.number,
        wave=row.wave,
        purpose=stretch.purpose,
        rate=stretch.rate,
        start_s=stretch.start_s,
        end_s=stretch.end_s,
        sent=sum(each.sent for each in stretch.slices),
        answered=sum(each.answered for each in stretch.slices),
        failed=row.counted.failed,
        share_over=[over / of if of else None for of, over in totals],
        p50=None if times is None else times.percentile(50),
        p99=None if times is None else times.percentile(99),
        in_flight=stretch.in_flight,
        void=stretch.void,
        direction="below" if stretch.purpose == "below" else "above" if stretch.purpose == "above" else None,
        metrics=server_assessment.values.get(stretch.number, {}),
        tokens_per_s=output.tokens_per_s,
        labels=output.labels or None,
    )


def _slower(explored: SearchEvidence) -> Slower | None:
    """Two stretches that tell that the endpoint got slower with time, and the answer of what came before."""
    if (seen := explored.slower) is None:
        return None
    before, after = (At(each.rate, each.start_s, each.share, each.mean_s) for each in (seen.before, seen.after))
    return Slower(before, after, seen.until_s, side_of(explored.early))


def _own_waits(explored: SearchEvidence) -> str | None:
    """The words for how many requests waited within invoke and not for the network; None where few did."""
    seen = (seen_aside(Evidence(wave, wave.summary)) for wave in explored.waves)
    return next(filter(None, seen), None)


def _created(explored: SearchEvidence) -> str | None:
    """The UTC time at which the first wave began, in ISO 8601; None without one."""
    waves = (*explored.warming, *explored.waves[explored.shared :]) or explored.waves
    return waves[0].window.start if waves else None


def _all_waves(explored: SearchEvidence, confirmed: list[Confirmed]) -> list[Wave]:
    return list({id(wave): wave for wave in (*explored.waves, *(each.wave for each in confirmed))}.values())


def _warnings(explored: SearchEvidence, confirmed: list[Confirmed]) -> list[str] | None:
    """Clauses on all that speaks against counting answers as a success; None where nothing does."""
    return list(answer_warnings([Evidence(wave, wave.summary) for wave in _all_waves(explored, confirmed)])) or None


def _errors(explored: SearchEvidence, confirmed: list[Confirmed]) -> list[Failed]:
    """The keys of all errors, those that came most often first, and how many requests failed with each."""
    counts: Counter[str] = Counter()
    for wave in _all_waves(explored, confirmed):
        counts.update({row.key: row.count for row in wave.summary.errors})
    return [Failed(key, count) for key, count in counts.most_common()]


def _waves(explored: SearchEvidence, confirmed: list[Confirmed]) -> dict[str, list[str]]:
    def names(of: list[Wave]) -> list[str]:
        return [each.run_dir.path.name for each in of if each.run_dir is not None]

    own, shared = explored.waves[explored.shared :], explored.waves[: explored.shared]
    adaptive = [wave for wave in explored.adaptive if id(wave) in set(map(id, own))]
    others = {id(wave) for wave in (*adaptive, *(each.wave for each in confirmed))}
    return {
        "warming": names(explored.warming),
        "exploration": names(adaptive),
        "narrowing": names([wave for wave in own if id(wave) not in others]),
        "confirmation": names([each.wave for each in confirmed if not each.soak]),
        "soak": names([each.wave for each in confirmed if each.soak]),
        **({"shared": names(shared)} if shared else {}),
    }
