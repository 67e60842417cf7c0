"""The order of variants, by what it costs to serve the target, and the ties where intervals do not decide. Pure.

Each variant has a score, the less the better: the cost of an hour of the instances for the target; without prices their
number; without a target the cost of a million output tokens, else of requests, or the rate that an instance holds. The
score by the interval's lower end decides the order. Two variants tie where their scores, from one end of the interval
to the other, overlap. A variant whose answers are not those of the others has no place in it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.results.equal_answers import remarks_on_answers
from server_capacity.results.ranking_row import Aim, high_of, instances_for, is_ranked, low_of
from server_capacity.results.ranking_traffics import traffics
from server_capacity.results.text.ranking_headline import headline
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.price import NO_PRICE, per_million
from server_capacity.results.types.ranking import By, RankingResult, Score
from server_capacity.results.types.result_status import is_unknown, row_code
from server_capacity.search.limit_bracket import KEEPS_UP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from server_capacity.results.types.ranking import RankedRow, Traffics

NO_COST = f"{NO_PRICE} --price gpu=USD is an hour of a GPU."
NO_LIMIT = (
    "capacity: the rate that each keeps up with, since no --slo was violated below it. Set one with --slo 'p99<500ms'."
)


class Scores(NamedTuple):
    """The score of a variant if it holds the most that it may, and the least."""

    best: float
    worst: float

    def overlaps(self, other: Scores) -> bool:
        """Tells whether the one may be the other's better as well as its worse."""
        return self.best <= other.worst and other.best <= self.worst

    def to_score(self) -> Score:
        """Both, a rate as it is; None where the best has no bound."""
        return Score(abs(self.best) if math.isfinite(self.best) else None, abs(self.worst))


def ranking(
    rows: Sequence[RankedRow], aim: Aim, *, interrupted: bool = False, created: str | None = None
) -> RankingResult:
    """The ranking: the rows in their order, those without an answer last."""
    by = ranked_by(rows, aim)
    rows = [replace(row, label=label_of(row.variant)) for row in rows]
    answered = [row for row in rows if is_ranked(row)]
    scored = sorted(((_scores(row, by, aim), row) for row in answered), key=lambda each: _order(*each))
    ordered = [_placed(place, scored) for place in range(len(scored))]
    others = [replace(row, rank=None, tied_with=[], score=None) for row in rows if not is_ranked(row)]
    found = RankingResult(
        schema_version=SCHEMA_VERSION,
        target_rps=aim.target_rps,
        utilisation=aim.utilisation,
        ranked_by=by,
        interrupted=interrupted,
        exit_code=_exit_code(ordered, others, interrupted=interrupted),
        rows=[*ordered, *others],
        payload_variants=traffics([row if is_ranked(row) else replace(row, interval=None) for row in rows]),
        remarks=_remarks(answered, by),
        created=created,
    )
    return replace(found, headline=headline(found))


def require_order(found: RankingResult) -> None:
    """Compare the order of a ranking with the one that its rows give; ValueError where it is another one.

    What an earlier version gave by its own rule to rows without a rank is let pass; ``inherited_code`` and ``of_today``
    do not believe it.
    """
    made = _made_of(found)
    if found.ranked_by != made.ranked_by:
        raise ValueError("its ranked_by does not follow from its rows")
    if found.exit_code not in (made.exit_code, *_earlier_codes(found)):
        raise ValueError("its exit_code does not follow from its rows")
    if _equivalent(found.payload_variants) not in map(_equivalent, (made.payload_variants, traffics(found.rows))):
        raise ValueError("its payload_variants does not follow from its rows")
    for place, (stored, row) in enumerate(zip(found.rows, made.rows, strict=True), 1):
        if _place_of(stored) != _place_of(row):
            raise ValueError(f"row {place} is not the one that follows from the rates, costs and counts of the rows")


def inherited_code(found: RankingResult) -> int:
    """The exit code for whoever builds on a ranking: its own or, where it is graver, the one that its rows give."""
    return worst_exit_code(found.exit_code, _made_of(found).exit_code)


def of_today(found: RankingResult) -> RankingResult:
    """The ranking without an answer on traffic patterns for which an earlier version counted rows without a rank."""
    made = _made_of(found).payload_variants
    return found if _equivalent(found.payload_variants) == _equivalent(made) else replace(found, payload_variants=made)


def _made_of(found: RankingResult) -> RankingResult:
    return ranking(found.rows, Aim(found.target_rps, found.utilisation), interrupted=found.interrupted)


def _earlier_codes(found: RankingResult) -> Iterator[int]:
    """The exit codes by earlier rules: a search without a rank that found no rate added less, or nothing."""
    ranked = [row for row in found.rows if row.rank is not None]
    others = [row for row in found.rows if row.rank is None]
    for code in (OK, INVALID):
        lenient = [replace(row, exit_code=code, warnings=[]) if _added_less(row) else row for row in others]
        yield _exit_code(ranked, lenient, interrupted=found.interrupted)


def _added_less(row: RankedRow) -> bool:
    return is_unknown(row) or row.outcome == "interrupted"


def _equivalent(answer: Traffics | None) -> tuple[float | None, ...]:
    """The answer on its traffic patterns, where it has one: another version may put it in other words."""
    return () if answer is None else (answer.equivalent, answer.within)


def _place_of(row: RankedRow) -> tuple[object, ...]:
    return row.variant, row.rank, row.tied_with, row.score


def ranked_by(rows: Sequence[RankedRow], aim: Aim) -> By:
    """The score that all answered rows have: of money only where each has a price, in one currency."""
    answered = [row for row in rows if is_ranked(row)]
    currencies = {row.price.currency if row.price else None for row in answered}
    priced = len(currencies) == 1 and None not in currencies
    if aim.target_rps is not None:
        return "cost_hour" if priced else "instances_for_target"
    if not priced:
        return "rate"
    generate = all(row.tokens_each is not None and row.tokens_each.output for row in answered)
    return "cost_per_million_output" if generate else "cost_per_million"


def _scores(row: RankedRow, by: By, aim: Aim) -> Scores:
    low = low_of(row)
    assert low is not None
    return Scores(score(row, high_of(row), by, aim), score(row, low, by, aim))


def score(row: RankedRow, per_instance: float, by: By, aim: Aim) -> float:
    """The score of a variant of which an instance holds that rate."""
    if by == "rate":
        return -per_instance
    hour = row.price.per_hour if row.price else 1.0
    if by in ("cost_per_million", "cost_per_million_output"):
        output = None if row.tokens_each is None else row.tokens_each.output
        each = aim.utilisation if by == "cost_per_million" else output or 0.0
        million = per_million(hour, per_instance * each)
        return math.inf if million is None else million
    assert aim.target_rps is not None
    instances = instances_for(aim.target_rps, per_instance, aim.utilisation)
    return float(instances * hour) if by == "cost_hour" else float(instances)


def _order(scores: Scores, row: RankedRow) -> tuple[Any, ...]:
    """By the score that is sure; then fewer instances, then the higher rate, then the name."""
    return scores.worst, row.instances_for_target or 0, -(low_of(row) or 0.0), label_of(row.variant)


def _placed(place: int, scored: Sequence[tuple[Scores, RankedRow]]) -> RankedRow:
    """A row with its rank: one more than those that are surely better."""
    mine, row = scored[place]
    better = sum(other.worst < mine.best for other, _ in scored)
    ties = [n + 1 for n, (other, _) in enumerate(scored) if n != place and mine.overlaps(other)]
    return replace(row, rank=better + 1, tied_with=ties, score=mine.to_score())


def _exit_code(ordered: Sequence[RankedRow], others: Sequence[RankedRow], *, interrupted: bool) -> int:
    if interrupted:
        return INTERRUPTED
    codes = [row_code(row) for row in (*ordered, *others)]
    if ordered:
        return worst_exit_code(*codes)
    limited = INVALID if any(row.outcome == "client_limited" for row in others) else OK
    return worst_exit_code(MISSED, limited, *codes)


def _remarks(answered: Sequence[RankedRow], by: By) -> list[str]:
    bare = bool(answered) and all(row.limit == KEEPS_UP for row in answered)
    return [*_on_prices(answered, by), *([NO_LIMIT] if bare else []), *remarks_on_answers(answered)]


def _on_prices(answered: Sequence[RankedRow], by: By) -> list[str]:
    unpriced = [label_of(row.variant) for row in answered if row.price is None]
    if by not in ("instances_for_target", "rate") or not answered:
        return []
    if len(unpriced) == len(answered):
        return [NO_COST]
    if unpriced:
        return [f"No price of {', '.join(unpriced)}, so the order is not by cost. {NO_COST}"]
    return ["The prices are in several currencies, so the order is not by cost."]
