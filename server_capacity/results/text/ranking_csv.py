"""A ranking as a table for spreadsheets: a row for each variant, in the order of the ranking. Pure."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from inference_benchmarker.words.csv_cells import CleanRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.ranking import RankedRow, RankingResult

KINDS = ("input", "cached", "output")
COLUMNS = (
    *("variant", "rank", "ranked_by", "score_best", "score_worst", "rate", "low", "high", "limit", "outcome"),
    *("answers_equal", "answers", "answers_reference", "output_ratio", "output_ratio_low", "output_ratio_high"),
    *(f"{kind}_tokens_each" for kind in KINDS),
    *(f"cost_per_million_{kind}" for kind in KINDS),
    *("instances_for_target", "cost_hour", "cost_month", "cost_per_million_requests", "currency", "exit_code"),
)
"""The cells of a row, in this order; a cell is empty where nothing is known."""


def to_csv(data: RankingResult) -> str:
    """The head and a row for each variant; a text of others is no formula."""
    file = io.StringIO()
    writer = CleanRows(csv.writer(file, lineterminator="\n"))
    writer.writerow(COLUMNS)
    for row in data.rows:
        writer.writerow(_cells(row, data))
    return file.getvalue()


def _cells(row: RankedRow, data: RankingResult) -> Iterator[object]:
    score, interval, price = row.score, row.interval, row.price
    yield from (row.label, row.rank, data.ranked_by)
    yield from (score and score.best, score and score.worst, row.rate)
    yield from (interval and interval.low, interval and interval.high, row.limit, row.outcome)
    yield from _of_answers(row)
    yield from (getattr(row.tokens_each, kind, None) for kind in KINDS)
    yield from (getattr(row.token_costs, kind, None) for kind in KINDS)
    yield from (row.instances_for_target, row.cost_hour, row.cost_month, row.cost_per_million)
    yield from (price and price.currency, row.exit_code)


def _of_answers(row: RankedRow) -> Iterator[object]:
    found = row.answers
    length = found and found.length
    yield from (found and found.equal, found and found.text, found and found.reference)
    yield from (length and length.ratio, length and length.low, length and length.high)
