"""The spool of a wave whose rate was steered: what was offered is put together from it, wherever it ends."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import BenchmarkError, Bounds, OpenLoop, Wave, WavePlan
from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.words.units import NS
from tests.spools import STEERED, STOPS, steered

if TYPE_CHECKING:
    from pathlib import Path


def codes(wave: Wave) -> set[str]:
    return {finding.code for finding in wave.verdict.findings}


@pytest.mark.parametrize("stop", STOPS)
def test_however_it_ended_the_stages_are_those_that_were_offered(tmp_path: Path, stop: str) -> None:
    run_dir = steered(tmp_path, stop)
    wave = Wave.load(run_dir.path)
    assert isinstance(wave.plan.load, OpenLoop)
    assert wave.plan.load.text == "10:1s, 20:0.5s, 4:1.5s"
    stages = wave.to_json()["stages"]
    assert [(row["planned"], row["sent"]) for row in stages] == [(10, 10), (10, 10), (6, 6)]
    assert wave.interrupted == (stop == "asked")
    assert "schedule_late" not in codes(wave)
    assert WavePlan.from_json(read_json(run_dir.plan)).load == wave.plan.load
    assert Wave.load(run_dir.path).to_json() == wave.to_json()
    assert wave.verdict.exit_code == {"planned": 0, "asked": 130}.get(stop, 3)


def test_a_bound_is_where_the_last_stage_ends(tmp_path: Path) -> None:
    bounded = replace(STEERED, bounds=Bounds(Decimal(3)))
    wave = Wave.load(steered(tmp_path, plan=bounded).path)
    assert [wave.plan.bounds, wave.ledger.scheduled, wave.verdict.exit_code] == [Bounds(Decimal(3)), 26, 0]


@pytest.mark.parametrize(("heard", "late", "count"), [((2, 2), 1, 1), ((2, 1), 0, 1), ((1, 2), 1, 2)])
def test_who_heard_late_or_never_makes_the_wave_invalid(
    tmp_path: Path, heard: tuple[int, ...], late: int, count: int
) -> None:
    run_dir = steered(tmp_path, heard=heard, late=late, extra=3)
    for _ in range(2):
        wave = Wave.load(run_dir.path)
        assert wave.ledger.late_changes == count
        found = next(finding for finding in wave.verdict.findings if finding.code == "schedule_late")
        assert found.measured.startswith(f"worker {int(heard == (2, 1))} received {count} change")
        assert "ledger_broken" not in codes(wave)
        assert wave.verdict.exit_code == 3


@pytest.mark.parametrize(
    "expected",
    [
        [{"at": 0, "rate": "5"}],
        [{"at": NS, "rate": "5"}, {"at": NS, "rate": "6"}],
        [{"at": NS, "rate": "-5"}],
        [{"at": NS, "rate": "many"}],
        [{"at": NS, "rate": "9" * 200}],
        [{"at": NS + 1, "rate": "5"}],
    ],
)
def test_changes_that_nobody_could_have_made_are_refused(tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    with pytest.raises(BenchmarkError):
        Wave.load(steered(tmp_path, reported=expected).path)
