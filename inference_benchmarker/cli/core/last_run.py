"""The run that a command takes which was given none: the last one below the usual output directory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

    from inference_benchmarker.wave.run_folders import FoundRun

_FUTURE = timedelta(minutes=1)
"""So far clocks of hosts lie apart that share a folder."""
OF_WAVES = ("ab.json", "capacity.json")
OF_ANSWERS = (*OF_WAVES, "fleet_plan.json", "proof.json", "ranking.json", "surface.json", "tiers.json")
"""The files by which folders with more than a run are known."""


def last_run(command: str, *others: str, quiet: bool | None = False) -> Path:
    """The directory of the last run, or the folder with one of some ``others``, which is said.

    BenchmarkError where there is none.
    """
    from inference_benchmarker.cli.core.output_flags import OUTPUT_DIR
    from inference_benchmarker.system.files import closed
    from inference_benchmarker.wave.run_folders import latest_runs

    try:
        (found,) = latest_runs(OUTPUT_DIR, 1, *others)
    except BenchmarkError:
        message = f"There is no run in {OUTPUT_DIR}, the default folder for waves."
        raise BenchmarkError(message, f"Name a run directory: `{command} DIR`.") from None
    except PermissionError as error:
        raise BenchmarkError(closed(error)) from None
    if not quiet:
        say(f"{found.path} is the last run{why_last(found)}.")
    return found.path


def why_last(*found: FoundRun) -> str:
    """The start of runs whose names do not say it, and what does; and whether a clock was set back."""
    renamed = [each for each in found if each.by]
    clauses = [f"{each.path.name} began at {each.began:%Y-%m-%d %H:%M:%S} UTC by {each.by}" for each in renamed]
    later = [each.path.name for each in found if each.began > datetime.now(UTC) + _FUTURE]
    clauses += [f"{name} began later than now: was this clock set back?" for name in later]
    return f" ({'; '.join(clauses)})" if clauses else ""
