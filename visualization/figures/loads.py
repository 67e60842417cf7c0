"""Runs -> the load that each was sent, and what it was sent to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import OpenLoop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visualization.figures.runs import Run


def target_of(run: Run) -> tuple[str, ...]:
    """Endpoint, requests and load model: runs of the same make one capacity curve. Rates and users have no order."""
    what = None if run.summary is None else run.summary.environment.get("file_sha256")
    plan = run.plan
    where = () if plan is None else (plan.endpoint_name, plan.url, plan.factory_settings)
    return str(what), _kind(run), *(str(each or "") for each in where)


def _kind(run: Run) -> str:
    return "" if run.plan is None else type(run.plan.load).__name__


def load_of(run: Run) -> tuple[str, float]:
    """The load that was offered; a rate and as many requests in flight are two loads."""
    return _kind(run), offered(run)


def offered(run: Run) -> float:
    """Its rate, or its requests in flight; 0 where a damaged plan tells neither."""
    if run.plan is None:
        return 0.0
    load = run.plan.load
    return float(load.rate) if isinstance(load, OpenLoop) else float(load.concurrency)


def changes(run: Run) -> bool:
    """Tells whether what was offered changed by plan."""
    load = None if run.plan is None else run.plan.load
    if not isinstance(load, OpenLoop):
        return False
    return len({rate for stage in load.stages for rate in (stage.from_rps, stage.to_rps)}) > 1 or bool(load.replay)


def is_ladder(runs: Sequence[Run]) -> bool:
    """Tells whether all runs were sent to one thing, at steady loads of which there are several."""
    waves = [run for run in runs if run.has_wave]
    one = len({target_of(run) for run in waves}) == 1 and not any(map(changes, waves))
    return one and all(map(offered, waves)) and len({offered(run) for run in waves}) > 1


def in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs as they were given; of three loads and more, where each run has another one, by their load."""
    climbs = is_ladder(runs) and len({offered(run) for run in runs}) == len(runs) > 2
    return tuple(sorted(runs, key=offered) if climbs else runs)
