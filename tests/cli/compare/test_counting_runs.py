"""The runs of a folder that `benchmark compare` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.cli.compare.compare import counting_runs
from server_capacity.results import capacity_folder
from tests.capacities import searched

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_confirmation_that_a_search_repeated_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["1_search", "2_spoilt", "3_confirmed"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").touch()
    assert [run.name for run in counting_runs(tmp_path)] == names

    waves = [
        {"rate": 168.2, "verdict": verdict, "limits": [], "directory": name, "spoilt": spoilt}
        for name, verdict, spoilt in ((names[1], "cannot_tell", "it stalled"), (names[2], "holds", ""))
    ]
    (tmp_path / capacity_folder.FILE).touch()
    monkeypatch.setattr(capacity_folder, "read", lambda _: searched(confirmation=waves))

    assert [run.name for run in counting_runs(tmp_path)] == [names[0], names[2]]
    assert "2_spoilt is left out, because the search repeated it: it stalled." in capsys.readouterr().err
