"""Capacities at lengths nobody sent, simulated: ``python -m tests.performance capacity-surface [--levels N]``.

Of each engine the searches of a surface are simulated, and an engine is fitted to what a client sees of them. Its
capacity at each point of the grid where it is believed is compared with that of the engine itself, in a run of six
times as many requests.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING
from unittest.mock import patch

from inference_benchmarker.embedded.llm.fit import fit
from inference_benchmarker.embedded.llm.rules import PROFILES
from inference_benchmarker.plan.slo import Slo
from server_capacity.models.surface.lengths import Over, Range
from server_capacity.models.surface.predicting import Model, predict_all
from server_capacity.models.surface.serving import REQUESTS
from server_capacity.search.limits import limits_of
from tests.engine_streams import searched_streams, true_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.embedded.llm.rules import EngineRules
    from server_capacity.models.surface.predicting import Prediction
    from server_capacity.models.surface.serving import Server

_FAST = PROFILES["8b-h100"]
_BATCH = replace(_FAST, prefill_ms=(0.0, 0.02, 8.0), step_ms=(0.0, 60.0, 15.0, 0.5))
ENGINES: dict[str, tuple[EngineRules, tuple[str, ...], tuple[int, int]]] = {
    "8b-h100, TTFT p95 < 500 ms and TPOT p95 < 25 ms": (_FAST, ("ttft.p95<500ms", "tpot.p95<25ms"), (100, 2000)),
    "8b-h100-llm-d, TTFT p95 < 1 s": (PROFILES["8b-h100-llm-d"], ("ttft.p95<1s",), (50, 400)),
    "8b-h100-llm-d, TTFT p95 < 1 s and TPOT p95 < 20 ms": (
        PROFILES["8b-h100-llm-d"],
        ("ttft.p95<1s", "tpot.p95<20ms"),
        (50, 400),
    ),
    "steps by the batch, TTFT p95 < 300 ms and TPOT p95 < 60 ms": (
        _BATCH,
        ("ttft.p95<300ms", "tpot.p95<60ms"),
        (100, 2000),
    ),
}
_LONGER = 6


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.performance capacity-surface", description=__doc__)
    parser.add_argument("--levels", type=int, default=3, metavar="N", help="of prompts and of answers (default: 3)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the searches (default: 1)")
    options = parser.parse_args(arguments)
    print(f"{'engine':58}  believed  within  off by, mean  half-width, mean")
    for name, (rules, texts, prompts) in ENGINES.items():
        limits = limits_of([Slo.parse(text) for text in texts], 0.95)
        server, over = true_server(rules, limits), Over(Range(*prompts, options.levels), Range(20, 200, options.levels))
        fitted = fit(searched_streams(server, over.fitted, options.seed))
        model = Model(fitted, limits, {each: float(each) for each in prompts})
        believed = [found for found in predict_all(model, over.grid) if not model.beyond(found.load)]
        pairs = [(found.rate, _truth(server, found)) for found in believed]
        within = sum(rate.low <= truth <= rate.high for rate, truth in pairs)
        off = fmean(abs(rate.value / truth - 1) for rate, truth in pairs)
        width = fmean((rate.high - rate.low) / 2 / rate.value for rate, _ in pairs)
        print(f"{name:58} {len(believed):3} of {len(over.grid)} {within:7} {off:13.1%} {width:17.1%}", flush=True)


def _truth(server: Server, found: Prediction) -> float:
    with patch("server_capacity.models.surface.serving.REQUESTS", _LONGER * REQUESTS):
        return server.capacity(found.lengths, seed=99, near=found.rate.value).rate
