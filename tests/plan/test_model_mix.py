"""A mix of models: its words, its shares, and what it sets in a payload."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.model_mix import ModelMix, with_model


def test_a_mix_has_the_shares_that_it_says() -> None:
    mix = ModelMix.parse("org/a:7b=3, b=1,c")
    assert (mix.names, mix.weights) == (("org/a:7b", "b", "c"), (3.0, 1.0, 1.0))
    counts = Counter(mix.choose(5, number) for number in range(-500, 10_000))
    for name, weight in zip(mix.names, mix.weights, strict=True):
        assert counts[name] / 10_500 == pytest.approx(weight / 5, abs=0.02)
    assert [mix.choose(5, n) for n in range(50)] != [mix.choose(6, n) for n in range(50)]


@pytest.mark.parametrize("text", ["", "a=0", "a=-1", "a=x", "a=1,a=2", "=1", "a=nan", "a=inf", "a=1,", "a\n=1"])
def test_what_is_no_mix_is_said(text: str) -> None:
    with pytest.raises(BenchmarkError, match="is not a mix of models"):
        ModelMix.parse(text)


@pytest.mark.parametrize(
    ("payload", "asks"),
    [
        ({"model": "x", "n": 1}, {"model": "a", "n": 1}),
        (b'{"n":1}', b'{"n":1,"model":"a"}'),
        (b"{ }", b'{"model":"a"}'),
        (("session", {"n": 1}), ("session", {"n": 1, "model": "a"})),
    ],
)
def test_a_payload_asks_the_model_and_stays_as_it_was(payload: Any, asks: Any) -> None:
    before = repr(payload)
    assert with_model(payload, "a") == asks
    assert repr(payload) == before


@pytest.mark.parametrize("payload", [b'{"model": 1}', b"[]", "{}", ("a", "b"), None, [{}]])
def test_a_payload_without_an_object_has_no_model(payload: Any) -> None:
    with pytest.raises(TypeError, match="--model-mix sets the model of a payload that is a dict"):
        with_model(payload, "a")
