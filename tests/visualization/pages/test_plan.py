"""The folder of a plan as figures, from `benchmark plan` itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker.cli.capacity.plan import run
from server_capacity.planning.folder import read
from server_capacity.planning.measured import Refused
from server_capacity.planning.totals import content
from tests.capacities import found
from tests.mentions import mentions
from visualization.figures.figures import Bars, Curves, Figures
from visualization.pages.plan import plan_figures

if TYPE_CHECKING:
    from pathlib import Path

TWIN = {**found()["twin"], "servers": 4, "overhead_s": 0.0, "services_s": [0.02] * 256, "limit": "p99<100ms"}
LIMIT = {**found()["limits"][0], "metric": "response_time", "bound": 0.1, "allowed": 0.01}
ENDPOINT = {"instance_type": "ml.m5.xlarge", "instances": 1, "seconds_to_create": 60.0}


def searched(folder: Path) -> str:
    """The folder of a search of one instance of 4 servers of 20 ms, of which 168.2/s is sure."""
    folder.mkdir()
    data = {"schema_version": 1, **found(twin=TWIN, limits=[LIMIT], endpoint=ENDPOINT, headline="174/s")}
    (folder / "capacity.json").write_text(json.dumps(data))
    return str(folder)


def planned(tmp_path: Path, *flags: str) -> Path:
    """The folder of the plan."""
    arguments = [searched(tmp_path / "a_capacity"), *flags, "--output-dir", str(tmp_path / "out")]
    assert run(arguments) == 0
    (folder,) = (tmp_path / "out").iterdir()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan for a load that rises within two minutes."""
    load = ("--stages", "100:2m,100..600:2m,600:3m", "--price", "ml.m5.xlarge=0.23")
    return planned(tmp_path_factory.mktemp("plan"), *load)


@pytest.fixture(scope="module")
def figures(folder: Path) -> Figures:
    return plan_figures(read(folder))


def test_the_command_leaves_a_page_and_pictures(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}

    assert {"fleet_plan.html", "fleet_plan_load.png", "fleet_plan_policies.png"} <= names


def test_the_command_names_its_page_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = planned(tmp_path, "--target-rps", "600")
    assert capsys.readouterr().err.splitlines()[-1] == f"Page: {folder}/fleet_plan.html"


def test_the_first_screen_has_the_number_the_cost_and_what_is_left_with_one_lost(figures: Figures) -> None:
    tiles = {tile.name: tile for tile in figures.tiles}

    assert mentions(figures.lead, "6 instances", "ml.m5.xlarge", "600/s")
    assert tiles["Instances"].value == "6"
    assert tiles["Cost per hour"].value == "$1.38"
    assert (tiles["With one lost"].value, tiles["With one lost"].tone) == ("limit met", "good")
    (table,) = figures.answer
    assert [row.cells[0] for row in table.rows if row.strong] == ["70% use"]


def test_the_load_stands_beside_what_the_instances_hold(figures: Figures) -> None:
    (section,) = (each for each in figures.sections if each.key == "load")
    chart = section.charts[0]

    assert isinstance(chart, Curves)
    lines = {figures.runs[line.run].label: line.points for line in chart.lines if line.run is not None}
    assert list(lines) == ["6 instances, fixed", "target tracking on invocations", "The load"]
    assert [value for _, value in lines["6 instances, fixed"]] == pytest.approx(7 * [6 * 168.2])
    assert lines["The load"][-1][1] == pytest.approx(600, rel=0.1)


def test_the_load_is_a_line_over_the_capacity_with_one_lost_and_the_cost_stands_beside(figures: Figures) -> None:
    section = figures.sections[0]
    found = {chart.title: chart for chart in section.charts if isinstance(chart, Bars)}
    assert list(found) == ["All instances", "With one instance lost", "Cost per hour"]
    lost = found["With one instance lost"]
    planned = next(place for place, card in enumerate(figures.runs) if card.label == "70% use ✓")
    assert lost.statistics[""][planned].value == pytest.approx(5 * 168.2)
    assert [level.value for level in lost.levels] == [600]
    assert found["Cost per hour"].statistics[""][planned].value == pytest.approx(1.38)


def test_policies_are_compared_with_fixed_instances(figures: Figures) -> None:
    (section,) = (each for each in figures.sections if each.key == "policies")
    hours = next(chart for chart in section.charts if chart.title == "Instance hours")

    assert isinstance(hours, Bars)
    tracking, fixed = (bar.value for bar in hours.statistics[""])
    assert tracking is not None
    assert fixed == pytest.approx(0.7, rel=0.01)
    assert tracking < 0.69
    assert [row.cells[0] for row in section.tables[0].rows] == [card.label for card in figures.runs[5:]]


def test_each_file_has_its_command(folder: Path, figures: Figures) -> None:
    (section,) = (each for each in figures.sections if each.key == "files")
    named = {word.removeprefix("file://") for line in section.commands for word in line.split() if word[-1] in "nl"}

    assert {path.name for path in folder.iterdir() if path.suffix in (".json", ".yaml")} - {"fleet_plan.json"} <= named


def test_a_plan_that_does_not_hold_with_one_lost_and_has_no_price_says_both(tmp_path: Path) -> None:
    figures = plan_figures(read(planned(tmp_path, "--target-rps", "600", "--utilisation", "100%")))
    tiles = {tile.name: tile for tile in figures.tiles}

    assert (tiles["With one lost"].value, tiles["With one lost"].tone) == ("limit missed", "bad")
    assert tiles["With one lost"].note == "5 instances would"
    assert not any(name.startswith("Cost") for name in tiles)
    assert [chart.title for chart in figures.sections[0].charts] == ["All instances", "With one instance lost"]
    assert figures.sections[0].title == "Load and capacity"
    assert "simulated" not in figures.footer
    assert "The plan uses" in figures.answer[0].notes[0]


def test_where_nothing_could_be_planned_every_refusal_is_said(tmp_path: Path) -> None:
    refused = [Refused("chat: no answer."), Refused("search: serverless.")]
    data = content([], refused, created="", utilisation=0.7, spare=1)
    figures = plan_figures(data)

    (table,) = figures.answer
    assert (table.rows, table.notes) == ((), ("✗ chat: no answer.", "✗ search: serverless."))
    assert not figures.tiles
