"""Sends the waves of the table and keeps their facts: ``python -m tests.culprits.record [NAME ...]``.

By hand, on a machine with nothing else to do; six minutes in all. The table that it prints leaves out the verdicts of
the waves that are held out; with ``--held-out`` it shows them, and sends nothing.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from inference_benchmarker import Wave
from inference_benchmarker.embedded.running import EndpointConfig, start
from inference_benchmarker.verdict.client.worker import lag_limit_s
from tests.bench import Bench, Finished
from tests.culprits.refusing_server import RefusingServer
from tests.culprits.waves import CULPRITS, Culprit

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIES = 4
UNJUDGED = {"environment": {}, "verdict": "PENDING", "exit_code": 1}
# What a verdict is made of; all else in summary.json follows from it.
FACTS = (
    "schema_version",
    "window",
    "ledger",
    "lost_workers",
    "primary_lost",
    "interrupted",
    "disk_error",
    "errors",
    "client",
    "calibration",
    "server_metrics",
)
DELTAS = ("index", "due", "sent", "first_token", "last_token", "done", "build_ns")
OF_THE_MACHINE = {"factories_file": None, "output_dir": "runs"}


def main(arguments: list[str]) -> None:
    """Record what is named, or everything; then print the table."""
    names = [argument for argument in arguments if not argument.startswith("--")]
    chosen = [culprit for culprit in CULPRITS if culprit.name in names or not names]
    held_out = "--held-out" in arguments
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for culprit in chosen:
            if not held_out:
                keep(culprit, undisturbed(culprit, bench))
            print(row(culprit, shown=held_out or not culprit.held_out), flush=True)


def undisturbed(culprit: Culprit, bench: Bench) -> Finished:
    """The wave, or the last of several: what else this machine does makes any client late."""
    for _ in range(TRIES):
        finished = send(culprit, bench)
        if culprit.kind == "client" or not is_late(Wave.load(finished.folder)):
            break
    return finished


def send(culprit: Culprit, bench: Bench) -> Finished:
    """The wave with all that belongs to it."""
    with ExitStack() as stack:
        stack.enter_context(neighbours(culprit.neighbours))
        if culprit.refuses:
            url = stack.enter_context(RefusingServer()).url
            return bench.run(*culprit.flags, factories=culprit.factories, target=url)
        endpoint = stack.enter_context(start(EndpointConfig(**culprit.endpoint)))
        environment = {}
        if culprit.bad_replica:
            environment["BAD_TARGET"] = stack.enter_context(start(EndpointConfig(**culprit.bad_replica))).url
        if culprit.meanwhile:
            beside = threading.Thread(target=culprit.meanwhile, args=(endpoint,))
            beside.start()
            stack.callback(beside.join)
        return bench.run(
            *culprit.flags,
            factories=culprit.factories,
            target=endpoint,
            environment=environment,
            before=culprit.before,
        )


@contextmanager
def neighbours(number: int) -> Iterator[None]:
    """Processes that compute and do nothing else."""
    processes = [multiprocessing.Process(target=_compute, daemon=True) for _ in range(number)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def _compute() -> None:
    while True:
        pass


def is_late(wave: Wave) -> bool:
    """Whether the client was late, or slow to take up answers."""
    lag, limit = wave.summary.lag, lag_limit_s(wave.summary)
    delays = [worker.loop_delay.p99_s for worker in wave.workers if worker.loop_delay]
    return (lag is not None and lag.percentile(99) > limit) or max(delays, default=0.0) > limit


def keep(culprit: Culprit, finished: Finished) -> None:
    """Store the wave's facts, without what tells of this machine."""
    folder = culprit.evidence
    folder.mkdir(parents=True, exist_ok=True)
    plan = json.loads((finished.folder / "plan.json").read_text())
    plan = {name: value for name, value in plan.items() if name not in ("environment", "calibration")}
    _write(folder / "plan.json", plan | OF_THE_MACHINE)
    facts = {name: finished.summary[name] for name in FACTS} | UNJUDGED
    _write(folder / "summary.json", facts)
    table = pq.read_table(finished.folder / "requests.parquet")
    words = [field.name for field in table.schema if field.name not in DELTAS]
    pq.write_table(
        table,
        folder / "requests.parquet",
        compression="zstd",
        compression_level=19,
        use_dictionary=words,
        column_encoding=dict.fromkeys(DELTAS, "DELTA_BINARY_PACKED"),
        write_statistics=False,
    )


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1) + "\n")


def row(culprit: Culprit, *, shown: bool) -> str:
    """The culprit, and what its verdict says."""
    head = f"{culprit.kind:7}{culprit.name:20}"
    wave = Wave.load(culprit.evidence)
    sent = f"{wave.ledger.sent:6,} sent"
    if not shown:
        return f"{head}{sent}  held out"
    codes = " ".join(finding.code for finding in wave.verdict.findings)
    right = "right" if is_right(culprit, wave) else "WRONG"
    return f"{head}{sent}  {right}  {wave.verdict.limited_by!s:7}{codes}"


def is_right(culprit: Culprit, wave: Wave) -> bool:
    """Whether the right side is blamed, and for the right reason; and nobody where nothing is wrong."""
    verdict = wave.verdict
    codes = {finding.code for finding in verdict.findings}
    named = not culprit.codes or bool(codes & set(culprit.codes))
    return verdict.limited_by in culprit.sides and named and (verdict.valid or culprit.kind != "clean")


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    main(sys.argv[1:])
