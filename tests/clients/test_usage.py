"""The tokens of a request, of any server's usage."""

from __future__ import annotations

from typing import Any

import pytest

from inference_benchmarker.clients import read_usage

ANTHROPIC = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 30, "output_tokens": 7}


@pytest.mark.parametrize(
    ("usage", "timings", "tokens_in", "tokens_out", "metrics"),
    [
        (ANTHROPIC, None, 125, 7, {"cached_tokens": 90}),
        ({**ANTHROPIC, "cache_creation_input_tokens": None}, None, 95, 7, {"cached_tokens": 90}),
        ({**ANTHROPIC, "cache_read_input_tokens": 0}, None, 35, 7, {"cached_tokens": 0}),
        ({**ANTHROPIC, "cache_read_input_tokens": -1}, None, 5, 7, None),
        (
            {"prompt_tokens": 100, "completion_tokens": 2, "cache_read_input_tokens": 60},
            None,
            100,
            2,
            {"cached_tokens": 60},
        ),
        ({"prompt_tokens": 100, "cache_read_input_tokens": 101}, None, 100, None, None),
        (
            {"input_tokens": 50, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 16}},
            None,
            50,
            9,
            {"cached_tokens": 16},
        ),
        (
            {"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}},
            None,
            None,
            9,
            {"reasoning_tokens": 4},
        ),
        ({"prompt_tokens": 40, "completion_tokens": 1}, {"cache_n": 32, "prompt_n": 8}, 40, 1, {"cached_tokens": 32}),
        ({"prompt_tokens": 40}, {"cache_n": 41}, 40, None, None),
        ({"prompt_tokens": 40}, {"cache_n": -1}, 40, None, None),
        ({"prompt_tokens": 40}, ["cache_n"], 40, None, None),
        (
            {"prompt_tokens": 40, "prompt_tokens_details": {"cached_tokens": 0}},
            {"cache_n": 32},
            40,
            None,
            {"cached_tokens": 0},
        ),
        ({"prompt_tokens_details": [1], "input_tokens": "5"}, None, None, None, None),
        ([1], None, None, None, None),
    ],
)
def test_tokens_are_read_of_every_shape(
    usage: Any, timings: Any, tokens_in: int | None, tokens_out: int | None, metrics: Any
) -> None:
    response = read_usage(usage, "m", "stop", timings=timings)
    assert (response.tokens_in, response.tokens_out, response.metrics) == (tokens_in, tokens_out, metrics)
    assert (response.model, response.finish_reason) == ("m", "stop")
