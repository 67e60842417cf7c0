"""Capacities that a fit predicts are those of the engine that served, and a fit that is wrong is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from inference_benchmarker.embedded.llm.fit import fit
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo
from server_capacity.models.surface.judging import judged
from server_capacity.models.surface.lengths import Lengths, Over, Range
from server_capacity.models.surface.predicting import Model, Prediction
from server_capacity.models.surface.serving import Load, serve
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.surface import SearchedPoint, SurfaceResult
from server_capacity.search.limits import limits_of
from tests.engine_streams import searched_streams, true_server

if TYPE_CHECKING:
    from inference_benchmarker.embedded.llm.fit import Fit
    from server_capacity.search.limits import Limit

OVER = Over(Range(50, 400, 2), Range(8, 32, 2))
FAST = PROFILES["8b-h100"]


def limits(*texts: str) -> tuple[Limit, ...]:
    return limits_of([Slo.parse(text) for text in texts], 0.95)


LATENCY = limits("latency.p95<800ms")
BATCH = replace(FAST, prefill_ms=(0.0, 0.02, 8.0), step_ms=(0.0, 60.0, 15.0, 0.5))
ENGINES = {
    "8b-h100": true_server(FAST, limits("ttft.p95<300ms", "tpot.p95<25ms")),
    "8b-h100-llm-d": true_server(PROFILES["8b-h100-llm-d"], limits("ttft.p95<1s")),
    "of the batch": true_server(BATCH, LATENCY),
}


@cache
def fitted(name: str) -> Fit:
    """The fit of searches at its lengths."""
    return fit(searched_streams(ENGINES[name], OVER.fitted, seed=1))


def model_of(name: str) -> Model:
    return Model(fitted(name), ENGINES[name].limits, {50: 50, 400: 400}, arrivals=5, draws=4)


@pytest.mark.parametrize("name", ENGINES)
def test_capacities_at_lengths_that_nobody_sent_are_within_their_intervals(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = model_of(name)
    predicted = [model.predict(each) for each in OVER.held_out[:2]]
    monkeypatch.setattr("server_capacity.models.surface.serving.REQUESTS", 3000)
    truth = [ENGINES[name].capacity(each.lengths, seed=99, near=each.rate.value).rate for each in predicted]

    inside = [each.rate.low <= true <= each.rate.high for each, true in zip(predicted, truth, strict=True)]
    assert any(inside), "90% of many: tests.performance capacity-surface"
    assert [each.rate.value for each in predicted] == pytest.approx(truth, rel=0.1)
    assert all(each.rate.high < 1.5 * each.rate.low for each in predicted)


@dataclass(frozen=True, slots=True)
class Cliff(EngineRules):
    """Steps of many answers take three times as long, which no line through those of few shows."""

    def decode_ms(self, context: int, answers: int) -> float:
        return EngineRules.decode_ms(self, context, answers) * (3 if answers > 8 else 1)


def test_an_engine_with_a_cliff_is_refused() -> None:
    """Either no constants explain the searches, or what is held out disagrees; here it is the former."""
    cliff = true_server(Cliff(**{name: getattr(BATCH, name) for name in EngineRules.__slots__}), LATENCY)

    with pytest.raises(BenchmarkError, match="off those of an engine whose answers share its steps"):
        fit(searched_streams(cliff, OVER.fitted, seed=1))


def test_a_bound_of_the_batch_that_the_model_does_not_know_is_noticed() -> None:
    """No search had more answers at a time, and the prediction takes more."""
    bounded = true_server(replace(BATCH, max_num_seqs=8), LATENCY)
    model = Model(fit(searched_streams(bounded, OVER.fitted, seed=1)), LATENCY, {50: 50, 400: 400}, 2, 2)
    found = model.predict(OVER.held_out[0])

    assert model.beyond(found.load).endswith("answers at a time, and at most 8 were measured")


class Sure(Model):
    """A model that knows: half as much where answers or prompts are twice as long, to 5%, whatever was measured."""

    spread = 0.01

    def predict(self, lengths: Lengths, near: float | None = None) -> Prediction:  # noqa: ARG002 - as Model's
        rates = 1e5 / (lengths.prompt * lengths.answer) * (1 + self.spread * np.arange(-2.0, 3.0))
        return Prediction(lengths, rates, rates, Load(lengths.answer, 1.0))


class Unsure(Sure):
    """One whose constants may be such that no request keeps the limits."""

    spread = 0.5


def judge(decodes: int = 1000, kind: type[Sure] = Sure, **changes: Any) -> SurfaceResult:
    """The surface of searches that agree with it; ``changes``: of those that are held out."""
    model = kind(replace(fitted("8b-h100-llm-d"), decodes=decodes), LATENCY, {50: 50, 400: 400})
    rows = [point(each, "fit") for each in OVER.fitted]
    rows += [replace(point(each, "held_out"), **changes) for each in OVER.held_out]
    found = SurfaceResult(schema_version=1, limits=["latency.p95<800ms"], stage="searching", exit_code=0, searches=rows)
    return judged(found, model, OVER, lambda _: None)


def point(lengths: Lengths, use: Literal["fit", "held_out"]) -> SearchedPoint:
    """A search that found what the model knows."""
    rate = 1e5 / (lengths.prompt * lengths.answer)
    return SearchedPoint(
        input_tokens=lengths.prompt,
        output_tokens=lengths.answer,
        use=use,
        capacity=lengths.text,
        outcome="found",
        rate=rate,
        interval=Interval(rate * 0.95, rate * 1.05),
        exit_code=0,
    )


def test_a_surface_is_given_where_what_was_held_out_agrees() -> None:
    given = judge()

    assert (given.stage, given.refused) == ("given", None)
    assert [(row.input_tokens, row.output_tokens) for row in given.grid] == [(50, 8), (50, 32), (400, 8), (400, 32)]
    assert [row.predicted is not None for row in given.searches] == [False] * 3 + [True] * 3
    assert [(row.what, round(row.share, 2)) for row in given.what_if] == [("answers", 0.5), ("prompts", 0.5)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"interval": Interval(1e4, 1.1e4), "rate": 1e4}, "held out found 10,000 to 11,000/s, and the fit says"),
        ({"interval": None, "rate": None, "headline": "No rate meets ttft"}, "has no interval (No rate meets ttft)"),
        ({"interval": Interval(0.5, 5000.0)}, "is too wide to check a fit. Give --time more seconds"),
        (
            {"confirmed": "fails"},
            "a wave refuted the search that was held out at 141x16. Search again with more --time",
        ),
        ({"kind": Unsure}, "at 141x16 the fit says 0 to 89/s, which is too wide to be checked. Search at the length"),
        ({"decodes": 5}, "answers at a time, and at most 5 were measured"),
    ],
)
def test_a_fit_that_is_not_believed_gives_no_surface(changes: dict[str, Any], said: str) -> None:
    found = judge(**changes)

    assert found.stage == "refused"
    assert said in " ".join((found.refused or "").split())
    assert (found.grid, found.what_if) == ([], [])
    assert all(row.predicted for row in found.searches if row.use == "held_out"), "both intervals are shown"


def test_a_point_beyond_what_was_measured_has_no_capacity() -> None:
    grid = judge(decodes=20).grid
    assert [(row.rate is None, row.beyond[:2]) for row in grid] == [(False, ""), (True, "32")] * 2


def test_the_load_of_an_engine_is_that_of_its_steps() -> None:
    """Two answers at a time, of 100 tokens after prompts of 50."""
    served = serve(FAST, Lengths(50, 100), np.zeros(2))
    assert served.load(50).answers == 2
    assert served.load(50).context == pytest.approx(300, rel=0.02)


def test_no_rate_keeps_a_limit_that_a_request_alone_is_over() -> None:
    server = true_server(FAST, limits("ttft.p95<1ms"))
    assert server.capacity(Lengths(50, 8), seed=1).rate == 0


def test_lengths_that_are_held_out_are_not_among_those_of_the_fit() -> None:
    over = Over(Range(100, 2000, 4), Range(20, 200, 4))
    assert not {*over.fitted} & {*over.held_out}
    assert len({each.prompt for each in over.fitted}) == 3, "of three, for what is quadratic in the prompt"
    assert len(over.grid) == 16
    assert (over.grid[0], over.grid[-1]) == ((100, 20), (2000, 200))
    assert 2 * over.base.answer <= 200
