"""What a client sees of an LLM engine in virtual time: requests alone, and at rates around its capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.embedded.llm.streams import Streams, one_after_another
from server_capacity.models.surface.serving import Server, serve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from server_capacity.models.surface.lengths import Lengths
    from server_capacity.search.limits import Limit

WAY_MS = 1.0
ALONE, LOADED = 15, 150
SHARES = (0.3, 0.7, 1.0, 1.3)
"""Of the capacity: the rates at which requests are sent, as a search does."""


def true_server(rules: EngineRules, limits: Sequence[Limit]) -> Server:
    """The engine itself, as its client sees it."""
    return Server(rules, tuple(limits), WAY_MS / 1e3)


def searched_streams(server: Server, lengths: Sequence[Lengths], seed: int) -> Streams:
    """The streams of requests alone and of a search at each of the lengths."""
    parts = []
    for place, each in enumerate(lengths):
        rate = server.capacity(each, seed=1000 + seed).rate
        parts += [_alone(server.rules, each, seed + place), _loaded(server.rules, each, rate, seed + place)]
    return one_after_another(parts)


def _alone(rules: EngineRules, lengths: Lengths, seed: int) -> Streams:
    apart_s = 1.1 * float(serve(rules, lengths, np.zeros(1)).last[0]) + 0.01
    return _seen(rules, lengths, np.arange(ALONE) * apart_s, seed)


def _loaded(rules: EngineRules, lengths: Lengths, rate: float, seed: int) -> Streams:
    gaps = np.random.default_rng(seed).exponential(size=(len(SHARES), LOADED)) / (rate * np.array(SHARES)[:, None])
    return _seen(rules, lengths, np.cumsum(gaps), seed)


def _seen(rules: EngineRules, lengths: Lengths, arrived_s: np.ndarray, seed: int) -> Streams:
    served, number = serve(rules, lengths, arrived_s), len(arrived_s)
    late = WAY_MS + np.random.default_rng(seed).normal(0, 0.3, (2, number))
    prompt, answer = np.full(number, float(lengths.prompt)), np.full(number, float(lengths.answer))
    first, last = 1e3 * served.first + late[0], 1e3 * served.last + late[1]
    return Streams(1e3 * served.arrived, first, last, prompt, prompt, answer)
