"""Limits on values of the user's own, compared with all that a search sent. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.experiments.measurements.limit_rows import limit_row
from server_capacity.search.user_limits import UserEstimate, user_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.experiments.measurements.confirmed import Confirmed
    from server_capacity.experiments.measurements.evidence import SearchEvidence
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.results.types.search_waves import LimitRow


def users_estimates(question: Question, explored: SearchEvidence) -> list[UserEstimate]:
    """Each limit's estimate, from the stretches that count for something."""
    rows = [row for row in explored.rows if not row.stretch.void and row.stretch.rate > 0]
    return [
        user_estimate(limit, [(row.stretch.rate, row.counted.users[place]) for row in rows])
        for place, limit in enumerate(question.user_limits)
    ]


def user_limit_rows(question: Question, explored: SearchEvidence, confirmed: Sequence[Confirmed]) -> list[LimitRow]:
    """The rows of capacity.json's ``limits``; the value at the lower end is the last confirmation wave's."""
    return [_row(each, question, confirmed) for each in users_estimates(question, explored)]


def _row(found: UserEstimate, question: Question, confirmed: Sequence[Confirmed]) -> LimitRow:
    limit = found.limit
    rows = [row for each in confirmed if not each.spoilt for row in each.to_result(question).limits]
    at_low = next((row for row in reversed(rows) if row.expression == limit.expression), None)
    return limit_row(
        limit.expression,
        limit.metric,
        found.estimate,
        bound=limit.bound,
        unit="",
        reason=found.reason,
        at_low=None if at_low is None else at_low.value,
        at_low_text=(None if at_low is None else at_low.text) or "",
    )
