"""The highest rate that this client holds, and with how many workers: ``find_rps_saturation``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from client_capacity.conditions import Conditions, numbers
from client_capacity.deprecated_names import (
    RPS_ARGUMENTS,
    RPS_ARGUMENTS_GONE,
    arguments_of_today,
)
from client_capacity.saturation_result import KIND, LEAST_GAIN, ClientLimit, RpsSaturation, WorkersRow
from client_capacity.search import SearchSettings, search
from client_capacity.trial import Trials, trials
from client_capacity.worker_saturation import (
    HEADROOM,
    saturate_worker,
    store,
)
from inference_benchmarker.system.host import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable


GROWTH = 1.25


def find_rps_saturation(
    factories_file: str | Path,
    saturation_users: float | None = None,
    *,
    endpoint_name: str | None = None,
    lag_limit_s: float = 0.005,
    step_time_s: float = 3.0,
    max_rps: float = 20_000,
    wanted_rps: float | None = None,
    max_workers: int | None = None,
    output_dir: str | Path = ".tmp",
    say: Callable[[str], None] = lambda _: None,
    **former: Any,
) -> RpsSaturation:
    """The highest rate that this client can send with the ``invoke`` of this file, and the number of workers for it.

    ``saturation_users`` is the rate one worker holds, as ``find_worker_saturation`` found it (None: measured
    first, more roughly). More workers are tried until all together hold less than 5% more, up to ``max_workers``
    (default: one more than the cores this process may use), or until they hold ``wanted_rps`` with room for hiccups.
    ``max_rps`` is the most that is tried per worker. What counts as held, ``say=print``, the run directories and what
    is raised, and ``former``: as for ``find_worker_saturation``.
    """
    todays = arguments_of_today("find_rps_saturation", former, RPS_ARGUMENTS, RPS_ARGUMENTS_GONE)
    given = numbers(
        saturation_users=saturation_users,
        lag_limit_s=lag_limit_s,
        step_time_s=step_time_s,
        max_rps=max_rps,
        wanted_rps=wanted_rps,
        **{"max_workers": max_workers, **todays},
    )
    conditions = Conditions(
        factories_file=Path(factories_file),
        endpoint_name=endpoint_name,
        worker_rps=given.pop("saturation_users"),
        output_dir=Path(output_dir),
        **given,
    )
    return measure_client(conditions, say)


def measure_client(conditions: Conditions, say: Callable[[str], None]) -> RpsSaturation:
    """``find_rps_saturation`` of conditions that are put together; stored in a folder of its own."""
    with trials(conditions, KIND, say) as tried:
        rows, limited_by = _measure_rows(conditions, tried)
        result = RpsSaturation(tuple(rows), limited_by, conditions, tried.folder, tried.environment, usable_cores())
        store(result, tried.folder)
        return result


def _measure_rows(conditions: Conditions, tried: Trials) -> tuple[list[WorkersRow], ClientLimit]:
    """A row for each number of workers, and why there are no more."""
    enough = math.inf if conditions.wanted_rps is None else conditions.wanted_rps / HEADROOM
    rows = [_first_row(conditions, tried, enough)]
    most = conditions.max_workers or (conditions.hosts.workers if conditions.hosts else usable_cores() + 1)
    while (end := limit_reached(rows, enough, conditions.max_rps)) is None:
        workers = rows[-1].workers + 1
        if workers > most:
            return rows, "max_workers"
        tried.say(f"{workers} workers:")
        limit = min(conditions.max_rps * workers, enough)
        settings = SearchSettings(start=rows[-1].rate * LEAST_GAIN, growth=GROWTH, max_rate=limit, repeats=0)
        try:
            rows.append(WorkersRow.of(workers, search(tried.measure(workers), settings, tried.say)))
        except KeyboardInterrupt:
            return rows, "interrupted"
    return rows, end


def _first_row(conditions: Conditions, tried: Trials, enough: float) -> WorkersRow:
    if conditions.worker_rps is not None:
        return WorkersRow(1, conditions.worker_rps, None)
    tried.say("1 worker:")
    return WorkersRow.of(
        1, saturate_worker(tried, min(conditions.max_rps, enough), repeats=0, start=conditions.start_rps)
    )


def limit_reached(rows: list[WorkersRow], enough: float, max_rps: float) -> ClientLimit | None:
    """Why no more workers are tried; None where they are."""
    last = rows[-1]
    # What a short step completed of the most that is wanted may round to a little less.
    held_it = last.limited_by == "max_rps" and enough <= max_rps * last.workers
    if last.limited_by in ("server", "errors", "interrupted"):
        return last.limited_by
    if last.rate >= enough or held_it:
        return "wanted"
    if not last.rate or (len(rows) > 1 and last.rate < LEAST_GAIN * rows[-2].rate):
        return "client"
    return None
