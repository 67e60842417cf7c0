"""The page of a frontier: what it draws of which points, and what its table has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from server_capacity.results.types.price import per_million
from tests.browser import CHROMIUM, tab
from tests.counted import unrecorded
from tests.mentions import mentions
from tests.waves import chat
from visualization.figures.figures import Curves
from visualization.matplotlib_charts.pictures import drawing, pictures
from visualization.pages.html import page
from visualization.pages.pareto import pareto_figures
from visualization.pareto.points import MEDIAN, Configuration
from visualization.pareto.result import Pareto, pareto_of

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.figures.figures import Line


@pytest.fixture(scope="module")
def found() -> Pareto:
    """A is better for slow users; one of its points is dominated, one INVALID. B is better for fast ones."""
    a = [chat(8, 50), chat(4, 20, seed=2), chat(2, 22, seed=3), replace(chat(16, 50, seed=4), lost_workers=(0,))]
    b = [chat(5, 40, seed=5), chat(3, 10, seed=6)]
    return pareto_of([Configuration("A", tuple(a), 1, 2.0), Configuration("B", tuple(b), 1, 2.0)], per_million)


def charts(found: Pareto, key: str) -> list[Curves]:
    (section,) = [each for each in pareto_figures(found).sections if each.key == key]
    return [each for each in section.charts if isinstance(each, Curves)]


def by_tone(chart: Curves) -> dict[str, Line]:
    return {line.tone: line for line in chart.lines if line.over}


def test_each_point_is_drawn_once_as_what_it_is(found: Pareto) -> None:
    output, _ = charts(found, "frontier")
    lines = by_tone(output)
    assert {tone: len(line.points) for tone, line in lines.items()} == {"chosen": 4, "faint": 1, "bad": 1}
    assert sum(len(line.points) for line in lines.values()) == len(found.points)
    assert lines["bad"].texts == ("16/s, INVALID",)
    assert lines["faint"].texts == ("2/s",)
    xs = [x for x, _ in lines["chosen"].points]
    assert xs == sorted(xs)


def test_a_point_without_a_speed_is_not_among_the_usable_ones() -> None:
    found = pareto_of([Configuration("A", (chat(), unrecorded()))], per_million)
    (card,) = pareto_figures(found).runs
    assert card.verdict == "1 of 2 points usable"
    (table,) = next(each for each in pareto_figures(found).sections if each.key == "points").tables
    assert [row.cells[1] for row in table.rows] == ["✓", "-"]


def test_a_cross_has_the_ends_of_both_intervals(found: Pareto) -> None:
    output, total = charts(found, "frontier")
    for chart, kind in ((output, "output"), (total, "total")):
        (faint,) = [line for line in chart.lines if line.tone == "faint"]
        (point,) = [each for each in found.points if (each.configuration.name, each.load) == ("A", "2/s")]
        speed, rate = point.speeds[MEDIAN], point.per_gpu[kind]
        assert faint.points == ((speed.value, rate.value),)
        assert faint.crosses == ((speed.low, speed.high, rate.low, rate.high),)


def test_where_the_intervals_do_not_decide_is_a_band(found: Pareto) -> None:
    output, _ = charts(found, "frontier")
    assert [band[1:] for band in output.bands if band[0]] == list(found.answer(MEDIAN, "output").open)


def test_a_card_says_at_which_speeds_the_intervals_decide_for_it(found: Pareto) -> None:
    decided = found.answer(MEDIAN, "output").decided
    better = [dict(card.headline)["better at, tokens/s"] for card in pareto_figures(found).runs]
    for name, text in zip("AB", better, strict=True):
        ranges = [f"{each.low:.4g}–{each.high:.4g}" for each in decided if each.best == name]
        assert ", ".join(ranges) in text
    assert better[1].endswith(" (alone)"), "B has the fastest users"
    bare = pareto_of([Configuration(name, (chat(2, gap, 5),)) for name, gap in (("A", 20), ("B", 30))], per_million)
    assert [dict(card.headline)["better at, tokens/s"] for card in pareto_figures(bare).runs] == [
        f"over {bare.answers[0].best[-1].low:.4g} (alone)",
        "none",
    ]
    assert charts(bare, "frontier")[0].bands[0][1:] == bare.answers[0].open[0]


def test_each_other_speed_has_a_chart_and_each_kind_of_tokens_a_cost(found: Pareto) -> None:
    assert [chart.title for chart in charts(found, "speeds")] == [
        "By p90",
        "By p90 of latency over output tokens",
        "By 1/ITL",
    ]
    costs = charts(found, "cost")
    assert len(costs) == 3
    assert all(len(line.points) == 3 - (line.run or 0) for chart in costs for line in chart.lines), "but INVALID ones"


def test_the_page_begins_with_the_answer_and_marks_what_is_not_usable(found: Pareto) -> None:
    figures = pareto_figures(found)
    assert figures.lead == found.result.headline
    assert [card.verdict for card in figures.runs] == ["3 of 4 points usable", "2 of 2 points usable"]
    (points,) = [each for each in figures.sections if each.key == "points"]
    assert [row.cells[1] for row in points.tables[0].rows] == ["·", "✓", "✓", "✗ INVALID", "✓", "✓"]
    assert mentions(page(figures), "1 of 6 runs is not usable: INVALID")


def test_every_section_has_a_picture(found: Pareto) -> None:
    names = [name for name, _ in pictures(pareto_figures(found), ("svg",), "pareto")]
    assert names == ["pareto_frontier.svg", "pareto_speeds.svg", "pareto_cost.svg"]


def test_a_picture_has_all_of_a_long_first_line_above_its_charts(found: Pareto) -> None:
    figures = replace(pareto_figures(found), lead="The intervals do not decide below 139 tokens/s. " * 9 + "The end")
    drawn = drawing(figures.sections[0], figures)
    assert drawn.get_suptitle().endswith("The end")
    lines = drawn.get_suptitle().count("\n") + 1
    room = (1 - drawn.subplotpars.top) * drawn.get_figheight()
    assert lines == 4
    assert room > 0.12 + lines * 0.2 + 0.3, "inches: the edge, the lines, and the title of a chart"


@pytest.mark.process
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.timeout(180)
def test_the_browser_draws_it_on_a_desktop_and_on_a_phone(found: Pareto, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page(pareto_figures(found)), encoding="utf-8")
    with tab() as opened:
        for width in (1280, 390):
            opened.size(width)
            opened.open(path)
            assert opened.complaints == []
            shown = "document.querySelectorAll('#frontier figure:first-child %s').length"
            signs = [opened.ask(shown % each) for each in (".marker.chosen", ".marker.faint", ".marker.bad", ".cross")]
            assert signs == [4, 1, 1, 6]
            assert opened.ask("document.documentElement.scrollWidth <= innerWidth"), "nothing is beyond the side"
        opened.ask("document.querySelectorAll('#legend button')[1].click()")
        assert opened.ask(shown % ".marker.chosen") == 2
