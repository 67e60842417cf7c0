"""Pages and pictures beside an answer, which stands all the same where they cannot be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say_nothing
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import PlanResult
    from server_capacity.results.types.ranking import RankingResult
    from visualization.figures.figures import Figures

    Tell = Callable[[str], None]


def draw_capacity(found: CapacityResult, folder: Path, tell: Tell) -> None:
    """Those of a search."""
    from visualization.figures.capacity import is_capacity, read_capacities
    from visualization.pages.series import make_figures

    if is_capacity(folder):  # else the answer says that it could not be stored
        _draw(lambda: make_figures((), None, read_capacities([folder], {}, lambda _: found)), folder, "capacity", tell)


def draw_ranking(found: RankingResult, folder: Path, tell: Tell) -> None:
    """Those of a ranking."""
    from server_capacity.results.capacity_folder import read
    from visualization.pages.ranking import ranking_figures

    _draw(lambda: ranking_figures(found, folder, read), folder, "ranking", tell)


def draw_plan(found: PlanResult, folder: Path, tell: Tell) -> None:
    """Those of a plan."""
    from visualization.pages.plan import plan_figures

    _draw(lambda: plan_figures(found), folder, "fleet_plan", tell)


def _draw(figures: Callable[[], Figures], folder: Path, name: str, tell: Tell) -> None:
    from visualization.pages.series import write_report

    try:
        for _ in write_report(figures(), ("html", "png"), folder, say_nothing, name):
            pass
    except BenchmarkError as error:
        tell(str(error))
