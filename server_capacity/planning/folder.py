"""The folders of a plan: those of searches that it reads, and ``<UTC timestamp>_plan/`` that it writes."""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.digest import digest_of
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import MISSED, OK, worst_exit_code
from inference_benchmarker.system.files import is_there, replace_file
from inference_benchmarker.wave.provenance import not_checked
from server_capacity.planning.measured import Measured, Refused, measured
from server_capacity.planning.searched_requests import requests_of
from server_capacity.planning.text import to_text
from server_capacity.results import capacity_folder, ranking_folder, tiers_folder
from server_capacity.results.codec import check_plan
from server_capacity.results.ranking_order import inherited_code
from server_capacity.results.stored import Stored, writable
from server_capacity.results.text.ranking_headline import left_open_beside
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.price import GIVEN
from server_capacity.results.types.result_status import left_open_by, standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import PlanResult, SearchedRequests
    from server_capacity.results.types.price import Price

    Files = Mapping[str, str]

KIND = "plan"
FILE = "fleet_plan.json"
_STORED = Stored(FILE, "fleet_plan.txt", to_text, check_plan)
load, read, is_plan = _STORED.load, _STORED.read, _STORED.is_in


def read_search(
    folder: Path, instances: int | None, instance_type: str, tier: str = "", *, for_users: bool = False
) -> Measured | Refused:
    """A search, the best one of a ranking or that of a ``tier``, or the reason why no plan can rest on it.

    BenchmarkError for none of these.

    A reason has the exit code of the search or of its ranking, too, and the words for it.
    ``instances`` of ``instance_type`` were measured, where they are given. ``for_users``: see ``measured``.
    """
    if tiers_folder.is_tiers(folder):
        best = _Best(_folder_of_tier(folder, tier))
    elif tier:
        raise BenchmarkError(f"{folder}: has no tiers, and --tier {tier} names one.", "Leave --tier out.")
    else:
        best = _best_of(folder) if ranking_folder.is_ranking(folder) else _Best(folder)
    folder = best.folder
    if not capacity_folder.is_capacity(folder):
        raise BenchmarkError(
            f"{folder}: is not the folder of a search (it has no {capacity_folder.FILE}).",
            "Give a <timestamp>_capacity folder that `benchmark capacity` wrote, a <timestamp>_ranking or _tiers.",
        )
    data, _, stored = capacity_folder.load(folder)
    try:
        found = measured(data, str(folder), instances, instance_type, for_users=for_users)
        if isinstance(found, str):
            code = worst_exit_code(MISSED, standing(data).exit_code, best.ranking_code)
            return Refused.of(found, [*left_open_by(data), *best.beside], code)
        file, requests = _sent_with(data, folder)
        return replace(
            found,
            factories_file=file,
            requests=requests,
            unchecked=not_checked(folder, stored),
            variant=best.variant,
            tied=best.tied,
            price=best.price,
            beside=best.beside,
            ranking_code=best.ranking_code,
        )
    except UNREADABLE as error:
        raise foreign(folder / capacity_folder.FILE, error) from None


def changed_since(found: PlanResult) -> Iterator[str]:
    """Clauses on the searches of a plan that are where they were, and not any more what it was made from.

    They lie beside it, and so it stands on its own numbers: those that are gone are not mentioned.
    """
    sources = [(each.folder, each.digest) for plan in found.endpoints for each in plan.capacities]
    sources += [] if found.users is None else [(found.users.capacity, found.users.digest)]
    for name, digest in sources:
        folder = Path(name)
        if not is_there(folder / capacity_folder.FILE):
            continue
        if digest is not None and _digest_of(folder / capacity_folder.FILE) != digest:
            yield f"{folder} is no longer the search that the plan was made from: it was changed or replaced"
            continue
        try:
            capacity_folder.read(folder)
        except BenchmarkError as error:
            yield f"the search that it was made from is damaged: {error.message.rstrip('.')}"


def _digest_of(file: Path) -> str | None:
    """The digest of a search's content, None of what is no JSON."""
    try:
        return digest_of(read_json(file))
    except BenchmarkError:
        return None


@dataclass(frozen=True, slots=True)
class _Best:
    """The search of a ranking's first row, and what the ranking says of it: see ``Measured``."""

    folder: Path
    variant: dict[str, str] = field(default_factory=dict)
    tied: tuple[str, ...] = ()
    price: Price | None = None
    beside: tuple[str, ...] = ()
    ranking_code: int = OK


def _folder_of_tier(folder: Path, tier: str) -> Path:
    found = tiers_folder.read(folder)
    names = ", ".join(row.tier for row in found.rows)
    row = next((row for row in found.rows if row.tier == tier), None)
    if row is None:
        asked = f"and none is called {tier}" if tier else "and a plan is for the limits of one"
        raise BenchmarkError(f"{folder}: has the tiers {names}, {asked}.", f"Give --tier {found.rows[0].tier}, say.")
    if row.capacity is None:
        raise BenchmarkError(f"{folder}: {row.tier} was not searched ({row.headline}).", "Give another --tier.")
    return folder / row.capacity


def _best_of(folder: Path) -> _Best:
    found = ranking_folder.read(folder)
    row = next((row for row in found.rows if row.capacity), None)
    if row is None:
        raise BenchmarkError(f"{folder}: no variant of this ranking was searched.", "Give another folder.")
    name = row.capacity or ""
    if "/" in name or name in (".", ".."):
        raise BenchmarkError(
            f"{folder}: its first row names {name!r}, which is not a folder in it.", "Give another one."
        )
    tied = tuple(label_of(found.rows[place - 1].variant) for place in row.tied_with)
    return _Best(
        folder / name,
        row.variant,
        tied,
        row.price and _ranked_price(row.price),
        tuple(left_open_beside(found, row)),
        inherited_code(found),
    )


def _ranked_price(price: Price) -> Price:
    """The price that stands in a ranking; its source is the ranking where it was given on the command line."""
    return replace(price, source="given with the ranking") if price.source == GIVEN else price


def _sent_with(data: CapacityResult, folder: Path) -> tuple[str | None, SearchedRequests | None]:
    """The factories file and the requests of a search's waves; None where no wave of it is there."""
    from inference_benchmarker.wave.reader import plan_of
    from inference_benchmarker.wave.run_dir import RunDir

    waves = data.waves or {}
    for name in (*(waves.get("confirmation") or ()), *(waves.get("exploration") or ())):
        run_dir = RunDir(folder / str(name))
        try:
            described = read_json(run_dir.plan)
            plan = plan_of(run_dir, described)
        except BenchmarkError:
            continue
        environment = described.get("environment")
        found = requests_of(plan, environment if isinstance(environment, dict) else {})
        return (None if plan.factories_file is None else str(plan.factories_file)), found
    return None, None


def save(folder: Path, found: PlanResult, files: Files) -> PlanResult:
    """Write the plan, its text, and ``files`` by their names, which may lie in a folder below: see ``Stored.save``."""
    with writable(folder), _removed_if_empty(folder):
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            replace_file(path, text)
        return _STORED.write(folder, found)


@contextmanager
def _removed_if_empty(folder: Path) -> Iterator[None]:
    """Leave no folder of a plan of which nothing was written."""
    try:
        yield
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        raise


def json_text(data: Mapping[str, Any]) -> str:
    """The text of a file that AWS's command line reads."""
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
