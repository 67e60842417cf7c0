"""The judgement of a proof's wave: each limit by its bursts, the backlog, and what spoilt it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from server_capacity.experiments.capacity.confirmation import judged_users, totals
from server_capacity.experiments.measurements.client_limit import late_alone, spoilt
from server_capacity.experiments.measurements.confirmed import Confirmed
from server_capacity.experiments.measurements.counting import count_stages
from server_capacity.experiments.proof.length import bursts_of, main_of
from server_capacity.experiments.server_side.disturbance import disturbances
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.proof import ProvenLimit
from server_capacity.search.pace import overloaded

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.experiments.proof.evidence import Judgement
    from server_capacity.experiments.proof.planned import Planned
    from server_capacity.search.limits import Limit
    from server_capacity.search.stretch import Stretch

_AT_FIRST = 4
"""The answers of one part in so many of the wave, its beginning, tell what is in flight without a backlog."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A wave at the target, compared with the limits.

    ``backlog``: requests that were not answered when it ended, where they had become more and more; 0 where they had
    not.
    """

    confirmed: Confirmed
    backlog: int = 0

    @property
    def judgement(self) -> Judgement:
        """The plan's judgement: the worst of its limits', or that of a backlog."""
        if self.backlog:
            return "fails"
        return self.confirmed.judgement

    def limits(self, question: Question, planned: Planned) -> list[ProvenLimit]:
        """The limits of the proof: each with its value, and the share over it with the interval that bursts leave."""
        rows = [ProvenLimit(**asdict(row)) for row in self.confirmed.to_result(question).limits]
        of_requests = [
            _with_share(row, self.confirmed, place, limit, planned)
            for place, (row, limit) in enumerate(zip(rows, question.limits, strict=False))
        ]
        return [*of_requests, *rows[len(of_requests) :]]


def judged(question: Question, planned: Planned, wave: Wave) -> Proven:
    """The judgement, whatever the server reported by now."""
    stage = count_stages(wave, question.limits, question.user_limits)[0]
    backlog = _backlog(stage.stretch)
    judgements = _judgements(question, planned, stage)
    held_though_late = late_alone(question, wave) and not backlog and set(judgements) == {"holds"}
    dropped_by_server = backlog and wave.verdict.limited_by == "server"  # what the client dropped is the backlog
    why = question.lost() or (
        "" if held_though_late or dropped_by_server else spoilt(question, wave, partial(_judgements, question, planned))
    )
    disturbed = disturbances([wave])
    of_server = disturbed[0].reason if disturbed and not why else ""
    confirmed = Confirmed(wave, stage, judgements, why or of_server, by_server=bool(of_server))
    return Proven(confirmed, 0 if confirmed.spoilt else backlog)


def _judgements(question: Question, planned: Planned, stage: Counted) -> tuple[Judgement, ...]:
    """The judgement of each limit, those on values of the user's own last."""
    main, limits = main_of(question.limits, planned), enumerate(question.limits)
    of_requests = (_judged(limit, *totals(stage, place), planned, is_main=limit is main) for place, limit in limits)
    return (*of_requests, *judged_users(question, stage))


def _judged(limit: Limit, of: int, over: int, planned: Planned, *, is_main: bool) -> Judgement:
    if over and not limit.allowed:
        return "fails"
    bursts = bursts_of(limit, planned)
    if is_main:
        return bursts.judge(of, over, planned.aim.short)
    return bursts.judge_kept(of, over) if limit.allowed else "holds"


def _with_share(row: ProvenLimit, confirmed: Confirmed, place: int, limit: Limit, planned: Planned) -> ProvenLimit:
    of, over = totals(confirmed.stage, place)
    interval = None
    if limit.allowed and of:
        interval = Interval(*bursts_of(limit, planned).interval(of, over))
    return replace(row, allowed=limit.allowed, share_over=over / of if of else None, interval=interval)


def _backlog(stretch: Stretch) -> int:
    """The requests left of a wave that sent more than was completed; 0 of any other."""
    first = stretch.slices[: max(1, len(stretch.slices) // _AT_FIRST)]
    answered = sum(each.answered for each in first)
    answer_s = sum(each.spent_s for each in first) / answered if answered else 0.0
    return stretch.in_flight if overloaded(replace(stretch, purpose="above"), answer_s) else 0
