"""The strip of instances below the pictures over time: its steps and marks, on the page and in the pictures."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from inference_benchmarker.data.decoded import decoded, encoded
from inference_benchmarker.facts.instances import Count, Followed, ScalingEvent
from inference_benchmarker.report.summary_types import SummaryResult
from inference_benchmarker.wave.wave import Wave
from tests.browser import CHROMIUM, tab
from tests.hostile import VALUES, paths_of, with_value
from tests.waves import make_run, stored, wave
from visualization.figures.figures import STRIP_KEY, Curves
from visualization.figures.instances import instances_strip
from visualization.figures.reading import read_runs
from visualization.matplotlib_charts.pictures import STYLE, drawing
from visualization.pages.html import page
from visualization.pages.series import make_figures

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.figures.runs import Run

T0 = 1_700_000_000
COUNTS = tuple(Count(T0 + at, current, desired) for at, current, desired in ((0, 1, 1), (2, 1, 3), (4, 3, 3)))
GROWN = Followed("demo/AllTraffic", "DescribeEndpoint", COUNTS, (ScalingEvent(T0 + 1.5, "alarm", "alarm <fired>"),))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    """One that grew, one that did not, and one of which nobody knows."""
    folder = tmp_path_factory.mktemp("runs")
    made = wave([[0.02] * 20] * 6)
    steady = replace(GROWN, counts=COUNTS[:1], events=())
    paths = [stored(made.with_instances([each]), folder / name).path for name, each in (("a", GROWN), ("b", steady))]
    make_run(folder / "c", 300)
    return read_runs([*paths, folder / "c"], {}, Wave.load, lambda _: None)


def test_its_steps_are_the_counts_and_its_marks_the_events(runs: tuple[Run, ...]) -> None:
    strip = instances_strip(runs)
    assert strip is not None
    assert runs[0].window is not None
    end = runs[0].window.duration_s
    serve, asked_for, *_ = strip.lines
    assert (serve.points, serve.dashed) == (((0, 1), (2, 1), (4, 3), (end, 3)), False)
    assert (asked_for.points, asked_for.dashed) == (((0, 1), (2, 3), (4, 3), (end, 3)), True)
    assert [(mark.x, mark.sign) for mark in strip.marks if mark.run == 0] == [(0, "▲"), (1.5, "!"), (2, "○"), (4, "●")]


def test_it_is_below_what_the_wave_measured_and_nothing_else(runs: tuple[Run, ...]) -> None:
    time = next(section for section in make_figures(runs).sections if section.key == "time")
    with_strip = {chart.title for chart in time.charts if isinstance(chart, Curves) and chart.strip}
    assert {"Rate", "Latency", "Response time"} <= with_strip
    assert STRIP_KEY in time.text


def test_where_no_number_changed_there_is_none(runs: tuple[Run, ...]) -> None:
    assert instances_strip(runs[1:]) is None


def test_a_forged_summary_is_refused_or_has_its_strip(runs: tuple[Run, ...]) -> None:
    draw, outcomes = random.Random(1), set()
    reported = encoded(runs[0].summary)
    for place in draw.choices([("instances", *each) for each in paths_of(reported["instances"])], k=60):
        try:
            forged = decoded(with_value(reported, place, draw.choice(VALUES)), SummaryResult)
        except ValueError:
            outcomes.add("refused")
            continue
        outcomes.add(type(instances_strip([replace(runs[0], summary=forged)])).__name__)
    assert {"refused", "Strip"} <= outcomes <= {"refused", "Strip", "NoneType"}


def test_a_picture_has_it_on_the_axis_of_the_time(runs: tuple[Run, ...]) -> None:
    figures = make_figures(runs)
    section = next(section for section in figures.sections if section.key == "time")
    with mpl.rc_context(STYLE):
        drawn = drawing(section, figures)
        FigureCanvasAgg(drawn).draw()  # type: ignore[no-untyped-call]
    strips = [axes for axes in drawn.axes if axes.get_ylabel() == "Instances"]
    assert len(strips) == sum(isinstance(chart, Curves) and chart.strip is not None for chart in section.charts)
    for lower, upper in zip(strips, drawn.axes, strict=False):
        assert lower.get_xlim() == upper.get_xlim()
        assert lower.get_position().x0 == pytest.approx(upper.get_position().x0)
        assert lower.get_position().y1 < upper.get_position().y0


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.timeout(180)
def test_the_page_draws_it_and_tells_what_happened(runs: tuple[Run, ...], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(make_figures(runs)), encoding="utf-8")
    rate = "document.querySelector('figure[data-title=\"Rate\"]')"
    with tab() as opened:
        opened.size(390)
        opened.open(path)
        assert opened.complaints == []
        signs = opened.ask(f"[...{rate}.querySelectorAll('.sign')].map((sign) => sign.textContent)")
        assert "".join(signs) == "▲!○●▲"
        inside = f"[...{rate}.querySelectorAll('.filled')].every((area) => area.getBBox().x >= 50)"
        assert opened.ask(inside) is True
        opened.ask(f"{rate}.querySelector('summary').click()")
        assert "! alarm <fired>" in opened.ask(f"{rate}.textContent")
