"""Rows and rankings as they stand in ranking.json, for those that show them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from server_capacity.results.capacity_folder import read
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from server_capacity.results.types.price import Price
from tests.capacities import found, searched
from visualization.pages.ranking import ranking_figures

if TYPE_CHECKING:
    from pathlib import Path

    from server_capacity.results.types.ranking import RankedRow, RankingResult
    from visualization.figures.figures import Figures

POINTS = [{"rate": rate, "p99": 0.02 + rate / 5000, "share_over": [rate / 1e5]} for rate in (50.0, 100.0, 200.0)]
CURVE = [{"rate": 10.0, "p50": 0.02, "p99": 0.03}, {"rate": 1000.0, "p50": 0.04, "p99": 0.3}]


def priced(instance_type: str, per_hour: float) -> Price:
    return Price(instance_type, per_hour, region="us-east-1", date="2026-11-23", source="given")


def row(
    name: str, low: float, high: float | None = None, *, price: float | None = None, aim: Aim | None = None, **more: Any
) -> RankedRow:
    """The row of an instance type that holds from ``low`` to ``high``; ``more`` of its capacity.json."""
    high = 1.06 * low if high is None else high
    rate = (low + high) / 2
    resources = {"all": [{"metric": "CPUUtilization", "at_low": 0.61, "unit": "share"}]}
    more = {"resources": resources, **more}
    data = searched(rate=rate, interval={"low": low, "high": high}, headline=f"{rate}/s", curve=CURVE, **more)
    cost = None if price is None else priced(name, price)
    return row_of({"instance_type": name}, f"x_{name}_capacity", data, cost, aim or Aim())


def traffic(name: str, low: float, high: float) -> RankedRow:
    """The row of a traffic to one endpoint."""
    return replace(row("a", low, high), variant={"payload.pattern": name})


def ranked(target_rps: float | None, *asked: tuple[str, float, float | None], **more: Any) -> RankingResult:
    """The ranking of types by name, lower end and price of an hour."""
    aim = Aim(target_rps)
    return ranking([row(name, low, price=price, aim=aim) for name, low, price in asked], aim, **more)


def drawn(folder: Path, data: RankingResult) -> Figures:
    """The figures of a ranking, each of whose searches has a folder."""
    for name in (each.capacity for each in data.rows if each.capacity):
        (folder / name).mkdir()
        (folder / name / "capacity.json").write_text(json.dumps(found(schema_version=1, curve=POINTS)))
    return ranking_figures(data, folder, read)
