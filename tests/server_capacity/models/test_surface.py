"""Capacities that a fit predicts are those of the engine that served, and a fit that is wrong is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from inference_benchmarker.embedded.llm.fit import fit
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.plan.slo import Slo
from server_capacity.models.surface.judging import judged
from server_capacity.models.surface.lengths import Lengths, Over, Range
from server_capacity.models.surface.predicting import Model
from server_capacity.models.surface.serving import serve
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.surface import SearchedPoint, SurfaceResult
from server_capacity.search.limits import limits_of
from tests.engine_streams import searched_streams, true_server

if TYPE_CHECKING:
    from server_capacity.models.surface.serving import Server
    from server_capacity.search.limits import Limit

OVER = Over(Range(50, 400, 2), Range(8, 32, 2))
FAST = PROFILES["8b-h100"]
ENGINES = {
    "8b-h100": (FAST, "ttft.p95<300ms", "tpot.p95<25ms"),
    "8b-h100-llm-d": (PROFILES["8b-h100-llm-d"], "ttft.p95<1s"),
    "of the batch": (replace(FAST, prefill_ms=(0.0, 0.02, 8.0), step_ms=(0.0, 60.0, 15.0, 0.5)), "latency.p95<2s"),
}


def limits(*texts: str) -> tuple[Limit, ...]:
    return limits_of([Slo.parse(text) for text in texts], 0.95)


def model_of(server: Server, seed: int = 1, over: Over = OVER) -> Model:
    fitted = fit(searched_streams(server, over.fitted, seed))
    return Model(fitted, server.limits, {length: length for length in (over.prompts.low, over.prompts.high)}, 5, 4)


def point(lengths: Lengths, use: str, rate: float, width: float = 0.05) -> SearchedPoint:
    """A search that found a rate."""
    return SearchedPoint(
        input_tokens=lengths.prompt,
        output_tokens=lengths.answer,
        use="fit" if use == "fit" else "held_out",
        capacity=lengths.text,
        outcome="found",
        rate=rate,
        interval=Interval(rate * (1 - width), rate * (1 + width)),
        exit_code=0,
    )


def searched(server: Server, over: Over = OVER, width: float = 0.05) -> SurfaceResult:
    """Searches that found the truth."""
    rows = [point(each, "fit", 1.0) for each in over.fitted]
    rows += [point(each, "held_out", server.capacity(each, seed=77).rate, width) for each in over.held_out]
    texts = [limit.expression for limit in server.limits]
    return SurfaceResult(schema_version=1, limits=texts, stage="searching", exit_code=0, searches=rows)


@pytest.mark.parametrize("name", ENGINES)
def test_capacities_at_lengths_that_nobody_sent_are_within_their_intervals(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules, *texts = ENGINES[name]
    server = true_server(rules, limits(*texts))
    model = model_of(server)
    predicted = [model.predict(each) for each in OVER.held_out]
    monkeypatch.setattr("server_capacity.models.surface.serving.REQUESTS", 4000)
    truth = [server.capacity(each.lengths, seed=99, near=each.rate.value).rate for each in predicted]

    inside = [each.rate.low <= true <= each.rate.high for each, true in zip(predicted, truth, strict=True)]
    assert sum(inside) >= len(inside) - 1
    assert [each.rate.value for each in predicted] == pytest.approx(truth, rel=0.08)
    assert all(each.rate.high < 1.35 * each.rate.low for each in predicted)


@pytest.fixture(scope="module")
def given() -> SurfaceResult:
    """A surface that is given."""
    rules, *texts = ENGINES["8b-h100-llm-d"]
    server = true_server(rules, limits(*texts))
    return judged(searched(server), model_of(server), OVER, lambda _: None)


def test_a_surface_is_given_where_what_was_held_out_agrees(given: SurfaceResult) -> None:
    assert (given.stage, given.refused) == ("given", None)
    assert [(row.input_tokens, row.output_tokens) for row in given.grid] == [(50, 8), (50, 32), (400, 8), (400, 32)]
    held_out = [row for row in given.searches if row.use == "held_out"]
    assert all(row.predicted is not None for row in held_out)
    assert [row.predicted for row in given.searches if row.use == "fit"] == [None] * 3


def test_what_twice_as_long_would_mean_is_the_ratio_of_two_capacities(given: SurfaceResult) -> None:
    rules, *texts = ENGINES["8b-h100-llm-d"]
    server = true_server(rules, limits(*texts))
    for row in given.what_if:
        base = Lengths(row.input_tokens, row.output_tokens)
        doubled = base._replace(**{"answer" if row.what == "answers" else "prompt": 2 * base[row.what == "answers"]})
        one, two = (server.capacity(each, seed=99).rate for each in (base, doubled))
        assert row.interval.low * 0.95 <= two / one <= row.interval.high * 1.05
    assert [row.what for row in given.what_if] == ["answers", "prompts"]


@dataclass(frozen=True, slots=True)
class Cliff(EngineRules):
    """Steps of many answers take three times as long, which no line through those of few shows."""

    def decode_ms(self, context: int, answers: int) -> float:
        return EngineRules.decode_ms(self, context, answers) * (3 if answers > 6 else 1)


def test_an_engine_with_a_cliff_is_refused() -> None:
    """The fit is of searches below it: what is held out has more answers at a time."""
    rules, *texts = ENGINES["8b-h100-llm-d"]
    plain = true_server(rules, limits(*texts))
    cliff = true_server(Cliff(**{name: getattr(rules, name) for name in EngineRules.__slots__}), plain.limits)
    found = judged(searched(cliff), model_of(plain), OVER, lambda _: None)

    assert found.stage == "refused"
    assert found.refused is not None
    assert "held out found" in found.refused
    assert "the fit says" in found.refused
    assert (found.grid, found.what_if) == ([], [])
    assert any(row.predicted for row in found.searches), "both intervals are shown"


def test_an_engine_whose_batch_is_bounded_is_refused() -> None:
    """The model knows of no bound, and the searches never had more answers at a time."""
    rules = replace(ENGINES["of the batch"][0], max_num_seqs=8)
    server = true_server(rules, limits("latency.p95<2s"))
    found = judged(searched(server), model_of(server), OVER, lambda _: None)

    assert found.stage == "refused"
    assert "answers at a time, and at most 8 were measured" in (found.refused or "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"interval": None, "rate": None, "headline": "No rate meets ttft"}, "has no interval (No rate meets ttft)"),
        ({"interval": Interval(0.5, 5.0)}, "is too wide to check a fit"),
    ],
)
def test_what_cannot_check_a_fit_refuses_it(given: SurfaceResult, change: dict[str, object], said: str) -> None:
    rules, *texts = ENGINES["8b-h100-llm-d"]
    server = true_server(rules, limits(*texts))
    rows = [replace(row, **change) if row.use == "held_out" else row for row in given.searches]  # type: ignore[arg-type]
    found = judged(replace(given, searches=rows, grid=[]), model_of(server), OVER, lambda _: None)
    assert said in (found.refused or "")


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
