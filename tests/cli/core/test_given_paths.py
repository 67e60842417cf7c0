"""A closed path is the user's matter where it was given, and ours where we made it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference_benchmarker import cli
from inference_benchmarker.cli import dispatch
from inference_benchmarker.cli.core.given_paths import was_given
from inference_benchmarker.exit_codes import BAD_INPUT, INVALID

GIVEN = [
    ("runs/a/plan.json", ["report", "runs/a"]),
    ("runs/a", ["report", "runs/a"]),
    ("a.json", ["--body", "@a.json"]),
    ("a.json", ["--body=@a.json"]),
    ("in/b.txt", ["--files", "name=in"]),
    ("out", ["--output-dir", "out"]),
]
OURS = [
    ("/proc/1/environ", ["report", "runs/a"]),
    ("out/2026/summary.json", ["--output-dir", "out"]),
    ("out/2026/summary.json", ["--output-dir=out"]),
    ("runs/b/plan.json", ["report", "runs/a"]),
    ("runs", ["report", "runs/a"]),
    ("any", ["--name", "", "--body="]),
]


@pytest.mark.parametrize(("path", "arguments"), GIVEN)
def test_a_path_of_the_arguments_was_given(path: str, arguments: list[str]) -> None:
    assert was_given(path, arguments)
    assert was_given(str(Path(path).absolute()), arguments)


@pytest.mark.parametrize(("path", "arguments"), OURS)
def test_any_other_was_not(path: str, arguments: list[str]) -> None:
    assert not was_given(path, arguments)


@pytest.mark.parametrize("how", [["--config", "c.toml"], ["--config=c.toml"]])
def test_a_configuration_file_gives_paths_too(how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text('replay = "traffic"\noutput-dir = "out"\n')
    assert was_given("traffic/day.jsonl", how)
    assert was_given("out", how)
    assert not was_given("out/2026/summary.json", how)


@pytest.mark.parametrize("of", ["plans/b", ""])
@pytest.mark.parametrize("absolute", [True, False])
def test_a_result_that_is_read_gives_the_paths_in_it(
    of: str, absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count from its own folder, or from the current one."""
    monkeypatch.chdir(tmp_path)
    search = tmp_path / of / "searches" / "a"
    Path("plans/b").mkdir(parents=True)
    named = str(search) if absolute else "searches/a"
    Path("plans/b/fleet_plan.json").write_text(json.dumps({"rows": [{"search": named}], "of": "/"}))
    assert was_given(str(search / "capacity.json"), ["report", "plans/b"])
    assert was_given(str(search / "capacity.json"), ["--verify=plans/b/fleet_plan.json"])
    assert not was_given(str(search / "capacity.json"), ["--output-dir", "plans/b"])
    assert not was_given("/proc/1/environ", ["report", "plans/b"])


@pytest.mark.parametrize(("path", "code"), [("runs/a/plan.json", BAD_INPUT), ("/proc/1/environ", INVALID)])
def test_only_such_a_path_is_bad_input(
    path: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(_: list[str]) -> int:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(dispatch, "_dispatch", refused)
    assert cli.main(["report", "runs/a"]) == code
    said = capsys.readouterr().err
    assert ("Traceback" in said) == (code == INVALID)
    assert f"{path}: Permission denied" in said or code == INVALID
