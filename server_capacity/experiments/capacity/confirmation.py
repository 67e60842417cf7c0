"""Ordinary waves at the interval's lower end, and their evidence: at the very capacity a check is a coin toss."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError, NoWaveError
from server_capacity.experiments.measurements.client_limit import late_alone, spoilt
from server_capacity.experiments.measurements.confirmed import Confirmed, Judgement
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.measurements.falling_behind import completed_less
from server_capacity.experiments.measurements.limit_rows import interval_of
from server_capacity.results.text.headline import rate_text
from server_capacity.search.answer import Answer
from server_capacity.search.blocks import UsersBlock
from server_capacity.search.keeping_up import STEADY_LENGTHS
from server_capacity.search.limit_bracket import WAITED
from server_capacity.search.low_rate_check import breaking
from server_capacity.search.recovery import CONFIRM, length_below
from server_capacity.search.user_limits import judge_user
from server_capacity.search.users import counts_text, load_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.capacity.waves import Waves
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.limits import Limit


USUAL_S, SHORTEST_S, SHARE_OF_LOAD, GROWTH_S = 10.0, 2.0, 1 / 3, 30.0
CONFIRM_LENGTHS = 10.0
"""A confirmation lasts for so many lengths of a session at least."""
SEEN_REQUESTS, MOST_SEEN_S = 150.0, 60.0
"""A wave of fewer requests does not show that an endpoint falls behind."""
MOST_OF_A_KIND = 2
"""So many waves that fail refute the answer, and so many that are spoilt leave it unconfirmed."""
WANTED_ERROR = 0.5
"""A confirmation is long enough for this standard error of the share over a limit, over the share that is allowed."""
ENOUGH = 1.3
"""Requests over a limit that are allowed of as many as are expected: with fewer than 1, a wave cannot tell."""
CLEARLY = 2.0
USUAL_DISPERSION = 20.0
"""The variance of counts over a limit, times that of independent requests, where the search does not say."""


def confirm(question: Question, waves: Waves, answer: Answer, explored: SearchEvidence) -> Confirmed | None:
    """A wave at the rate that is to be confirmed; None where there is none, or it could not begin.

    That was for an interrupt, or for want of disk, say: it is among the failures then.
    """
    rate = rate_to_confirm(answer)
    if rate is None:
        return None
    least_s = max(waves.server.least_s, _least_s(question, rate))
    seconds = question.soak_s or max(length_s(question, answer, rate, explored.load_s), least_s)
    waves.say(f"Confirming the result at {rate_text(rate, interval_of(answer.interval), question.unit)}.")
    wave = wave_at(question, waves, explored, rate, seconds, failed="Not confirmed")
    if wave is None:
        return None
    stage = count_stages(wave, question.limits, question.user_limits)[0]
    behind = _behind(question, explored, stage, wave)
    stage = replace(stage, stretch=replace(stage.stretch, purpose=CONFIRM, behind=bool(behind)))
    of_stage = partial(judgements, question, answer=answer)
    judged = of_stage(stage)
    held_though_late = wave.verdict.valid and late_alone(question, wave) and set(judged) == {"holds"}
    why = question.lost() or ("" if held_though_late else spoilt(question, wave, of_stage))
    return Confirmed(wave, stage, judged, why, soak=question.soak_s is not None, behind=behind)


def _least_s(question: Question, rate: float) -> float:
    """Some session lengths; where no limit shows a queue, as long as it takes to see one."""
    if question.shape is None:
        return 0.0
    shows = any(limit.metric in WAITED for limit in question.limits)
    lengths_s = CONFIRM_LENGTHS * question.shape.seconds
    return lengths_s if shows or question.in_users else max(lengths_s, min(SEEN_REQUESTS / rate, MOST_SEEN_S))


def _behind(question: Question, explored: SearchEvidence, stage: Counted, wave: Wave) -> str:
    """The part of a wave's rate that was completed, where it was long enough to tell that the endpoint fell behind."""
    stretch, shape = stage.stretch, question.shape
    if shape is None or question.in_users:
        return ""
    usual_s = length_below(stretch.rate, question.limits, explored.stretches, shape.seconds)
    return completed_less(wave) if stretch.seconds >= STEADY_LENGTHS * usual_s else ""


def wave_at(
    question: Question, waves: Waves, explored: SearchEvidence, rate: float, seconds: float, *, failed: str
) -> Wave | None:
    """An ordinary wave; None where it could not begin, for an interrupt or a failure, which are noted."""
    try:
        return waves.confirm(question.confirmation(rate, seconds, explored.workers, waves.folder))
    except KeyboardInterrupt:
        explored.interrupted = True
    except BenchmarkError as error:
        explored.failures.append(f"{failed}: {error}")
    except NoWaveError as error:
        explored.failures.append(f"{failed}: {error.event}")
    return None


def needs_another(confirmed: Sequence[Confirmed]) -> bool:
    """Tells whether another wave at the lower end is due: after the first that failed, or that was spoilt."""
    if not confirmed:
        return True
    if confirmed[-1].spoilt:
        return sum(bool(each.spoilt) for each in confirmed) < MOST_OF_A_KIND
    return confirmed[-1].judgement == "fails" and len(_failed(confirmed)) < MOST_OF_A_KIND


def unless_refuted(answer: Answer, confirmed: Sequence[Confirmed], unit: str) -> Answer:
    """The answer, unless the last waves at its lower end failed again and again: then nobody knows how low it is."""
    failed = _failed(confirmed)
    if answer.outcome not in ("found", "at_least") or len(failed) < MOST_OF_A_KIND or failed[-1] is not confirmed[-1]:
        return answer
    rates = [_offered_text(each.stage.stretch.rate, unit) for each in failed]
    reason = f"the capacity is below {rates[-1]}: confirming waves failed at {' and '.join(rates)}"
    return replace(answer, outcome="cannot_tell", rate=None, interval=None, at_least=None, reason=reason)


def _offered_text(rate: float, unit: str) -> str:
    """The rate, or the number of users, of a wave, to four digits."""
    return f"{rate:.4g}{unit.removesuffix('s') if rate == 1 and '/' not in unit else unit}"


def unless_over(question: Question, answer: Answer, confirmed: Sequence[Confirmed]) -> Answer:
    """The answer, unless its wave had too many over a limit that is said to be met everywhere.

    They are too few to fail the wave, and yet nobody can say that the limit is met. Beside a limit that was found, and
    at a rate of which the search saw enough requests, chance must not explain them.
    """
    if answer.outcome not in ("found", "at_least") or not confirmed or confirmed[-1].spoilt:
        return answer
    stage, rates = confirmed[-1].stage, {each.limit: each.rate for each in answer.estimates}
    for place, limit in enumerate(question.limits):
        of, over = totals(stage, place)
        met = answer.outcome == "at_least" and not question.is_of_rates
        point = UsersBlock(stage.stretch.rate, of, over)
        is_over = over > limit.allowed * of if met else breaking([point], limit.allowed)
        if rates.get(limit.expression) is None and is_over:
            where = load_text(stage.stretch.rate, question.unit.strip())
            return _undecided(answer, limit, counts_text(where, of, over, limit.expression, limit.allowed))
    return answer


def _undecided(answer: Answer, limit: Limit, reason: str) -> Answer:
    estimates = tuple(
        replace(each, kept_everywhere=each.kept_everywhere and each.limit != limit.expression)
        for each in answer.estimates
    )
    return Answer("cannot_tell", limit=limit.expression, reason=reason, estimates=estimates)


def _failed(confirmed: Sequence[Confirmed]) -> list[Confirmed]:
    return [each for each in confirmed if each.judgement == "fails"]


def rate_to_confirm(answer: Answer) -> float | None:
    """The lower end of the interval; where every limit was kept at the most that may be tried, that."""
    if answer.interval is not None and answer.interval.low > 0:
        return answer.interval.low
    return answer.at_least if answer.outcome == "at_least" else None


def length_s(question: Question, answer: Answer, rate: float, load_s: float) -> float:
    """As long as it takes to tell, by the bursts that the search saw; at most a third of the search's load.

    The half minute in which it grew counts only until that is as long as usual: who asks for a minute waits for two.
    Where that is too short for a percentile of so few requests, it takes longer, at most as long as the search.
    """
    wanted = [
        _spread(answer, limit) / (limit.allowed * WANTED_ERROR**2 * question.judged_per_s(limit, rate))
        for limit in question.limits
        if limit.expression == answer.limit and limit.allowed > 0
    ]
    counted = [limit.allowed * question.judged_per_s(limit, rate) for limit in question.limits if limit.allowed > 0]
    least_s = max((ENOUGH / each for each in counted), default=0.0)
    load_s = question.settings.time_s or load_s
    most = max(SHORTEST_S, min(SHARE_OF_LOAD * load_s, max(USUAL_S, SHARE_OF_LOAD * (load_s - GROWTH_S))))
    return max(min(max([USUAL_S, *wanted]), most), min(least_s, load_s))


def judgements(question: Question, stage: Counted, answer: Answer | None = None) -> tuple[Judgement, ...]:
    """The judgement of each limit, those on values of the user's own last; ``answer``: it says how bursts come."""
    limits = enumerate(question.limits)
    of_requests = (judge(limit, *totals(stage, place), _spread(answer, limit)) for place, limit in limits)
    return (*of_requests, *judged_users(question, stage))


def judge(limit: Limit, of: int, over: int, dispersion: float = USUAL_DISPERSION) -> Judgement:
    """Tells whether a share over a limit is more than is allowed by more than bursts explain.

    At a rate that just keeps the limit, the share of a wave has a standard error of
    sqrt(dispersion x allowed / requests).
    """
    if of * max(limit.allowed, 1e-12) < 1 and not over:
        return "cannot_tell" if limit.allowed else "holds"
    share = over / of if of else 1.0
    if share <= limit.allowed:
        return "holds"
    error = math.sqrt(max(dispersion, 1.0) * limit.allowed / of) if of else math.inf
    return "fails" if share > limit.allowed + CLEARLY * error else "cannot_tell"


def totals(stage: Counted, place: int) -> tuple[int, int]:
    """Of how many requests of a stage, how many were over a limit, by its place among the limits."""
    counts = [each.counts[place] for each in stage.stretch.slices]
    return sum(count.of for count in counts), sum(count.over for count in counts)


def judged_users(question: Question, stage: Counted) -> tuple[Judgement, ...]:
    """The judgement of each limit on a value of the user's own."""
    return tuple(judge_user(limit, sums) for limit, sums in zip(question.user_limits, stage.users, strict=True))


def _spread(answer: Answer | None, limit: Limit) -> float:
    """The dispersion that the search found for a limit."""
    estimates = () if answer is None else answer.estimates
    found = (each.dispersion for each in estimates if each.limit == limit.expression)
    return next(found, None) or USUAL_DISPERSION
