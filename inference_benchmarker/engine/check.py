"""Sends one request as a wave's worker would, in a process of its own, and gives back what was understood of it.

The canaries of a search are asked in such a process, too.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from inference_benchmarker.engine.processes.child_logs import child_log
from inference_benchmarker.engine.processes.children import (
    REAP_S,
    child_environment,
    note_addresses,
    note_asked_for,
    write_line,
)
from inference_benchmarker.engine.processes.leftovers import (
    MARK,
    Orphans,
    end_leftovers,
    line_to_end_leftovers,
    new_mark,
)
from inference_benchmarker.engine.processes.scratch import scratch_folder
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.address import Address
from inference_benchmarker.facts.probe import ProbeFacts
from inference_benchmarker.records.batch import split_batch
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.packed import WorkerColumns, unpacked
from inference_benchmarker.report.check import Check, Ended
from inference_benchmarker.system.given import resolved
from inference_benchmarker.system.host import adopting_orphans
from inference_benchmarker.system.packaged import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.plan.plan import WavePlan

POLL_S = 0.02
PATIENCE_S = 2.0  # what takes longer is said
LOADED = "loaded"


def send_one(plan: WavePlan, printed: Callable[[str], None]) -> Check | Ended:
    """Send one request to a plan's endpoint.

    ``printed`` is given what the user's code printed, without secrets, and that it takes its time. Raises
    BenchmarkError for a file that cannot be used or is not loaded in time; an interrupt ends the process.
    """
    assert plan.factories_file is not None
    result = _result_of(plan, printed, canaries=False)
    if isinstance(result, str):
        return Ended(shown_path(plan.factories_file), result)
    return _understood(plan.factories_file, result)


class AskedCanaries(NamedTuple):
    """The ``text`` and ``characters`` of each answer, as capacity.json has them; ``failed``: words on a failed one."""

    answers: list[dict[str, Any]]
    failed: str


def ask_canaries(plan: WavePlan, printed: Callable[[str], None]) -> AskedCanaries:
    """Ask each canary of a plan's file twice, one at a time; ``printed``: see ``send_one``.

    Raises BenchmarkError for canaries that cannot be made.
    """
    result = _result_of(plan, printed, canaries=True)
    if isinstance(result, str):
        raise BenchmarkError(f"The canaries were not asked: {result}.")
    if (error := result.get("error")) is not None:
        raise BenchmarkError(error["message"], error["hint"])
    return AskedCanaries(result["canaries"], result["failed"])


def _result_of(plan: WavePlan, printed: Callable[[str], None], *, canaries: bool) -> dict[str, Any] | str:
    """The object that the process leaves, or the words on how it ended without one."""
    assert plan.factories_file is not None
    note_asked_for(plan.factories_file, plan.factory_settings.values())
    note_addresses(plan.endpoint_name, *plan.factory_settings.values())
    mark = new_mark()
    with scratch_folder("benchmark_check_", if_killed=line_to_end_leftovers(mark)) as folder, adopting_orphans():
        try:
            plan = replace(plan, factories_file=resolved(plan.factories_file))
            code = _run(folder, mark, plan, printed, canaries=canaries)
        finally:
            _hand_on(folder / "output", printed)
        if not _result(folder).is_file():
            return _how(code)
        found: dict[str, Any] = json.loads(_result(folder).read_text())
        return found


def _run(folder: Path, mark: str, plan: WavePlan, printed: Callable[[str], None], *, canaries: bool) -> int:
    """Run the process to its end; in a session of its own, so that Ctrl-C reaches this process alone."""
    orphans = Orphans(mark)
    with child_log(folder / "output") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "inference_benchmarker.engine.worker.check", str(folder)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**child_environment(), MARK: mark},
            start_new_session=True,
        )
        try:
            write_line(process, json.dumps({"plan": plan.to_json(), "parent": os.getpid(), "canaries": canaries}))
            _wait(process, folder, plan, printed)
            with suppress(subprocess.TimeoutExpired):  # a thread of the user's may never end
                process.wait(REAP_S)
        finally:
            process.kill()
            process.communicate()
            end_leftovers(mark, {process.pid})
            orphans.end({process.pid})
    return process.returncode


def _wait(process: subprocess.Popen[bytes], folder: Path, plan: WavePlan, printed: Callable[[str], None]) -> None:
    """Until there is a result or the process has ended; who waits learns for what."""
    assert plan.factories_file is not None
    begun = time.monotonic()
    report_at = begun + PATIENCE_S
    until = begun + float(plan.load_timeout_s)
    while process.poll() is None and not _result(folder).is_file():
        loaded = (folder / LOADED).is_file()
        if (now := time.monotonic()) > report_at:
            report_at += 5 * PATIENCE_S
            printed("Waiting for the answer ...\n" if loaded else "Loading the endpoint's code ...\n")
        if now > until and not loaded:
            raise BenchmarkError(
                f"{shown_path(plan.factories_file)}: was not loaded within {plan.load_timeout_s} s.",
                "Make it faster, or allow more time with --load-timeout.",
            )
        time.sleep(POLL_S)


def _result(folder: Path) -> Path:
    return folder / "result.json"


def _hand_on(output: Path, printed: Callable[[str], None]) -> None:
    if output.is_file() and (text := output.read_text(encoding="utf-8", errors="replace")):
        printed(text)


def _understood(file: Path, result: dict[str, Any]) -> Check:
    if (error := result.get("error")) is not None:
        raise BenchmarkError(error["message"], error["hint"])
    meta, *sections = split_batch(base64.b64decode(result["batch"]))
    columns = WorkerColumns(
        worker=0,
        **unpacked(sections),
        labels=meta["labels"],
        errors=meta["errors"],
        finish_reasons=meta["finish_reasons"],
        metric_names=meta.get("metrics", []),
    )
    (record,) = Records.of_workers([columns])
    seen = ProbeFacts(
        **{**result["seen"], "addresses": [Address(**address) for address in result["seen"]["addresses"]]}
    )
    return Check(shown_path(file), record, seen, next((text for _, text in meta["texts"]), None))


def _how(code: int) -> str:
    """The process is gone without a word: its code ended it, or the system did."""
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    return f"the process ended {how} while it loaded the file or sent the request"
