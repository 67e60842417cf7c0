"""Spools as a primary leaves them: of a wave whose rate was steered, and of clients that try again."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from inference_benchmarker import Bounds, OpenLoop, WavePlan
from inference_benchmarker.data.json_file import write_json
from inference_benchmarker.facts.instances import Count, Followed
from inference_benchmarker.plan.retries import Retries
from inference_benchmarker.plan.steering import RateChange, as_offered
from inference_benchmarker.records.batch_writer import BatchWriter
from inference_benchmarker.records.record import NONE, Ledger
from inference_benchmarker.wave.files.instances_file import write_instances
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import SpoolWriter
from inference_benchmarker.words.units import NS
from tests.waves import CONSTANTS, MS, Worker, on_time, staged, use

if TYPE_CHECKING:
    from pathlib import Path

STEERED = WavePlan(OpenLoop(Decimal(10), steered=True), Bounds(), workers=2, seed=1)
CHANGES = [RateChange(NS, Decimal(20)), RateChange(NS + NS // 2, Decimal(4))]
END = 3 * NS
STOPS: dict[str, dict[str, Any] | None] = {
    "planned": {"event": "stop", "at": END, "cause": "planned"},
    "asked": {"event": "stop", "at": END, "cause": "asked"},
    "command gone": {"event": "stop", "at": END, "cause": "command_gone"},
    "all killed": None,
}


def steered(
    parent: Path,
    stop: str = "planned",
    *,
    plan: WavePlan = STEERED,
    reported: list[dict[str, Any]] | None = None,
    heard: tuple[int, ...] = (2, 2),
    late: int = 0,
    extra: int = 0,
) -> RunDir:
    """A run directory as its primary leaves it: what each worker ``heard``; one may have sent more than planned."""
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[5, 5], host=CONSTANTS)
    for change in reported if reported is not None else [{"at": c.at_ns, "rate": str(c.rate)} for c in CHANGES]:
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


def drawn_again(parent: Path) -> RunDir:
    """The spool of stages whose every fifth arrival was tried again, with streams, and the instances beside it."""
    plan = replace(staged("20:1s,rest=5:1s", retries=Retries(Decimal("0.1"), 2)), workers=2, seed=1)
    run_dir = RunDir.create(parent)
    write_json(run_dir.plan, plan.public_json())
    counts = (Count(1_700_000_000, 1, 1), Count(1_700_000_001, 1, 2), Count(1_700_000_002, 2, 2))
    write_instances(run_dir.instances, [Followed("a/b", "DescribeEndpoint", counts)])
    spool = SpoolWriter(run_dir.spool)
    spool.event(event="start", t0=5, wall_ns=1_700_000_000 * NS, caps=[5, 5], host=CONSTANTS)
    for number in range(plan.workers):
        worker = Worker(number)
        worker.writer.feed.set_stages([NS])
        mine = [record for record in on_time(plan) if record.worker == number]
        for record in mine:
            if record.index % 5:
                worker.write(record._replace(first_token=record.sent, last_token=record.done, chunks=2, gaps=(20_000,)))
                continue
            worker.write(record._replace(outcome="failed", error="ClientTimeout"))
            later = {name: getattr(record, name) + 50 * MS for name in ("due", "sent", "done")}
            worker.write(record._replace(**later, attempt=1), record.due)
        repeated = sum(record.index % 5 == 0 for record in mine)
        ledger = Ledger(sent=len(mine) + repeated, ok=len(mine), failed=repeated, repeated=repeated).to_json()
        meta = {"worker": number, "at": 2 * NS, "final": True, "ledger": ledger, "use": use(cpu_s=0.5)}
        spool.batch(worker.writer.take(meta))
    spool.event(event="end", at=2 * NS)
    spool.close()
    return run_dir
