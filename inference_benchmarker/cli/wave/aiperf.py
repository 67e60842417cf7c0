"""aiperf after a wave or instead of one: its stage, its turn, and printing what it measured."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from inference_benchmarker.cli.core.embedded import DEMO_URL
from inference_benchmarker.cli.core.terminal import print_report, report_width, say, say_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.server_metric import Source
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave
    from server_capacity.aiperf.export import AiperfResult
    from server_capacity.aiperf.options import AiperfOptions
    from server_capacity.aiperf.stage import AiperfStage


@contextmanager
def aiperf_stage(aiperf: AiperfOptions | None, plan: WavePlan, options: dict[str, Any]) -> Iterator[AiperfStage | None]:
    """The stage with its requests made, before any load is sent; None where aiperf is not to run."""
    if aiperf is None:
        yield None
        return
    from server_capacity.aiperf.stage import prepared

    tell = say_nothing if options["quiet"] else say
    with prepared(aiperf, plan, aiperf.url or os.environ[DEMO_URL], os.environ, tell) as stage:
        yield stage


def run_aiperf(stage: AiperfStage, wave: Wave | None, sources: list[Source], options: dict[str, Any]) -> int:
    """Run aiperf, after the wave where there is one, and print what it measured; the exit code of both."""
    outcome = stage.follow(wave, sources)
    if outcome.problem:
        say(f"benchmark: {outcome.problem}")
    if outcome.result is not None or options["json"]:
        print_aiperf(wave, outcome.result, as_json=options["json"])
    return outcome.exit_code


def print_aiperf(wave: Wave | None, result: AiperfResult | None, *, as_json: bool | None) -> None:
    """Its block, below the wave's where there was one; as JSON one object of both."""
    from server_capacity.aiperf.report import aiperf_text

    if as_json:
        fields = {} if wave is None else wave.to_json()
        print(json.dumps({**fields, "aiperf": None if result is None else result.to_json()}, indent=2), flush=True)
    elif result is not None:
        print_report(("" if wave is None else "\n") + aiperf_text(result, report_width()))
