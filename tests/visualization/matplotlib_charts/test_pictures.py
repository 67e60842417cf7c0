"""The pictures of ``benchmark --plot``: everything in them lies within the paper, whole and apart."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from visualization.figures.figures import Axis, Bar, Bars, Card, Curves, Figures, Level, Line, Section
from visualization.matplotlib_charts.marks import roomy
from visualization.matplotlib_charts.pictures import STYLE, drawing, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = "20261121T164453Z_and_more_of_it"


def draw(*charts: Bars | Curves, runs: int = 1, key: str = "server") -> Figure:
    """A section's picture, laid out."""
    cards = tuple(Card(f"{LONG}{run}", "VALID", False, False, (), (), (), (), ()) for run in range(runs))
    with mpl.rc_context(STYLE):
        drawn = drawing(Section(key, "Title", "", charts), Figures(cards, ()))
        FigureCanvasAgg(drawn).draw()  # type: ignore[no-untyped-call]
    return drawn


def lying(*values: float, title: str = "Invocations, Sum") -> Bars:
    return Bars("", title, "", "server", {"": tuple(Bar(value) for value in values)})


def standing(*values: float) -> Bars:
    return Bars("", "Latency", "ms", "aiperf", {name: tuple(map(Bar, values)) for name in ("mean", "p99")})


def points(*pairs: tuple[float, float]) -> Curves:
    return Curves("Not successful", Axis("Completed rate", "/s"), Axis("", "%"), (Line(None, "", pairs, over=(0,)),))


def inches(axes: Axes, number: int) -> tuple[float, float]:
    """Width and height of one of its bars."""
    box: Any = axes.patches[number].get_window_extent()
    dpi = axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    return box.width / dpi, box.height / dpi


@pytest.mark.parametrize("charts", [(lying(46.2),), (lying(46.2), standing(250.5))], ids=["alone", "with groups"])
def test_one_bar_is_thin_and_its_runs_name_whole(charts: tuple[Bars, ...]) -> None:
    first, *others = draw(*charts).axes
    assert inches(first, 0)[1] <= 0.25
    assert all(inches(axes, 0)[0] < 0.7 for axes in others)
    (name,) = first.get_yticklabels()
    assert name.get_window_extent().x0 > 0


def test_a_legend_says_whose_percentiles_were_counted() -> None:
    verdicts = {"a": "VALID", "b": "INVALID (client-limited)"}
    cards = tuple(Card(*of, False, False, (), (), (), (), (), "percentiles ±1%") for of in verdicts.items())
    assert [name_of(Figures(cards, ()), run) for run in (0, 1)] == [
        "a (percentiles ±1%)",
        "b (INVALID, percentiles ±1%)",
    ]


def numbers(drawn: Figure) -> list[Text]:
    """The texts of a picture that hold a number, legends and axes aside."""
    found = [text for axes in drawn.axes for text in axes.texts if text.get_text()[:1].isdigit()]
    assert found
    return found


@pytest.mark.parametrize("runs", [2, 20])
def test_a_time_has_a_row_a_run_with_its_numbers_lying_and_apart(runs: int) -> None:
    values = [12.34 * 1.3**run for run in range(runs)]
    drawn = draw(*[standing(*values)] * 2, runs=runs, key="times")
    reported = numbers(drawn)
    assert len(reported) == 2 * 2 * runs
    assert {text.get_rotation() for text in reported} == {0.0}
    boxes = [text.get_window_extent() for text in reported]
    assert all(0 < box.x0 < box.x1 < drawn.bbox.x1 and 0 < box.y0 < box.y1 < drawn.bbox.y1 for box in boxes)
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])


@pytest.mark.parametrize("most", [60.0, 300.0, 1_000.0, 1_868.0, 4_900.0, 90_000.0])
def test_the_numbers_along_times_that_span_decades_stay_apart(most: float) -> None:
    drawn = draw(standing(18.7, most), standing(18.7, most), runs=2, key="times")
    for axes in (axes for axes in drawn.axes if axes.get_xscale() == "log"):
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = [tick.label1.get_window_extent() for tick in ticks]
        assert len(boxes) > 1
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize(("most", "scale"), [(30.0, "linear"), (5000.0, "log")])
def test_the_scale_is_logarithmic_where_times_span_decades(most: float, scale: str) -> None:
    first, *_ = draw(standing(10.0, most), runs=2, key="times").axes
    assert first.get_xscale() == scale
    low, high = first.get_xlim()
    assert low < 10 < most < high


def test_a_limit_is_drawn_where_it_is_near_and_named() -> None:
    def dashed(limit: float) -> list[str]:
        bars = replace(standing(10.0, 40.0), levels=(Level(limit, "p99<50ms", "p99"),))
        (axes,) = draw(bars, runs=2, key="times").axes
        return [axes.get_xlabel()] * sum(line.get_linestyle() == "--" for line in axes.lines)

    assert dashed(50) == ["limit p99<50ms"]
    assert dashed(50_000) == []


def test_over_time_every_run_has_a_strip_on_the_same_axes() -> None:
    lines = tuple(Line(run, "", ((0.0, 1.0 + run), (9.0, 4.0 + run))) for run in range(5))
    chart = Curves("Rate", Axis("Time", "s"), Axis("Rate", "/s"), lines, apart=True, levels=(Level(6.0, "rate"),))
    holder, *strips = draw(chart, runs=5, key="time").axes
    assert len(strips) == 5
    assert len({strip.get_ylim() for strip in strips}) == 1
    assert {strip.get_xlim() for strip in strips} == {holder.get_xlim()}
    tops = [strip.get_position().y1 for strip in strips]
    assert tops == sorted(tops, reverse=True)
    assert all(upper.get_position().y0 >= lower.get_position().y1 for upper, lower in pairwise(strips))
    names = [strip.texts[0].get_window_extent() for strip in strips]
    assert all(box.x0 > 0 for box in names)


@pytest.mark.parametrize("most", [125_000, 99_999_999, 40, 0.0125, 0])
def test_the_numbers_along_narrow_bars_stay_apart(most: float) -> None:
    drawn = draw(*[lying(most, most / 3)] * 3, runs=2)
    for axes in drawn.axes:
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
        boxes = [tick.label1.get_window_extent() for tick in ticks]
        assert len(boxes) > 1
        assert all(left.x1 + 4 < right.x0 for left, right in pairwise(boxes))
        assert low == 0


def test_a_long_title_ends_within_the_paper() -> None:
    title = "ConcurrentRequestsPerModel, Maximum"
    drawn = draw(*[lying(1, title=title)] * 3)
    found = drawn.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() == title)
    assert len(found) == 3
    assert all(each.get_window_extent().x1 < drawn.bbox.x1 for each in found)


@pytest.mark.parametrize("pairs", [((100, 0), (200, 0)), ((0, 0), (200, 3)), ((100, 2), (200, 3))])
@pytest.mark.parametrize("key", ["capacity", "time"])
def test_markers_have_room_on_every_side(pairs: tuple[tuple[float, float], ...], key: str) -> None:
    (axes,) = draw(points(*pairs), key=key).axes
    inside = axes.get_window_extent()
    for pair in pairs:
        x, y = axes.transData.transform(pair)
        assert min(x - inside.x0, inside.x1 - x, y - inside.y0, inside.y1 - y) > 5


def test_a_stage_that_lasts_longer_than_what_was_measured_stands_within_the_axes() -> None:
    bands = (("one", 0.0, 2.0), ("two", 2.0, 4.0), ("three", 4.0, 6.0), ("four", 6.0, 9.0))
    line = Line(0, "", ((0.0, 1.0), (5.0, 2.0)))
    (axes,) = draw(Curves("Rate", Axis("Time", "s"), Axis("Rate", "/s"), (line,), bands=bands), key="time").axes
    assert axes.get_xlim()[1] >= 9


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_no_line_runs_through_the_names_of_stages(scale: Literal["linear", "log"]) -> None:
    line = Line(0, "", ((0.0, 1.0), (1.0, 900.0), (2.0, 1.0)))
    chart = Curves("Rate", Axis("Time", "s"), Axis("Rate", "/s", scale), (line,), bands=(("spike", 0.0, 2.0),))
    drawn = draw(chart, key="time")
    (name,) = drawn.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() == "spike")
    assert drawn.axes[0].transData.transform((1.0, 900.0))[1] < name.get_window_extent().y0


def test_a_point_without_neighbours_has_a_marker() -> None:
    values = [float(second) if second < 8 or second == 11 else None for second in range(20)]
    (axes,) = draw(Curves("p50", Axis("Time", "s"), Axis("p50", "ms"), (Line(0, "", tuple(enumerate(values))),))).axes
    marked = axes.lines[0].get_markevery()
    assert isinstance(marked, list)
    assert 11 in marked
    assert 7 not in marked


def test_a_chart_of_times_in_which_no_run_has_one_is_drawn_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(Bars("label", "hot", "ms", "labels", {"median": (Bar(),), "p99": (Bar(),)}))


def test_labels_have_one_scale_and_no_row_of_a_run_without_them() -> None:
    some: dict[str, tuple[Bar, ...]] = {
        "median": (Bar(20.0), Bar()),
        "p99": (Bar(30.0), Bar()),
        "max": (Bar(40.0), Bar()),
    }
    other: dict[str, tuple[Bar, ...]] = {
        "median": (Bar(), Bar(200.0)),
        "p99": (Bar(), Bar(300.0)),
        "max": (Bar(), Bar(400.0)),
    }
    charts = [Bars("label", name, "ms", "labels", bars) for name, bars in (("hot", some), ("cold", other))]
    places = draw(*charts, runs=2, key="labels").axes
    assert [len(axes.get_yticks()) for axes in places] == [1, 1]
    assert places[0].get_xlim() == places[1].get_xlim()


@pytest.mark.parametrize(("most", "scale"), [(90, "linear"), (200, "log")])
def test_single_values_that_span_decades_are_points(most: float, scale: str) -> None:
    (axes, *_) = draw(lying(10, most), runs=2).axes
    assert axes.get_xscale() == scale
    assert bool(axes.patches) == (scale == "linear")


def test_an_interval_that_its_value_is_outside_of_is_drawn() -> None:
    draw(Bars("Capacity", "Capacity", "/s", "capacity", {"": (Bar(160.0, 168.0, 180.0),)}))


def test_what_is_the_same_in_all_runs_is_reported() -> None:
    section = Section("load", "Load", "", (lying(1, 2),), same=(("Success", "100%"),))
    cards = tuple(Card(f"run {n}", "VALID", False, False, (), (), (), (), ()) for n in range(2))
    lines = [text.get_text() for text in drawing(section, Figures(cards, (section,))).texts]
    assert "The same in all runs: Success 100%" in lines


def test_a_chart_without_a_point_has_an_axis() -> None:
    """Matplotlib's limits of no data are infinite, the lower one above the upper one."""
    assert roomy(math.inf, -math.inf) == (0, 1)
