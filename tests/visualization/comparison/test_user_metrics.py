"""Values of the user's own on the pages: bars, a column where one is limited, and a run's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference_benchmarker import Wave
from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.wave import writer
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir
from tests.waves import make_run, observe, on_time, open_plan
from visualization.comparison.comparison import compare
from visualization.comparison.estimates import Ratio
from visualization.comparison.intervals import Estimates, ratio_error
from visualization.comparison.report import to_markdown, to_text
from visualization.comparison.result import result_of
from visualization.figures.figures import Bars
from visualization.figures.reading import read_runs
from visualization.pages.series import make_figures
from visualization.run_page import run_page

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.figures.figures import Figures


def run(path: Path, hits: int, **values: float) -> Wave:
    """A stored wave of 250 requests, of which so many in ten hit a cache."""
    path.mkdir()
    plan = open_plan("10", "25", slos=(Slo.parse("metric.hit.mean>=0.7"),))
    rows = [each._replace(metrics={"hit": float(each.index % 10 < hits), **values}) for each in on_time(plan)]
    facts = observe(plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    save_plan(RunDir(path), plan, {})
    return writer.save(wave, RunDir(path))


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
    save_plan(RunDir(path), plan, {})
    writer.save(Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__}), RunDir(path))
    assert "metrics" not in [each.key for each in figures(path).sections]


def test_a_runs_page_has_a_row_for_each(tmp_path: Path) -> None:
    page = run_page(run(tmp_path / "a", 5, rows=12_345.0))
    assert "Your own metrics" in page
    assert "12,345" in page
    assert "metric.hit.mean 0.5" in page, "the limit is shown without a unit"


def test_a_mean_and_a_percentile_have_intervals_of_blocks(tmp_path: Path) -> None:
    """Those of a mean are the time's formula; below 0 nothing ends them."""
    wave = run(tmp_path / "a", 5, depth=-2.0)
    seconds = Estimates(wave, [("metric.hit", "mean"), ("metric.depth", "p50"), ("metric.depth", "mean")])
    hit, middle, mean = (
        seconds.of("metric.hit", "mean"),
        seconds.of("metric.depth", "p50"),
        seconds.of("metric.depth", "mean"),
    )
    assert isinstance(hit, Ratio)
    assert (hit.value, hit.error, hit.blocks) == (0.5, 0.0, 25), "each second has the same ten"
    assert middle is not None
    assert mean is not None
    assert middle.value == mean.value == -2.0
    assert mean.ends(2.0) == (-2.0, -2.0)
    assert middle.ends(2.0)[1] <= -2.0


@given(st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=9), min_size=20, max_size=30))
@settings(max_examples=20)
def test_an_interval_holds_the_mean_of_what_was_reported(seconds: list[list[float]]) -> None:
    plan = open_plan("10", str(len(seconds)))
    rows = [
        each._replace(
            metrics={"x": seconds[number // 10][number % 10]} if number % 10 < len(seconds[number // 10]) else None
        )
        for number, each in enumerate(on_time(plan))
    ]
    facts = observe(plan, rows)
    wave = Wave(**{name: getattr(facts, name) for name in facts.__dataclass_fields__})
    found = Estimates(wave, [("metric.x", "mean")]).of("metric.x", "mean")
    assert isinstance(found, Ratio)
    counts, sums = np.array([len(each) for each in seconds]), np.array([sum(each) for each in seconds])
    assert found.value == pytest.approx(sums.sum() / counts.sum(), abs=1e-9)
    assert found.error == pytest.approx(ratio_error(sums, counts.astype(float)), abs=1e-9)
    low, high = found.ends(2.0)
    assert low <= found.value <= high


def test_a_comparison_has_their_changes_without_an_outcome(tmp_path: Path) -> None:
    base, new = run(tmp_path / "a", 5, rows=12_345.0), run(tmp_path / "b", 8)
    found = compare(base, new)
    by_name = {row.name: row for row in found.own}
    assert list(by_name) == [f"metric.{name}.{stat}" for name in ("hit", "rows") for stat in ("mean", "p50", "p99")]
    mean = by_name["metric.hit.mean"]
    assert mean.change == pytest.approx(0.6)
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low - 1e-9 <= 0.6 <= mean.high + 1e-9
    assert by_name["metric.rows.mean"].new is None
    assert not any(row.metric.startswith("metric.") for row in found.rows), "more tests make all intervals wider"
    text = to_text(found)
    (line,) = [line for line in text.splitlines() if "metric.hit.mean" in line]
    assert line.split()[:4] == ["metric.hit.mean", "0.5", "0.8", "+60.0%"]
    assert "| metric.rows.mean | 12,345 | - | - | - |  |" in to_markdown(found)
    reported = encoded(result_of(found))["user_metrics"][0]
    assert (reported["metric"], reported["base"]["value"], reported["new"]["value"]) == ("metric.hit.mean", 0.5, 0.8)
    assert "outcome" not in reported


def test_a_comparison_without_any_says_nothing_of_them(tmp_path: Path) -> None:
    found = compare(make_run(tmp_path / "a"), make_run(tmp_path / "b"))
    assert found.own == ()
    assert "Your own metrics" not in to_text(found)
