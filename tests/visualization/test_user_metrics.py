"""Values of the user's own on the pages: bars, a column where one is limited, and a run's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker import Wave
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave import store
from inference_benchmarker.wave.run_dir import RunDir
from tests.waves import observe, on_time, open_plan
from visualization.figures import Bars
from visualization.run_page import run_page
from visualization.runs import read_runs
from visualization.series import make_figures

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.figures import Figures


def run(path: Path, hits: int, **values: float) -> Wave:
    """A stored wave of 250 requests, of which so many in ten hit a cache."""
    path.mkdir()
    plan = open_plan("10", "25", slos=(Slo.parse("metric.hit.mean>=0.7"),))
    rows = [each._replace(metrics={"hit": float(each.index % 10 < hits), **values}) for each in on_time(plan)]
    facts = observe(plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    store.save_plan(RunDir(path), plan, {})
    return store.save(wave, RunDir(path))


def figures(*paths: Path) -> Figures:
    return make_figures(read_runs(paths, {}, Wave.load, lambda _: None))


def test_each_has_bars_of_every_statistic(tmp_path: Path) -> None:
    run(tmp_path / "a", 5, rows=3.0)
    run(tmp_path / "b", 8)
    (section,) = [each for each in figures(tmp_path / "a", tmp_path / "b").sections if each.key == "metrics"]
    hit, rows = section.charts
    assert isinstance(hit, Bars)
    assert isinstance(rows, Bars)
    assert (hit.title, rows.title) == ("metric.hit", "metric.rows")
    assert [bar.value for bar in hit.statistics["mean"]] == [0.5, 0.8]
    assert [bar.value for bar in rows.statistics["p99"]] == [3.0, None]
    assert [(level.value, level.statistic) for level in hit.levels] == [(0.7, "mean")]


def test_one_that_is_limited_is_a_column_of_the_first_table(tmp_path: Path) -> None:
    run(tmp_path / "a", 5)
    run(tmp_path / "b", 8)
    found = figures(tmp_path / "a", tmp_path / "b").overview
    assert found is not None
    (place,) = [place for place, column in enumerate(found.columns) if column.title == "metric.hit mean"]
    assert [(row[place].text, row[place].tone) for row in found.rows] == [("0.5", "bad"), ("0.8", "")]


def test_a_run_without_any_has_no_such_section(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    plan = open_plan("10", "25")
    facts = observe(plan, on_time(plan))
    store.save_plan(RunDir(path), plan, {})
    store.save(Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__}), RunDir(path))
    assert "metrics" not in [each.key for each in figures(path).sections]


def test_a_runs_page_has_a_row_for_each(tmp_path: Path) -> None:
    page = run_page(run(tmp_path / "a", 5, rows=12_345.0))
    assert "Values of your own" in page
    assert "12,345" in page
    assert "metric.hit.mean 0.5" in page, "the limit is told without a unit"
