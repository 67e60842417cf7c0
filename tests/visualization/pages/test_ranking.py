"""The folder of a ranking as figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from server_capacity.results.equal_answers import Given, with_answers
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, failed_row
from server_capacity.results.types.capacity import CanaryAnswer
from tests.mentions import mentions
from tests.rankings import drawn, ranked, row
from visualization.pages.html import page

if TYPE_CHECKING:
    from pathlib import Path

    from visualization.figures.figures import Bar, Bars, Figures


def bars(figures: Figures, title: str) -> tuple[Bar, ...]:
    (section,) = (each for each in figures.sections if each.key == "cost")
    (chart,) = (each for each in section.charts if each.title == title)
    chosen: Bars = chart  # type: ignore[assignment]
    return chosen.statistics[""]


def test_the_first_screen_answers_which_how_many_and_what_it_costs(tmp_path: Path) -> None:
    figures = drawn(tmp_path, ranked(1000, ("m5", 300, 0.32), ("c5", 250, 0.204)))

    assert mentions(figures.lead, "1,000/s", "6 instances", "$1.22/h")
    (table,) = figures.answer
    assert table.head[:7] == ("Variant", "rank", "capacity", "instances", "per hour", "per month", "per 1M req")
    assert [each.cells[:5] for each in table.rows] == [
        ("c5", "1", "258/s", "6", "$1.22"),
        ("m5", "2", "309/s", "5", "$1.60"),
    ]
    assert [(each.cells[-1], table.head[-1]) for each in table.rows] == [("61%", "used")] * 2
    assert any("is violated first: p99<100ms." in note for note in table.notes)
    assert [each.strong for each in table.rows] == [True, False]
    bar = table.rows[0].bar
    assert bar is not None
    assert (bar.low, bar.high) == (250, 265)
    assert table.head[table.bar_at or 0] == "95%"
    assert any(mentions(note, "0.204 USD", "us-east-1", "2026-11-23") for note in table.notes)


def test_cost_goes_from_one_end_of_the_interval_to_the_other(tmp_path: Path) -> None:
    figures = drawn(tmp_path, ranking([row("m5", 100, 200, price=1.0, aim=Aim(700))], Aim(700)))

    (bar,) = bars(figures, "Hourly cost for the target")
    assert (bar.value, bar.low, bar.high) == (10, 5, 10)


def test_ties_are_shown_as_ties(tmp_path: Path) -> None:
    figures = drawn(tmp_path, ranked(100, ("m5", 300, 0.3), ("c5", 300, 0.3)))

    (table,) = figures.answer
    assert [each.cells[1] for each in table.rows] == ["1=", "1="]
    assert not any(each.strong for each in table.rows)
    assert "= ties: the intervals do not decide which is better." in table.notes


def test_a_variant_without_an_answer_stands_in_the_table_with_its_reason(tmp_path: Path) -> None:
    rows = [row("m5", 300, aim=Aim(100)), failed_row({"instance_type": "p5"}, "no such <type>")]
    figures = drawn(tmp_path, ranking(rows, Aim(100)))

    (table,) = figures.answer
    assert table.rows[1].cells[:3] == ("p5", "failed", "-")
    assert "✗ p5: no such <type>" in table.notes
    assert [card.label for card in figures.runs] == ["m5"]
    assert "<type>" not in page(figures)


def test_what_the_first_line_says_of_a_variant_is_no_note_again(tmp_path: Path) -> None:
    warned = row("m5", 300, clean_up="failed", exit_code=3)
    figures = drawn(tmp_path, ranking([warned, row("c5", 500)], Aim()))

    (table,) = figures.answer
    assert "was not removed" in figures.lead
    assert not [note for note in table.notes if "was not removed" in note]


def test_what_held_at_least_a_rate_ties_and_its_cost_is_a_bound(tmp_path: Path) -> None:
    open_ended = replace(row("m5", 100, price=0.3), interval=None, rate=300.0)
    data = ranking([open_ended, row("c5", 500, price=0.3)], Aim())

    assert [each.tied_with for each in data.rows] == [[2], [1]]
    figures = drawn(tmp_path, data)
    (first, second) = bars(figures, "Cost per million requests")
    assert (first.sign, first.low is not None, second.sign, second.low) == ("", True, "≤", None)
    assert [bar.sign for bar in bars(figures, "Capacity")] == ["", "≥"]


def test_curves_are_those_of_all_variants_under_their_names(tmp_path: Path) -> None:
    figures = drawn(tmp_path, ranked(None, ("m5", 300, None), ("c5", 250, None)))

    (section,) = (each for each in figures.sections if each.key == "curve")
    assert [card.label for card in figures.runs] == ["m5", "c5"]
    assert {line.run for chart in section.charts for line in getattr(chart, "lines", ())} >= {0, 1}


def test_a_variant_whose_answers_differ_is_marked_with_its_capacity(tmp_path: Path) -> None:
    known = [Given(tuple(CanaryAnswer(text, len(text)) for text in texts)) for texts in (["a b c"], ["a"])]
    figures = drawn(tmp_path, ranking(with_answers([row("m5", 300), row("c5", 400)], known), Aim()))

    (table,) = figures.answer
    first, second = (each.cells for each in table.rows)
    place = table.head.index("answers")
    assert [(each[0], each[1], each[place]) for each in (first, second)] == [
        ("m5", "1", "equal"),
        ("c5", "other answers", "differ"),
    ]
    assert second[2] == "412/s"
    assert any(note.startswith("✗ c5: answers differ from those of m5: shorter to 1 of 1") for note in table.notes)
