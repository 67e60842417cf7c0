"""Runs -> the load that each was sent, and what it was sent to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from visualization.figures.runs import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from visualization.figures.runs import Run


def target_of(run: Run) -> tuple[str, ...]:
    """Endpoint, requests and load model: runs of the same make one capacity curve. Rates and users have no order."""
    what, how = below(run.facts, "environment", "file_sha256"), below(run.plan, "load", "kind")
    return str(what), str(how), *(str(run.plan.get(key) or "") for key in ("endpoint_name", "url", "factory_settings"))


def load_of(run: Run) -> tuple[str, float]:
    """The load that was offered; a rate and as many requests in flight are two loads."""
    return str(below(run.plan, "load", "kind")), offered(run)


def offered(run: Run) -> float:
    """Its rate, or its requests in flight; 0 where a damaged plan tells neither."""
    load = run.plan.get("load")
    given = (load.get("rate") or load.get("concurrency")) if isinstance(load, dict) else None
    try:
        return float(given or 0)
    except (TypeError, ValueError):  # a damaged plan
        return 0.0


def changes(run: Run) -> bool:
    """Tells whether what was offered changed by plan."""
    stages = below(run.plan, "load", "stages")
    rows = stages if isinstance(stages, list) else []
    rates = {str(below(row, name)) for row in rows for name in ("from_rps", "to_rps")}
    return len(rates) > 1 or bool(below(run.plan, "load", "replay"))


def is_ladder(runs: Sequence[Run]) -> bool:
    """Tells whether all runs were sent to one thing, at steady loads of which there are several."""
    waves = [run for run in runs if run.has_wave]
    one = len({target_of(run) for run in waves}) == 1 and not any(map(changes, waves))
    return one and all(map(offered, waves)) and len({offered(run) for run in waves}) > 1


def in_order(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs as they were given; of three loads and more, where each run has another one, by their load."""
    climbs = is_ladder(runs) and len({offered(run) for run in runs}) == len(runs) > 2
    return tuple(sorted(runs, key=offered) if climbs else runs)
