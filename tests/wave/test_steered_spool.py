"""The spool of a wave whose rate was steered: what was offered is put together from it, wherever it ends."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inference_benchmarker import BenchmarkError, Bounds, OpenLoop, Wave, WavePlan
from inference_benchmarker.json_file import read_json, write_json
from inference_benchmarker.plan.steering import RateChange, as_offered
from inference_benchmarker.records.record import NONE, BatchWriter, Ledger
from inference_benchmarker.units import NS
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool import SpoolWriter
from tests.waves import CONSTANTS, on_time, use

if TYPE_CHECKING:
    from pathlib import Path

PLAN = WavePlan(OpenLoop(Decimal(10), steered=True), Bounds(), workers=2, seed=1)
CHANGES = [RateChange(NS, Decimal(20)), RateChange(NS + NS // 2, Decimal(4))]
END = 3 * NS
STOPS: dict[str, dict[str, Any] | None] = {
    "planned": {"event": "stop", "at": END, "cause": "planned"},
    "asked": {"event": "stop", "at": END, "cause": "asked"},
    "command gone": {"event": "stop", "at": END, "cause": "command_gone"},
    "all killed": None,
}


def spooled(
    parent: Path,
    stop: str = "planned",
    *,
    plan: WavePlan = PLAN,
    told: list[dict[str, Any]] | None = None,
    heard: tuple[int, ...] = (2, 2),
    late: int = 0,
    extra: int = 0,
) -> RunDir:
    """A run directory as its primary leaves it: what each worker ``heard``; one may have sent more than planned."""
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[5, 5], host=CONSTANTS)
    for change in told if told is not None else [{"at": c.at_ns, "rate": str(c.rate)} for c in CHANGES]:
        spool.event(event="rate", **change)
    if (event := STOPS[stop]) is not None:
        spool.event(**event)
    rows = on_time(as_offered(plan, CHANGES, END))
    culprit = int(late == 0)
    rows += [rows[0]._replace(index=26 + culprit + 2 * n, due=END, worker=culprit) for n in range(extra)]
    final = stop in ("planned", "asked")
    for worker, changes in enumerate(heard):
        writer = BatchWriter()
        mine = sorted(row for row in rows if row.worker == worker)
        for row in mine:
            writer.add(row.index, row.due, row.sent, row.done, 0, NONE, writer.labels["a"], 0, 0)
        ledger = Ledger(sent=len(mine), ok=len(mine), late_changes=late if worker == 0 else 0).to_json()
        meta = {"worker": worker, "at": END, "final": final, "changes": changes, "use": use(cpu_s=0.5)}
        spool.batch(writer.take({**meta, "ledger": ledger}))
    if final:
        spool.event(event="end", at=END)
    spool.close()
    return run_dir


def codes(wave: Wave) -> set[str]:
    return {finding.code for finding in wave.verdict.findings}


@pytest.mark.parametrize("stop", STOPS)
def test_however_it_ended_the_stages_are_those_that_were_offered(tmp_path: Path, stop: str) -> None:
    run_dir = spooled(tmp_path, stop)
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
    bounded = replace(PLAN, bounds=Bounds(Decimal(3)))
    wave = Wave.load(spooled(tmp_path, plan=bounded).path)
    assert [wave.plan.bounds, wave.ledger.scheduled, wave.verdict.exit_code] == [Bounds(Decimal(3)), 26, 0]


@pytest.mark.parametrize(("heard", "late", "count"), [((2, 2), 1, 1), ((2, 1), 0, 1), ((1, 2), 1, 2)])
def test_who_heard_late_or_never_makes_the_wave_invalid(
    tmp_path: Path, heard: tuple[int, ...], late: int, count: int
) -> None:
    run_dir = spooled(tmp_path, heard=heard, late=late, extra=3)
    for _ in range(2):
        wave = Wave.load(run_dir.path)
        assert wave.ledger.late_changes == count
        found = next(finding for finding in wave.verdict.findings if finding.code == "schedule_late")
        assert found.measured.startswith(f"worker {int(heard == (2, 1))} heard of {count} change")
        assert "ledger_broken" not in codes(wave)
        assert wave.verdict.exit_code == 3


@pytest.mark.parametrize(
    "told",
    [
        [{"at": 0, "rate": "5"}],
        [{"at": NS, "rate": "5"}, {"at": NS, "rate": "6"}],
        [{"at": NS, "rate": "-5"}],
        [{"at": NS, "rate": "many"}],
        [{"at": NS, "rate": "9" * 200}],
        [{"at": NS + 1, "rate": "5"}],
    ],
)
def test_changes_that_nobody_could_have_made_are_refused(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    with pytest.raises(BenchmarkError):
        Wave.load(spooled(tmp_path, told=told).path)
