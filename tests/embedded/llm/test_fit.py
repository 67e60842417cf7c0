"""The constants of the engine are found again in the streams that it served, within their intervals."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli.endpoint.fitted_flags import take_fitted
from inference_benchmarker.embedded.llm.engine import Engine
from inference_benchmarker.embedded.llm.fit import fit
from inference_benchmarker.embedded.llm.measured import streams_of
from inference_benchmarker.embedded.llm.rules import PROFILES, EngineRules
from inference_benchmarker.embedded.llm.streams import Streams
from inference_benchmarker.embedded.llm.token_job import TokenJob
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.record import RequestRecord
from inference_benchmarker.wave.wave import Wave
from inference_benchmarker.words.units import NS
from tests.waves import observe, open_plan, stored

if TYPE_CHECKING:
    from pathlib import Path

WAY_MS = 1.0
RISING = ((1.0, 60), (4.0, 40), (8.0, 40))
PROMPTS = {"8b-h100-llm-d": (50, 400)}
ENGINES = {
    "8b-h100": PROFILES["8b-h100"],
    "8b-h100-llm-d": PROFILES["8b-h100-llm-d"],
    "a small cache": replace(PROFILES["8b-h100"], kv_tokens=80_000),
    "of the batch": replace(PROFILES["8b-h100"], prefill_ms=(0.0, 0.02, 8.0), step_ms=(0.0, 60.0, 15.0, 0.5)),
}


def served(
    rules: EngineRules,
    stages: tuple[tuple[float, int], ...] = RISING,
    prompts: tuple[int, int] = (50, 2000),
    seed: int = 1,
) -> Streams:
    """Random arrivals at each rate for so many seconds, with instants as a client sees them."""
    engine, draws, jobs = Engine(rules), random.Random(seed), []
    begin, now = 0.0, 0.0
    for rate, seconds in stages:
        begin += seconds
        while (now := now + draws.expovariate(rate)) < begin:
            output = draws.randrange(10, 100)
            jobs.append(engine.offer(round(now * NS), TokenJob(draws.randrange(*prompts), output, (), output)))
        now = begin
    engine.take_ready(round((begin + 1000) * NS))
    table = [
        (
            job.arrival_ns / 1e6,
            job.first_token_ns,
            job.finish_ns,
            job.prompt,
            job.prompt - (job.cached or 0),
            job.output,
        )
        for job in jobs
    ]
    sent, first, last, prompt, computed, output = np.array(table, np.float64).T
    late = WAY_MS + np.random.default_rng(seed).normal(0, 0.3, (2, len(jobs)))
    return Streams(sent, first / 1e6 + late[0], last / 1e6 + late[1], prompt, computed, output)


@pytest.mark.parametrize("name", ENGINES)
def test_the_constants_are_found_within_their_intervals(name: str) -> None:
    rules = ENGINES[name]
    truth = (*rules.prefill_ms, *rules.step_ms, WAY_MS)
    covered = []
    for seed in range(4):
        found = fit(served(rules, prompts=PROMPTS.get(name, (50, 2000)), seed=seed))
        for constant, true in zip((*chain(*found.rules(rules.kv_tokens)), found.way), truth, strict=True):
            covered.append(constant.low <= true <= constant.high)
            assert abs(true - constant.value) < 2 * (constant.high - constant.low)
    assert sum(covered) >= 0.9 * len(covered)


def test_a_constant_that_the_run_does_not_show_is_not_served() -> None:
    rules = ENGINES["8b-h100-llm-d"]
    (square, _, _), (of_square, of_context, base, each) = fit(served(rules, prompts=(50, 400))).rules(rules.kv_tokens)

    assert (square.value, of_square.value, of_context.value) == (0.0, 0.0, 0.0)
    assert base.value == pytest.approx(12, rel=0.01)
    assert each.value == pytest.approx(12 / 256, rel=0.2)


@pytest.mark.parametrize(
    ("stages", "prompts", "said"),
    [
        (((1.0, 30),), (50, 2000), "too few for a fit"),
        (RISING, (500, 501), "About as many tokens of each prompt"),
        (((14.0, 60),), (50, 2000), "requests found the engine idle"),
    ],
)
def test_what_a_run_cannot_tell_is_refused(
    stages: tuple[tuple[float, int], ...], prompts: tuple[int, int], said: str
) -> None:
    with pytest.raises(BenchmarkError, match=said):
        fit(served(PROFILES["8b-h100"], stages, prompts))


def test_one_load_is_refused() -> None:
    number = np.arange(200.0)
    first = number // 4 * 1000 + 50  # four at a time, always
    streams = Streams(first - 50, first, first + 990, 100 + number, 100 + number, np.full(200, 40.0))

    with pytest.raises(BenchmarkError, match="4 answers were generated at a time throughout"):
        fit(streams)


def together(*parts: Streams) -> Streams:
    """The streams of several servers behind one address."""
    return Streams(*(np.concatenate([getattr(each, name) for each in parts]) for name in Streams.__slots__))


def hit_unseen(streams: Streams, share: float, longer: float) -> Streams:
    """Of a share of the prompts, ``longer`` times as many tokens as were computed are reported, and none as cached."""
    hit = np.random.default_rng(5).random(len(streams)) < share
    prompt = np.where(hit, streams.prompt * longer, streams.prompt)
    return replace(streams, prompt=prompt, computed=prompt)


@pytest.mark.parametrize("name", ENGINES)
def test_several_servers_behind_one_address_are_refused(name: str) -> None:
    one, two = (served(ENGINES[name], prompts=PROMPTS.get(name, (50, 2000)), seed=seed) for seed in (1, 2))

    with pytest.raises(BenchmarkError, match="several servers behind one address"):
        fit(together(one, two))


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(("share", "longer"), [(0.5, 5), (0.5, 2), (0.1, 3)])
def test_a_cache_that_is_not_reported_is_refused(name: str, share: float, longer: float) -> None:
    streams = served(ENGINES[name], prompts=PROMPTS.get(name, (50, 2000)))

    with pytest.raises(BenchmarkError, match="prefix cache whose hits are not in its usage"):
        fit(hit_unseen(streams, share, longer))


def test_answers_that_are_held_up_on_their_way_are_refused() -> None:
    streams = served(PROFILES["8b-h100"])
    held = np.random.default_rng(5).random(len(streams)) < 0.3

    with pytest.raises(BenchmarkError, match="a proxy that holds streams up"):
        fit(replace(streams, first=np.where(held, streams.last - 0.5, streams.first)))


def test_a_value_is_within_its_own_interval() -> None:
    """Of this run, the fit of all constants has an interval of step A that 0 is outside of, and 0 is served."""
    found = fit(served(ENGINES["8b-h100-llm-d"], prompts=PROMPTS["8b-h100-llm-d"], seed=113))

    assert found.constants[3].value == 0.0
    assert all(each.low <= each.value <= each.high for each in found.constants)


def test_delays_on_the_way_are_no_misfit() -> None:
    streams = served(PROFILES["8b-h100"])
    late = np.random.default_rng(5).exponential(4, (2, len(streams)))

    assert fit(replace(streams, first=streams.first + late[0], last=streams.last + late[1])).streams == len(streams)


def wave_of(streams: Streams, **more: Any) -> Wave:
    """The wave of a client that measured these; ``more``: of every record."""
    records = [
        RequestRecord(
            index, 0, at[0], at[0], at[2], "ok", "", None, 0, at[1], at[2], size[2], size[0], size[2]
        )._replace(metrics={"cached_tokens": float(size[0] - size[1])}, **more)
        for index, (at, size) in enumerate(
            zip(
                np.rint(np.stack([streams.sent, streams.first, streams.last], axis=1) * 1e6).astype(int).tolist(),
                np.stack([streams.prompt, streams.computed, streams.output], axis=1).astype(int).tolist(),
                strict=True,
            )
        )
    ]
    facts = observe(open_plan("5", None, len(records)), records)
    return Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})


def test_a_run_directory_becomes_flags_of_an_engine(tmp_path: Path) -> None:
    streams = served(ENGINES["of the batch"])
    run_dir = stored(wave_of(streams), tmp_path)
    options: dict[str, Any] = {
        "llm": str(run_dir.path),
        "kv_tokens": "100000",
        "prefill_ms": None,
        "step_ms": "0:0:9:0",
    }

    said = take_fitted(options)

    assert (options["llm"], options["step_ms"]) == ("8b-h100", "0:0:9:0"), "what is given stays"
    square, each, base = map(float, options["prefill_ms"].split(":"))
    assert square == 0
    assert (each, base) == pytest.approx((0.02, 8), rel=0.02)
    assert f"Fitted to {len(streams)} streams of {run_dir.path}" in said
    assert "of 100,000 tokens of KV cache" in said
    assert f"--prefill-ms={options['prefill_ms']} --step-ms=" in said.splitlines()[-1]


def test_cached_tokens_are_not_computed() -> None:
    streams = served(PROFILES["8b-h100"], ((2.0, 30),))
    streams = replace(streams, computed=np.minimum(streams.prompt, 100))

    found = streams_of(wave_of(streams))

    assert found.computed.tolist() == streams.computed.tolist()
    assert found.first == pytest.approx(streams.first)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"chunks": 1}, "No request streamed its answer in several pieces"),
        ({"tokens_in": None}, "The server counted no input tokens"),
        ({"outcome": "failed", "error": "HttpError 500"}, "100% of the requests failed"),
    ],
)
def test_a_wave_without_what_a_fit_needs_is_refused(more: dict[str, Any], said: str) -> None:
    wave = wave_of(served(PROFILES["8b-h100"], ((2.0, 10),)), **more)

    with pytest.raises(BenchmarkError, match=said):
        streams_of(wave)


def test_a_wave_that_is_invalid_is_refused(tmp_path: Path) -> None:
    """A worker that was lost sent what nobody recorded, and the engine was busy with that, too."""
    wave = wave_of(served(ENGINES["of the batch"]))
    run_dir = stored(replace(wave, lost_workers=(0,)), tmp_path)

    with pytest.raises(BenchmarkError, match="its wave is INVALID"):
        take_fitted({"llm": str(run_dir.path), "kv_tokens": None, "prefill_ms": None, "step_ms": None})


def test_the_command_refuses_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = stored(wave_of(served(PROFILES["8b-h100"], ((2.0, 10),))), tmp_path)

    assert cli.main(["endpoint", "--llm", str(run_dir.path)]) == 2
    assert "too few for a fit" in capsys.readouterr().err
    assert cli.main(["endpoint", "--llm", str(tmp_path / "none")]) == 2
    assert "it must be one of 8b-h100" in capsys.readouterr().err


def test_a_few_prompts_that_were_held_up_are_left_out() -> None:
    rules = ENGINES["of the batch"]
    streams = served(rules, ((0.3, 150), (4.0, 60), (8.0, 30)))
    idle = np.flatnonzero(streams.found_idle)
    assert len(idle) > 30
    first = streams.first.copy()
    first[idle[[3, 9, 17]]] += (65.0, 40.0, 50.0)

    (_, each, base), _ = fit(replace(streams, first=first)).rules(rules.kv_tokens)

    assert (each.value, base.value) == pytest.approx((0.02, 8.0), rel=0.05)
