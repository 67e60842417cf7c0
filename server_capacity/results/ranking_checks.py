"""The contradictions of a ranking in itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server_capacity.results.agreement import HOURS_A_MONTH, between, like, needed
from server_capacity.results.types.price import per_million
from server_capacity.results.types.ranking import TokenCosts, TokensEach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.ranking import RankedRow, RankingResult


def ranking_problems(found: RankingResult) -> Iterator[str]:
    """Every contradiction of the ranking in itself, as a sentence."""
    ranked = [row for row in found.rows if row.rank is not None]
    if found.rows[: len(ranked)] != ranked:
        yield "rows without a rank come before ranked ones"
    for place, row in enumerate(ranked, 1):
        if row.rank is not None and row.rank > place:
            yield f"row {place} has rank {row.rank}"
        if any(other == place or other > len(ranked) for other in row.tied_with):
            yield f"row {place} ties with a row that does not exist"
        if row.score is None or row.rate is None or row.instances is None:
            yield f"row {place} has a rank but no score or rate"
        if not row.capacity:
            yield f"row {place} has a rank but no search"
        yield from _of_row(row, place)
        yield from _of_tokens(row, place)
        yield from _of_target(row, place, found)
    yield from _of_answers(found)
    if found.exit_code == 0 and any(row.exit_code for row in ranked):
        yield "its exit code is 0, but a search that it is built on has another one"


def _of_answers(found: RankingResult) -> Iterator[str]:
    """Answers differ where their texts or their lengths do, and only there."""
    for place, row in enumerate(found.rows, 1):
        answers = row.answers
        if answers and (answers.equal is False) != (False in (answers.by_text, answers.by_length)):
            yield f"whether the answers of row {place} differ does not follow from their texts and lengths"


def _of_row(row: RankedRow, place: int) -> Iterator[str]:
    if row.interval is not None:
        yield from between(f"the rate of row {place}", row.interval.low, row.rate, row.interval.high)
    hour = None if row.price is None else row.price.per_hour * (row.instances_for_target or 1)
    if row.cost_hour is not None and hour is not None and not like(row.cost_hour, hour):
        yield f"row {place} costs {row.cost_hour:g} per hour, but its instances cost {hour:g}"
    if (
        row.cost_hour is not None
        and row.cost_month is not None
        and not like(row.cost_month, row.cost_hour * HOURS_A_MONTH)
    ):
        yield f"row {place} costs {row.cost_month:g} per month, but {row.cost_hour:g} per hour"


def _of_tokens(row: RankedRow, place: int) -> Iterator[str]:
    """The cost of output tokens follows from the price, the lower end and the tokens of each arrival."""
    each, costs = row.tokens_each or TokensEach(), row.token_costs or TokenCosts()
    low = row.rate if row.interval is None else row.interval.low
    if row.price is None or not low or each.output is None or costs.output is None:
        return
    expected = per_million(row.price.per_hour, low / row.measured_on * each.output)
    if expected is not None and not like(costs.output, expected):
        yield f"row {place} costs {costs.output:g} per million output tokens, which does not follow from its rate"


def _of_target(row: RankedRow, place: int, found: RankingResult) -> Iterator[str]:
    """The instances for the target follow from the lower end."""
    low = row.rate if row.interval is None else row.interval.low
    if found.target_rps is None or row.instances_for_target is None or not low or row.instances is None:
        return
    if not needed(row.instances_for_target, low / row.instances * found.utilisation, found.target_rps):
        yield f"row {place} takes {row.instances_for_target} instances, which are not what {found.target_rps:g}/s need"
