"""Pages and pictures beside an answer, which stands all the same where they cannot be drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.cli.core.terminal import say_nothing
from inference_benchmarker.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from server_capacity.results.types.capacity import CapacityResult
    from server_capacity.results.types.plan import PlanResult
    from server_capacity.results.types.ranking import RankingResult
    from server_capacity.results.types.surface import SurfaceResult
    from server_capacity.results.types.tiers import TiersResult
    from server_capacity.results.types.users_plan import UsersPlan
    from visualization.figures.figures import Figures
    from visualization.pareto.result import Pareto

    Tell = Callable[[str], None]


def draw_capacity(found: CapacityResult, folder: Path, tell: Tell) -> Path | None:
    """Those of a search, and the path of the page."""
    from visualization.figures.capacity import is_capacity, read_capacities
    from visualization.pages.series import make_figures

    if not is_capacity(folder):  # the answer says that it could not be stored
        return None
    return _draw(
        lambda: make_figures((), None, read_capacities([folder], {}, lambda _: found)), folder, "capacity", tell
    )


def draw_tiers(found: TiersResult, searched: Mapping[Path, CapacityResult], folder: Path, tell: Tell) -> Path | None:
    """Those of several tiers side by side, and the path of the page."""
    from visualization.figures.capacity import is_capacity, read_capacities
    from visualization.pages.series import make_figures

    stored = [path for path in searched if is_capacity(path)]
    if not stored:
        return None
    figures = make_figures((), None, read_capacities(stored, {}, searched.__getitem__))
    return _draw(lambda: replace(figures, title="Tiers", lead=found.headline), folder, "tiers", tell)


def draw_surface(found: SurfaceResult, folder: Path, tell: Tell) -> Path | None:
    """Those of a surface, and the path of the page."""
    from server_capacity.results.text.surface import doubled_text
    from visualization.pages.surface import surface_figures

    return _draw(lambda: surface_figures(found, doubled_text), folder, "surface", tell)


def draw_ranking(found: RankingResult, folder: Path, tell: Tell) -> Path | None:
    """Those of a ranking, and the path of the page."""
    from server_capacity.results.capacity_folder import read
    from visualization.pages.ranking import ranking_figures

    return _draw(lambda: ranking_figures(found, folder, read), folder, "ranking", tell)


def draw_plan(found: PlanResult, folder: Path, tell: Tell) -> Path | None:
    """Those of a plan, and the path of the page."""
    from visualization.pages.plan import plan_figures

    return _draw(
        lambda: plan_figures(found) if found.users is None else _of_users(found, found.users),
        folder,
        "fleet_plan",
        tell,
    )


def _of_users(found: PlanResult, plan: UsersPlan) -> Figures:
    from server_capacity.planning.users.text import options_rows, sentences
    from visualization.pages.users_plan import users_figures

    return users_figures(plan, found.headline, list(options_rows(plan)), list(sentences(plan)))


def draw_pareto(found: Pareto, folder: Path, tell: Tell) -> Path | None:
    """Those of a frontier, and the path of the page."""
    from visualization.pages.pareto import pareto_figures

    return _draw(lambda: pareto_figures(found), folder, "pareto", tell, ("html", "png", "svg"))


def _draw(
    figures: Callable[[], Figures], folder: Path, name: str, tell: Tell, formats: Sequence[str] = ("html", "png")
) -> Path | None:
    from visualization.pages.series import write_report

    try:
        written = list(write_report(figures(), formats, folder, say_nothing, name))
    except BenchmarkError as error:
        tell(str(error))
        return None
    return next((path for path in written if path.suffix == ".html"), None)
