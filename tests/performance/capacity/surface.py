"""Capacities at lengths nobody sent, simulated: ``python -m tests.performance capacity-surface [--levels N]``.

Of each engine the searches of a surface are simulated, and an engine is fitted to what a client sees of them. Its
capacity at each point of the grid is compared with that of the engine itself, in a run of six times as many requests.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
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

_FAST = PROFILES["8b-h100"]
_BATCH = replace(_FAST, prefill_ms=(0.0, 0.02, 8.0), step_ms=(0.0, 60.0, 15.0, 0.5))
ENGINES: dict[str, tuple[EngineRules, tuple[str, ...], tuple[int, int]]] = {
    "8b-h100, TTFT p95 < 500 ms and TPOT p95 < 25 ms": (_FAST, ("ttft.p95<500ms", "tpot.p95<25ms"), (100, 2000)),
    "8b-h100-llm-d, TTFT p95 < 1 s": (PROFILES["8b-h100-llm-d"], ("ttft.p95<1s",), (50, 400)),
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
    print(
        "engine                                                        within  believed  off by, mean  half-width, mean"
    )
    for name, (rules, texts, prompts) in ENGINES.items():
        limits = limits_of([Slo.parse(text) for text in texts], 0.95)
        server, over = true_server(rules, limits), Over(Range(*prompts, options.levels), Range(20, 200, options.levels))
        fitted = fit(searched_streams(server, over.fitted, options.seed))
        model = Model(fitted, limits, {each: float(each) for each in prompts})
        within, believed, off, width = 0, 0, 0.0, 0.0
        for found in predict_all(model, over.grid):
            with patch("server_capacity.models.surface.serving.REQUESTS", _LONGER * REQUESTS):
                truth = server.capacity(found.lengths, seed=99, near=found.rate.value).rate
            within += found.rate.low <= truth <= found.rate.high
            believed += not model.beyond(found.load)
            off += abs(found.rate.value / truth - 1) / len(over.grid)
            width += (found.rate.high - found.rate.low) / 2 / found.rate.value / len(over.grid)
        print(f"{name:60} {within:3} of {len(over.grid)} {believed:9} {off:13.1%} {width:17.1%}", flush=True)
