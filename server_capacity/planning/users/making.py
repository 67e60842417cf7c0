"""A plan for users from what is asked to what is written: the search and its waves read, both routings compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.data.json_file import UNREADABLE, foreign
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import MISSED, OK, worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from server_capacity.planning.folder import read_search
from server_capacity.planning.measured import Refused
from server_capacity.planning.totals import headline
from server_capacity.planning.users.comparing import Waves, compare
from server_capacity.planning.users.content import users_plan
from server_capacity.results.capacity_folder import FILE
from server_capacity.results.types.plan import PlanResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.request import PlanRequest
    from server_capacity.planning.users.sizing import Costing
    from server_capacity.results.types.users_plan import UsersPlan

OF_SEARCH = ("warming", "exploration", "narrowing", "confirmation")
"""The waves that the engine is fitted to, in the order in which they were sent."""


def make_users_plan(
    asked: PlanRequest, costing: Callable[[Measured], Costing], tell: Callable[[str], None]
) -> PlanResult:
    """The plan, or the reason why there is none; BenchmarkError where a folder cannot be read."""
    (folder,) = asked.capacities
    count = asked.instances[0] if asked.instances else None
    found = read_search(folder, count, asked.instance_type, asked.tier, for_users=True)
    if isinstance(found, Refused):
        return _result(asked, None, found, asked.name or folder.name)
    tell("Simulating both ways to route conversations, which may take a minute.")
    try:
        compared = compare(found, lambda: _waves_of(found), asked.kv_tokens)
        made = users_plan(asked, found, compared, costing(found))
    except UNREADABLE as error:
        raise foreign(Path(found.folder) / FILE, error) from None
    if isinstance(made, str):
        refused = Refused.of(made, found.warnings, worst_exit_code(MISSED, found.exit_code))
        return _result(asked, None, refused, asked.name or found.name)
    return _result(asked, made)


def _result(asked: PlanRequest, made: UsersPlan | None, refused: Refused | None = None, name: str = "") -> PlanResult:
    codes = [] if made is None else [made.exit_code]
    codes += [] if refused is None else [refused.exit_code]
    found = PlanResult(
        schema_version=SCHEMA_VERSION,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        exit_code=worst_exit_code(OK, *codes),
        utilisation=asked.utilisation,
        spare=asked.spare,
        limits=[] if made is None else made.limits,
        endpoints=[],
        users=made,
        cost=None if made is None else made.cost,
        refused=[] if refused is None else [f"{name}: {refused.why}."],
    )
    return replace(found, headline=headline(found))


def _waves_of(search: Measured) -> Waves:
    """The waves of a search that are below its folder; BenchmarkError where none is."""
    from inference_benchmarker.wave.wave import Wave

    names, folder = search.data.waves or {}, Path(search.folder)
    waves: dict[str, Wave] = {}
    for name in dict.fromkeys(name for kind in OF_SEARCH for name in names.get(kind, ())):
        if (folder / name).is_dir():
            waves[name] = Wave.load(folder / name)
    if not waves:
        raise BenchmarkError("the search has none of its waves beside it any more.")
    kinds = (names.get(kind, ()) for kind in ("confirmation", "exploration"))
    at_low = next((found for kind in kinds if (found := [waves[name] for name in kind if name in waves])), [])
    return Waves(list(waves.values()), at_low)
