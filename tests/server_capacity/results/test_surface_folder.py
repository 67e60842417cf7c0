"""The folder of a surface: its rows are its searches, and a surface that is refused says why."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import cli
from inference_benchmarker.data.json_file import write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import MISSED, OK
from server_capacity.results import surface_folder
from server_capacity.results.text.surface import doubled_text, headline, to_text
from server_capacity.results.types.bounds import Interval
from tests.surfaces import row, stored, surface

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: dict[str, Any] = {"stage": "refused", "refused": "at 200x40 it is another one.", "grid": [], "what_if": []}


def test_a_surface_is_reported_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path)
    assert cli.main(["report", str(tmp_path)]) == OK
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == (
        "Surface of 3 of 4 points, from 50.0/s at 400x20 to 250/s at 100x20; 1 held-out search agrees with the fit"
    )
    assert "Answers twice as long (200x40 to 200x80): 61% fewer requests/s (52 to 70%)." in lines
    assert "400x80 takes 80 answers at a time" in " ".join(text.split())
    assert lines[-2] == lines[0]
    with (tmp_path / "surface.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [each["from"] for each in rows] == ["search, fit"] * 2 + ["search, held out"] + ["fit"] * 4
    assert rows[-1]["rate"] == ""


def test_a_refused_surface_says_why_and_is_no_failure_of_its_searches() -> None:
    found = surface(**REFUSED)
    assert headline(found) == "No surface: at 200x40 it is another one"
    assert found.exit_code == OK
    text = to_text(found)
    assert "168 to 180" in text
    assert "170 to 178" in text


def test_a_search_that_did_not_end_well_is_named() -> None:
    lost = row(400, 20, confirmation=[{"verdict": "fails", "rate": 168.2}])
    found = surface(searches=[row(100, 80), lost, surface().searches[2]], exit_code=MISSED)
    assert headline(found).startswith("400x20: exit code 1; Surface of 3 of 4 points")
    assert "? 400x20: the confirming wave failed." in to_text(found)


def test_a_surface_of_an_earlier_version_does_not_say_what_confirmed_its_searches(tmp_path: Path) -> None:
    stored(tmp_path)
    data = json.loads((tmp_path / "surface.json").read_text())
    assert [each.pop("confirmed") for each in data["searches"]] == ["holds"] * 3
    write_with_digest(tmp_path / "surface.json", data)
    assert surface_folder.read(tmp_path).stage == "given"


@pytest.mark.parametrize(
    ("share", "low", "high", "said"),
    [
        (0.39, 0.30, 0.48, "61% fewer requests/s (52 to 70%)"),
        (1.2, 1.1, 1.3, "20% more requests/s (10 to 30%)"),
        (0.98, 0.95, 1.02, "requests/s change by -5 to +2%"),
    ],
)
def test_what_twice_as_long_means_is_said_in_a_line(share: float, low: float, high: float, said: str) -> None:
    (changed,) = surface().what_if
    values = {name: getattr(changed, name) for name in changed.__slots__}
    text = doubled_text(type(changed)(**values | {"share": share, "interval": Interval(low, high)}))
    assert text == f"Answers twice as long (200x40 to 200x80): {said}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["searches"][0].update(rate=175.0), "100x80 has another answer than its row"),
        (lambda data: data.update(exit_code=1), "its exit code is 1, and the gravest of its searches 0"),
        (lambda data: data.update(searches=[]), "it has no search"),
        (lambda data: data.update(stage="refused"), "it is refused, and a reason for a refusal is missing"),
        (lambda data: data.update(stage="searching"), "it is searching, and has capacities of its grid"),
        (lambda data: data.update(engine=None), "it is given, and has no engine or no grid"),
        (lambda data: data["searches"][1].update(input_tokens=100, output_tokens=80), "have the same lengths"),
        (lambda data: data["searches"][0].update(capacity="../x"), "'../x' is not the folder of a search at 100x80"),
        (lambda data: data["searches"][0].update(capacity="400x20"), "is not the folder of a search at 100x80"),
        (lambda data: data["searches"].pop(), "it is given, and no search was held out from its fit"),
        (lambda data: data["what_if"][0].update(share=5.0), "the share with answers twice as long"),
        (lambda data: data["searches"][0].update(predicted={"low": 1, "high": 2}), "by a fit that has seen it"),
        (lambda data: data["searches"][2].update(predicted={"low": 1, "high": 2}), "200x40 do not agree"),
        (
            lambda data: data["searches"][2].update(confirmed="fails"),
            "it is given, and a wave refuted the search at 200x40",
        ),
        (lambda data: data["searches"][0].update(confirmed="cannot_tell"), "100x80 has another answer than its row"),
        (lambda data: data["grid"][3].update(beyond=""), "400x80 has a capacity and a reason"),
        (lambda data: data["grid"][0].update(rate=1.0), "the rate of 100x20"),
    ],
)
def test_what_contradicts_itself_or_its_searches_is_refused(tmp_path: Path, change: Any, said: str) -> None:
    stored(tmp_path)
    data = json.loads((tmp_path / "surface.json").read_text())
    change(data)
    write_with_digest(tmp_path / "surface.json", data)
    with pytest.raises(BenchmarkError, match=r"surface\.json") as raised:
        surface_folder.read(tmp_path)
    assert said in str(raised.value)
