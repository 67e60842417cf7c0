"""`benchmark report --format`: what goes to a file or to standard output, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from inference_benchmarker.cli import main
from server_capacity.aiperf.export import AiperfResult
from server_capacity.results import capacity_folder, ranking_folder
from server_capacity.results.capacity_folder import save
from server_capacity.results.ranking_order import ranking
from server_capacity.results.ranking_row import Aim, row_of
from server_capacity.results.types.result_status import settled
from tests.capacities import found, searched
from tests.waves import make_run, stored, wave

FORMS = {"markdown": "### VALID", "html": "<!DOCTYPE html>", "junit": "<?xml", "csv": "run,name,start"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs, the second one INVALID."""
    folder = tmp_path_factory.mktemp("runs")
    make_run(folder / "a", 300, name="first")
    make_run(folder / "b", 300, rate=400, dropped=50)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_each_form_goes_to_standard_output_or_to_a_file(
    runs: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, file = str(runs / "a"), tmp_path / "report"
    assert main(["report", run, "--format", form]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(FORMS[form])
    file.write_text("what stood there")
    assert main(["report", run, "--format", form, "--output", str(file)]) == 0
    assert capsys.readouterr().out == ""
    assert file.read_text() == printed


def test_the_text_goes_to_a_file_as_it_is_printed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs / "b")]) == 3
    printed = capsys.readouterr().out
    assert main(["report", str(runs / "b"), "--output", str(tmp_path / "r.txt")]) == 3
    assert (tmp_path / "r.txt").read_text() == printed


def test_the_exit_code_is_the_waves_in_every_form(runs: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert {main(["report", str(runs / "b"), "--format", form, "--output", out]) for form in FORMS} == {3}


def test_a_folder_of_runs_is_a_table_with_a_row_each(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs), "--format", "csv"]) == 3
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(Path(row["run"]).name, row["name"], row["verdict"]) for row in rows] == [
        ("a", "first", "VALID"),
        ("b", "", "INVALID"),
    ]


def test_a_run_that_cannot_be_read_has_a_row_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(wave([[0.02] * 10]), tmp_path)
    broken = tmp_path / "x_benchmark"
    broken.mkdir()
    (broken / "plan.json").write_text("{")
    assert main(["report", str(tmp_path), "--format", "csv"]) == 2
    printed = capsys.readouterr()
    rows = list(csv.DictReader(printed.out.splitlines()))
    assert [(row["run"], row["verdict"]) for row in rows] == [(str(run.path), "VALID"), (str(broken), "UNREADABLE")]
    assert "no request was recorded in it" in printed.err
    assert main(["report", str(broken), "--format", "csv"]) == 2
    assert capsys.readouterr().out == ""


def test_an_answer_is_reported_as_markdown_and_in_no_form_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "capacity.json").write_text(json.dumps(found(schema_version=1, headline="Meets p99<100ms up to 174/s")))
    assert main(["report", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert main(["report", str(tmp_path), "--format", "markdown"]) == 0
    assert capsys.readouterr().out == f"```text\n{text}```\n"
    assert main(["report", str(tmp_path), "--format", "junit"]) == 2
    assert "is the folder of a search or a plan, not of a run, so it has no junit" in capsys.readouterr().err


def test_the_runs_of_a_ranking_are_those_of_its_searches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = tmp_path / "a_capacity"
    search.mkdir()
    run = stored(wave([[0.02] * 10]), search)
    capacity_folder.save(search, searched(endpoint={"arguments": {"kind": "a"}}))
    row = row_of({"kind": "a"}, search.name, capacity_folder.read(search), None, Aim())
    ranking_folder.save(tmp_path, ranking([row], Aim()))
    main(["report", str(tmp_path), "--format", "csv"])
    assert [row["run"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == [str(run.path)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "pdf"], "pdf"),
        (["--format", "csv", "--json"], "--json prints summary.json"),
        (["--json", "--output", "x"], "--json prints summary.json"),
        (["--format", "csv", "--endpoint-config", "x"], "has no column of a server's metrics"),
        (["--format", "html", "--output", "/nowhere/at/all.html"], "/nowhere/at/all.html: cannot be written"),
    ],
)
def test_what_cannot_be_is_refused(
    runs: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(runs / "a"), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_junit_of_a_stored_run_is_called_by_its_name(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", str(runs / "a"), "--format", "junit"])
    suite = ElementTree.fromstring(capsys.readouterr().out)  # noqa: S314 - our own
    assert suite.attrib["name"] == "first"


def test_what_aiperf_measured_stands_below_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stored(wave([[0.02] * 10] * 10), tmp_path)
    run.aiperf.mkdir()
    AiperfResult("0.3", 0.0, 9.0, 10, 10, {}, None, None, None, {}, 0.95, str(run.aiperf)).save()
    assert main(["report", str(run.path)]) == 0
    printed = capsys.readouterr().out
    assert "aiperf" in printed
    assert main(["report", str(run.path), "--output", str(tmp_path / "r.txt")]) == 0
    assert (tmp_path / "r.txt").read_text() == printed
    assert main(["report", str(run.path), "--format", "markdown"]) == 0
    block = printed[printed.rindex("RESULTS") :]
    assert capsys.readouterr().out.endswith(f"```text\n{block}```\n")


@pytest.mark.parametrize(
    ("ok", "more", "code"), [(8, {}, 1), (10, {"gave_up": True}, 1), (10, {"interrupted": True}, 130)]
)
def test_what_aiperf_missed_stands_in_every_form(
    ok: int, more: dict[str, Any], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = stored(wave([[0.02] * 10] * 10), tmp_path)
    run.aiperf.mkdir()
    errors = {"HTTPError 503": 10 - ok}
    AiperfResult("0.3", 0.0, 9.0, 10, ok, {}, None, None, None, errors, 0.95, str(run.aiperf), **more).save()
    printed = {}
    for form in FORMS:
        assert main(["report", str(run.path), "--format", form]) == code
        printed[form] = capsys.readouterr().out
    assert printed["markdown"].startswith("### aiperf: ")
    assert 'failures="1"' in printed["junit"]
    assert "<b>aiperf: " in printed["html"]


def test_csv_of_a_search_ends_as_its_search_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path, settled(searched(confirmation=[])))
    stored(wave([[0.02] * 10] * 10), tmp_path)
    assert main(["report", str(tmp_path), "--format", "csv"]) == 1
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["verdict"] == "VALID"
