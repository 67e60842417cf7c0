"""One value of a stored plan or ranking forged, with a digest of the forgery: what follows from the rest is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker.cli import main
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.errors import BenchmarkError
from server_capacity.planning import folder as plan_folder
from server_capacity.results import capacity_folder, ranking_folder
from server_capacity.results.codec import check_plan, check_ranking
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from tests.capacities import searched
from tests.hostile import leaves
from tests.rankings import ranked

if TYPE_CHECKING:
    from pathlib import Path

TYPE = "ml.m5.xlarge"
FREE = (
    "invocations_per_instance",
    "peak_rps",
    "least_rps",
    "per_million",
    "growth_per_min",
    "high",
    "minimum",
    "maximum",
)
"""Numbers of a plan that nothing else in it decides."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan with a price."""
    folder = tmp_path_factory.mktemp("plan")
    search = searched(rate=105.0, interval={"low": 100.0, "high": 110.0}, endpoint={"instances": 2})
    capacity_folder.save(folder, search)
    price = ("--instance-type", TYPE, "--price", f"{TYPE}=0.23")
    assert main(["plan", str(folder), "--target-rps", "1000", *price, "--output-dir", str(folder / "out")]) == 0
    (made,) = (folder / "out").glob("*_plan")
    return made


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def forged(data: dict[str, Any], path: tuple[Any, ...], value: object) -> dict[str, Any]:
    made = deepcopy(data)
    at(made, path[:-1])[path[-1]] = value
    return made


def test_no_number_of_a_plan_is_believed_that_does_not_follow(plan: Path) -> None:
    data = encoded(plan_folder.read(plan))
    chosen = [path for path in leaves(data["endpoints"]) if not {*FREE} & {*path}]
    decided = [path for path in chosen if path[1] in ("per_instance", "options", "chosen", "target_rps", "cost")]
    assert len(decided) > 30
    believed = []
    for path in decided:
        before = at(data["endpoints"], path)
        for value in (-before - 1, 3 * before + 1):
            try:
                check_plan(forged(data, ("endpoints", *path), type(before)(value)))
            except ValueError:
                continue
            believed.append((path, value))
    assert believed == [], "\n".join(map(str, believed))


@pytest.mark.parametrize("value", [-3, 0])
def test_a_forged_plan_is_refused_in_a_line(
    plan: Path, tmp_path: Path, value: int, capsys: pytest.CaptureFixture[str]
) -> None:
    data = forged(encoded(plan_folder.read(plan)), ("endpoints", 0, "chosen", "instances"), value)
    write_with_digest(tmp_path / plan_folder.FILE, data)
    assert main(["report", str(tmp_path)]) == 2
    stored = capsys.readouterr()
    assert stored.out == ""
    assert len(stored.err.splitlines()) == 1


@pytest.mark.parametrize(
    "change", [{"instances_for_target": 1}, {"instances_for_target": 99}, {"cost_month": 1.0}, {"cost_hour": 99.0}]
)
def test_what_a_row_of_a_ranking_costs_follows_from_its_rate(change: dict[str, Any]) -> None:
    data = encoded(ranked(1000, ("m5", 300, 0.32), ("c5", 250, 0.204)))
    check_ranking(data)
    data["rows"][0] |= change
    with pytest.raises(ValueError, match="row 1"):
        check_ranking(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"exit_code": 3}, "has exit code 3, not 0"), ({"rate": 171.0}, "a rate other than")],
)
def test_a_ranking_is_held_against_its_searches(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    search = searched(headline="174/s")
    (tmp_path / "a_capacity").mkdir()
    capacity_folder.save(tmp_path / "a_capacity", search)
    row = row_of({"kind": "a"}, "a_capacity", search, None, Aim())
    write_with_digest(
        tmp_path / ranking_folder.FILE, encoded(ranking([row], Aim()))
    )  # which keeps no digest of the searches
    ranking_folder.load(tmp_path)
    write_with_digest(tmp_path / "a_capacity" / "capacity.json", {**encoded(search), **change})
    with pytest.raises(BenchmarkError, match=said):
        ranking_folder.load(tmp_path)
