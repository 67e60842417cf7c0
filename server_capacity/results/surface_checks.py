"""The row of a search of a surface, and the contradictions of a surface in itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INVALID, OK, worst_exit_code
from inference_benchmarker.words.redact import quoted
from server_capacity.results.agreement import between
from server_capacity.results.types.result_status import FAILED, is_unsaved, left_open_by, standing
from server_capacity.results.types.surface import SearchedPoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.surface import SurfaceResult, Use


def searched_point(prompt: int, answer: int, use: Use, folder: str, found: CapacityResult) -> SearchedPoint:
    """The row of a search at these lengths."""
    at_least, status = None if found.at_least is None else found.at_least.rate, standing(found)
    return SearchedPoint(
        input_tokens=prompt,
        output_tokens=answer,
        use=use,
        capacity=folder,
        outcome=found.outcome,
        headline=found.headline,
        rate=found.rate if found.interval else at_least,
        interval=found.interval,
        exit_code=worst_exit_code(status.exit_code, INVALID if is_unsaved(found) else OK),
        warnings=list(left_open_by(found)),
        confirmed=status.confirmed,
    )


def surface_problems(found: SurfaceResult) -> Iterator[str]:
    """Every contradiction in itself, as a sentence."""
    if not found.searches:
        yield "it has no search"
        return
    worst = worst_exit_code(*(row.exit_code for row in found.searches))
    if found.exit_code != worst:
        yield f"its exit code is {found.exit_code}, and the gravest of its searches {worst}"
    if (found.stage == "refused") != (found.refused is not None):
        yield f"it is {found.stage}, and a reason for a refusal is {'missing' if found.refused is None else 'there'}"
    if found.stage != "given" and (found.grid or found.what_if):
        yield f"it is {found.stage}, and has capacities of its grid"
    if found.stage == "given":
        yield from _of_given(found)
    yield from _of_searches(found)
    yield from _of_predictions(found)


def _of_given(found: SurfaceResult) -> Iterator[str]:
    if found.engine is None or not found.grid:
        yield "it is given, and has no engine or no grid"
    if not any(row.use == "held_out" for row in found.searches):
        yield "it is given, and no search was held out from its fit"


def _of_predictions(found: SurfaceResult) -> Iterator[str]:
    """Predicted rates and shares lie within their intervals."""
    for point in found.grid:
        name = f"{point.input_tokens}x{point.output_tokens}"
        if (point.rate is None) != bool(point.beyond) or (point.rate is None) != (point.interval is None):
            yield f"{name} has a capacity and a reason why it has none, or neither"
        if point.interval is not None:
            yield from between(f"the rate of {name}", point.interval.low, point.rate, point.interval.high)
    for each in found.what_if:
        name = f"the share with {each.what} twice as long"
        yield from between(name, each.interval.low, each.share, each.interval.high)


def _of_searches(found: SurfaceResult) -> Iterator[str]:
    lengths = [(row.input_tokens, row.output_tokens) for row in found.searches]
    if len(set(lengths)) < len(lengths):
        yield "two of its searches have the same lengths"
    for row in found.searches:
        name = f"{row.input_tokens}x{row.output_tokens}"
        if row.interval is not None:
            yield from between(f"the rate of {name}", row.interval.low, row.rate, row.interval.high)
        if row.capacity is None and (row.outcome != FAILED or row.exit_code == 0):
            yield f"{name} has an outcome, but no search"
        if row.capacity not in (None, name):
            yield f"{quoted(str(row.capacity), 40)} is not the folder of a search at {name}"
        if row.predicted is not None and row.use != "held_out":
            yield f"{name} is predicted by a fit that has seen it"
        if found.stage == "given" and row.use == "held_out" and not _agree(row):
            yield f"it is given, and the intervals of {name} do not agree"
        if found.stage == "given" and row.use == "held_out" and row.confirmed == "fails":
            yield f"it is given, and a wave refuted the search at {name}"


def _agree(row: SearchedPoint) -> bool:
    one, other = row.interval, row.predicted
    return one is not None and other is not None and one.low <= other.high and other.low <= one.high
