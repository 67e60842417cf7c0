"""A mix of models: which of them an arrival asks, all its turns and attempts alike. Pure."""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import isfinite
from typing import Any, Self

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.numbers import uniform
from inference_benchmarker.words.redact import quoted

MOST_MODELS = 1_000
_NAMED = b'"model"'
_SALT = 0x30DE_1A11  # else the draws were those of weighted payloads


@dataclass(frozen=True)
class ModelMix:
    """Models and their ``weights``; an arrival's is a function of the seed and its number."""

    text: str
    names: tuple[str, ...]
    weights: tuple[float, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``a=3,b=1``; a name alone has the weight 1. Raises BenchmarkError."""
        pairs = [_pair(part.strip()) for part in text.split(",")]
        names, weights = tuple(name for name, _ in pairs), tuple(weight for _, weight in pairs)
        are_good = all(names) and all(isfinite(weight) and weight > 0 for weight in weights)
        if not are_good or len(set(names)) < len(names) or len(names) > MOST_MODELS or not text.isprintable():
            raise BenchmarkError(
                f"--model-mix {quoted(text.strip())} is not a mix of models.",
                f"Write each model once, with its weight: a=3,b=1; weights are above 0; at most {MOST_MODELS:,}.",
            )
        return cls(text.strip(), names, weights)

    def choose(self, seed: int, number: int) -> str:
        """The model that an arrival asks."""
        return self.names[bisect_right(self._sums, uniform(seed ^ _SALT, number) * self._sums[-1], hi=self._last)]

    @cached_property
    def _sums(self) -> tuple[float, ...]:
        return tuple(accumulate(self.weights))

    @property
    def _last(self) -> int:
        return len(self.names) - 1


def with_model(payload: Any, model: str) -> Any:
    """The payload that asks this model: an object, its JSON without one, or a tuple with one. Raises TypeError."""
    if isinstance(payload, dict):
        return {**payload, "model": model}
    if isinstance(payload, tuple) and any(isinstance(part, dict) for part in payload):
        return tuple(with_model(part, model) if isinstance(part, dict) else part for part in payload)
    if isinstance(payload, bytes) and payload[:1] == b"{" and payload[-1:] == b"}" and _NAMED not in payload:
        rest = payload[1:-1].strip(b" \t\r\n")
        return b'{%b"model":%b}' % (b"%b," % rest if rest else b"", json.dumps(model).encode())
    found = type(payload).__name__
    raise TypeError(f"--model-mix sets the model of a payload that is a dict, and this one is a {found}")


def _pair(text: str) -> tuple[str, float]:
    name, equals, weight = text.rpartition("=")
    if not equals:
        return text, 1.0
    try:
        return name.strip(), float(weight)
    except ValueError:
        return name.strip(), -1.0
