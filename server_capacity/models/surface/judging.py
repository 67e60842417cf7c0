"""A fitted engine is believed where searches that it has not seen agree with it; then the grid is its answer. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.models.surface.lengths import Lengths, Over
from server_capacity.models.surface.predicting import predict_all
from server_capacity.results.text.headline import between
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.surface import (
    Doubled,
    FittedConstant,
    FittedEngine,
    PredictedPoint,
    SearchedPoint,
    SurfaceResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inference_benchmarker.embedded.llm.fit import Fit
    from server_capacity.models.surface.predicting import Estimate, Model, Prediction

WIDEST = 2.0
"""The upper end of an interval over its lower one: a wider one, measured or predicted, agrees with nearly all."""
_CONTEXT = 1_000_000
"""Tokens for which constants of a context are stored."""
_TRY = "Search at the length that you need, or give --over a smaller range around it"


def judged(found: SurfaceResult, model: Model, over: Over, say: Callable[[str], None]) -> SurfaceResult:
    """The searches with what the fit says of those that were held out, and the grid where it agrees with all."""
    held_out = [row for row in found.searches if row.use == "held_out"]
    say(f"Simulating {len(held_out)} searches that were held out.")
    predictions = {_lengths(row): model.predict(_lengths(row), row.rate) for row in held_out}
    searches = [
        replace(row, predicted=interval(predictions[_lengths(row)].rate)) if row.use == "held_out" else row
        for row in found.searches
    ]
    found = replace(found, searches=searches, engine=engine_row(model.fitted))
    refused = next(_refusals(found, model, predictions), None)
    if refused is not None:
        return replace(found, stage="refused", refused=refused)
    say(f"They agree. Simulating the {len(over.grid)} points of the grid, and lengths that are doubled.")
    grid = [_point(each, model) for each in predict_all(model, over.grid)]
    return replace(found, stage="given", grid=grid, what_if=list(_doubled(model, over.base)))


def _lengths(row: SearchedPoint) -> Lengths:
    return Lengths(row.input_tokens, row.output_tokens)


def interval(found: Estimate) -> Interval:
    """The interval of an estimate."""
    return Interval(found.low, found.high)


def engine_row(fitted: Fit) -> FittedEngine:
    """The engine as it is stored."""
    of_prompts, of_steps = fitted.rules(_CONTEXT)
    constants = [
        FittedConstant(name=each.name, value=each.value, low=each.low, high=each.high)
        for each in (*of_prompts, *of_steps, fitted.way)
    ]
    return FittedEngine(
        constants=constants,
        streams=fitted.streams,
        idle=fitted.idle,
        decodes=fitted.decodes,
        context=fitted.context,
    )


def _refusals(found: SurfaceResult, model: Model, predictions: dict[Lengths, Prediction]) -> Iterator[str]:
    """The reasons not to believe the fit."""
    for row in found.searches:
        if row.predicted is None:
            continue
        name, beyond = f"{row.input_tokens}x{row.output_tokens}", model.beyond(predictions[_lengths(row)].load)
        fitted = f"the fit says {_rates(row.predicted)}"
        if row.interval is None:
            yield f"the search that was held out at {name} has no interval ({row.headline}). Give it more --time"
        elif row.confirmed == "fails":
            yield f"a wave refuted the search that was held out at {name}. Search again with more --time"
        elif row.interval.high > WIDEST * row.interval.low:
            wide = f"{_rates(row.interval)} at {name} is too wide to check a fit"
            yield f"the interval {wide}. Give --time more seconds"
        elif row.predicted.high > WIDEST * row.predicted.low:
            yield f"at {name} {fitted}, which is too wide to be checked. {_TRY}"
        elif row.interval.low > row.predicted.high or row.predicted.low > row.interval.high:
            measured = f"at {name} the search that was held out found {_rates(row.interval)}"
            beside = f", with {beyond}" if beyond else ""
            yield f"{measured}, and {fitted}{beside}. {_TRY}"
        elif beyond:
            yield f"at {name} {fitted} with {beyond}. {_TRY}"


def _rates(found: Interval) -> str:
    return f"{between(found, '/s')}/s"


def _point(found: Prediction, model: Model) -> PredictedPoint:
    prompt, answer = found.lengths
    if beyond := model.beyond(found.load):
        return PredictedPoint(input_tokens=prompt, output_tokens=answer, beyond=beyond)
    rate = found.rate
    return PredictedPoint(input_tokens=prompt, output_tokens=answer, rate=rate.value, interval=interval(rate))


def _doubled(model: Model, base: Lengths) -> Iterator[Doubled]:
    """Answers, and prompts, that are twice as long as those in the middle; nothing of what is beyond the fit."""
    first = model.predict(base)
    for what, lengths in (
        ("answers", base._replace(answer=2 * base.answer)),
        ("prompts", base._replace(prompt=2 * base.prompt)),
    ):
        found = model.predict(lengths, first.rate.value / 2 or None)
        if any(not each.is_kept or model.beyond(each.load) for each in (first, found)):
            continue
        share = found.times(first)
        yield Doubled(
            what="answers" if what == "answers" else "prompts",
            input_tokens=base.prompt,
            output_tokens=base.answer,
            share=share.value,
            interval=interval(share),
        )
