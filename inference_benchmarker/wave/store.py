"""A wave's way to disk and back: what stands in the files of a run directory is known here alone.

``run_dir`` names the files; their tables of text are read and written by ``tables``. Whose run directory it is, is not
known: what is read is held against bounds, and what is written stays in it (``files``).
"""

from __future__ import annotations

import shutil
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from inference_benchmarker.data.digest import KEY, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json, write_json, write_with_digest
from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.hosts import HostFacts
from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.columns import Records
from inference_benchmarker.records.counts import check_series
from inference_benchmarker.records.parts import PART
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.system.files import is_file, replace_file
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wave.consistency import check_requests, check_wave
from inference_benchmarker.wave.files.counts_file import read_counts, write_counts
from inference_benchmarker.wave.files.identity import check_of_wave, digests_of, require_unchanged
from inference_benchmarker.wave.files.instances_file import read_instances, write_instances
from inference_benchmarker.wave.files.requests_file import Requests, in_file, read_requests, write_requests
from inference_benchmarker.wave.finalise import finalise, make_countable, nothing_recorded, offered
from inference_benchmarker.wave.plan_file import save_plan as save_plan  # noqa: PLC0414 - the rest of the store
from inference_benchmarker.wave.plan_file import scheduled
from inference_benchmarker.wave.report_check import check_report
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import is_locked
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.wave.wave import Wave

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_SERVER_ROW: dict[str, Any] = {
    "name": str,
    "statistics": dict[str, float | None],
    "dimensions": dict[str, str] | None,
    "unit": str | None,
    "reason": str | None,
    "series_of": str | None,
}


def load(path: str | Path) -> Wave:
    """Load a run directory; one that was cut off is finalised first. BenchmarkError for what is none."""
    run_dir = RunDir.find(Path(path))
    if not _is_stored(run_dir):
        try:
            return _put_together(run_dir)
        except (BenchmarkError, OSError):
            if not _is_stored(run_dir):  # by another command, meanwhile
                raise
    return _stored(run_dir)


def save(wave: Wave, run_dir: RunDir) -> Wave:
    """Store a wave beside its plan, and return it as one that is stored there.

    The spool goes when all else is safely there. OSError where it cannot be stored: see ``take_back``.
    """
    return _save_rest(_with_requests_stored(wave, run_dir), run_dir)


def _save_rest(wave: Wave, run_dir: RunDir) -> Wave:
    """Store what is told beside the requests, which are stored already, and what is computed from them."""
    wave = _with_what_lies_beside(wave.stored_in(run_dir))
    if wave.counts is not None:
        write_counts(run_dir.counts, wave.counts, wave.window.start_unix_ns)
    if wave.plan.load.steered:
        write_json(run_dir.plan, {**read_json(run_dir.plan), **wave.plan.public_json()})
    replace_file(run_dir.timeline, timeline(wave))
    if wave.instances:
        write_instances(run_dir.instances, wave.instances)
    _save_report(wave, run_dir)
    with suppress(OSError):  # all else is stored: what is left of it is only space
        run_dir.spool.unlink(missing_ok=True)
    shutil.rmtree(run_dir.recorded_rows, ignore_errors=True)
    return wave


def _with_what_lies_beside(wave: Wave) -> Wave:
    """The wave with its instances as they were followed while it ran: whoever loads it reads them, too."""
    if wave.run_dir is None or wave.instances:
        return wave
    with suppress(BenchmarkError):  # damaged by a full disk: who followed them writes them anew
        return wave.with_instances(read_instances(wave.run_dir.instances))
    return wave


def save_server_metrics(wave: Wave) -> None:
    """Store what a wave's server said beside the rest. OSError where it cannot be written to any more."""
    if wave.run_dir is not None:
        if wave.instances:
            write_instances(wave.run_dir.instances, wave.instances)
        rows = [metric.to_json() for metric in wave.server_metrics or ()]
        logs = [log.to_json() for log in wave.server_logs or ()]
        write_json(wave.run_dir.server_metrics, {"schema_version": SCHEMA_VERSION, "metrics": rows, "logs": logs})
        _save_report(wave, wave.run_dir)


def take_back(run_dir: RunDir) -> None:
    """Take away what ``save`` began to store: it would tell less than the spool that stays."""
    for path in (run_dir.requests, run_dir.counts, run_dir.timeline, run_dir.report, run_dir.summary):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def read_plan(run_dir: RunDir) -> WavePlan:
    """The plan of a run directory; BenchmarkError for what is none, or none that a wave could have."""
    return _plan_of(run_dir, read_json(run_dir.plan))


def has_digest(run_dir: RunDir) -> bool:
    """Tells whether what is stored has a digest, which earlier versions did not write."""
    return KEY in read_json(run_dir.summary) if is_file(run_dir.summary) else True


def read_facts(path: Path) -> dict[str, Any]:
    """The content of ``summary.json`` or ``plan.json`` as it stands: any of it may be missing, or of another type."""
    facts = read_json(path)
    try:
        require_digest(facts)
    except UNREADABLE as error:
        raise foreign(path, error) from None
    return facts


def read_server_metrics(path: Path) -> list[dict[str, Any]]:
    """The rows of ``server_metrics.json``, of the types that it has."""
    rows: list[dict[str, Any]] = read_json(path)["metrics"]
    for row in rows:
        for key, kind in _SERVER_ROW.items():
            require(row.get(key), kind, key)
    return rows


def _with_requests_stored(wave: Wave, run_dir: RunDir, check: RecordsCheck | None = None) -> Wave:
    """The wave with its requests written down, and held against what a wave can have where there is a ``check``.

    Those of a large wave are then the file's. ValueError where they are refused: nothing is written.
    """
    parts = _each_checked(wave, check) if check else _parts_of(wave)
    write_requests(run_dir.requests, parts, wave.window.start_unix_ns)
    if isinstance(wave.records, Records) and isinstance(wave.warmup, Records):
        return wave
    return wave.with_requests(in_file(run_dir.requests))


def _parts_of(wave: Wave) -> Iterator[Records]:
    """All requests, the warm-up's first; those of a small wave are one part."""
    if isinstance(wave.records, Records) and isinstance(wave.warmup, Records):
        yield Records.joined([wave.warmup, wave.records])
    else:
        yield from wave.warmup.parts()
        yield from wave.records.parts()


def _each_checked(wave: Wave, check: RecordsCheck) -> Iterator[Records]:
    for part in _parts_of(wave):
        check.take(part)
        yield part
    check_requests(wave, check)


def _is_stored(run_dir: RunDir) -> bool:
    return is_file(run_dir.requests) and is_file(run_dir.summary)


def _put_together(run_dir: RunDir) -> Wave:
    """The wave of a run directory that was cut off."""
    if not is_file(run_dir.spool):
        raise nothing_recorded(run_dir)
    if is_locked(run_dir.spool):
        raise BenchmarkError(f"{run_dir.path}: its wave is still running.", "Wait for its end.")
    wave, stored = _of_spool(run_dir)
    if stored:
        with suppress(OSError):  # what cannot be written to can still be read
            return _save_rest(wave, run_dir)
    return wave


def _stored(run_dir: RunDir) -> Wave:
    described = read_json(run_dir.summary)
    plan = read_plan(run_dir)
    requests = read_requests(run_dir.requests, PART)
    try:
        wave = _of_facts(plan, requests, _todays_facts(described), run_dir)
        check_wave(wave)
        for path in filter(is_file, (run_dir.requests, run_dir.counts)):
            check_of_wave(path, wave.window.start_unix_ns)
        if require_digest(described):
            require(described["files"], dict[str, str], "files")
            for path in (run_dir.plan, run_dir.requests, run_dir.counts, run_dir.instances):
                require_unchanged(path, described["files"])
        elif "files" in described:
            raise ValueError("it has digests of the other files and none of its own")
    except UNREADABLE as error:
        raise foreign(run_dir.summary, error) from None
    try:
        check_requests(wave, requests.checked)
    except UNREADABLE as error:
        raise foreign(run_dir.requests if wave.counts is None else run_dir.counts, error) from None
    try:
        check_report(described, wave.to_json())
    except UNREADABLE as error:
        raise foreign(run_dir.summary, error) from None
    return wave


def _of_spool(run_dir: RunDir) -> tuple[Wave, bool]:
    """The wave of a spool that nobody writes to any more, and that anybody may have written.

    And whether its requests were stored.
    """
    described = read_json(run_dir.plan)
    plan = _plan_of(run_dir, described)
    try:
        with closing(SpoolState([run_dir.spool], plan.workers, live=False, part=PART)) as spool_state:
            spool_state.read()
            plan = offered(plan, spool_state)
            refuse([problem.text for problem in problems_of_values(plan)])
            make_countable(plan, spool_state)
            wave = finalise(plan, spool_state, run_dir, described, primary_lost=not spool_state.ended)
        check_wave(wave)
        if wave.counts is not None:
            check_series(wave.counts.series, len(wave.counts.errors))
        wave = wave.with_instances(read_instances(run_dir.instances))
        try:
            return _with_requests_stored(wave, run_dir, RecordsCheck()), True
        except OSError:
            deque(_each_checked(wave, RecordsCheck()), maxlen=0)
            return wave, False
    except (OSError, MemoryError, RecursionError, *UNREADABLE) as error:
        raise foreign(run_dir.spool, error) from None


def _plan_of(run_dir: RunDir, described: dict[str, Any]) -> WavePlan:
    try:
        plan = WavePlan.from_json(described)
        require(plan, WavePlan, "plan")
        problems = problems_of_values(plan)
        if not problems:
            plan = scheduled(plan, run_dir)
    except (OSError, BenchmarkError, *UNREADABLE) as error:
        raise foreign(run_dir.plan, error) from None
    if problems:
        raise foreign(run_dir.plan, ValueError(problems[0].text))
    return plan


def _of_facts(plan: WavePlan, requests: Requests, facts: dict[str, Any], run_dir: RunDir) -> Wave:
    """The wave that ``Wave.to_json`` described."""
    records, begin, client = requests.records, requests.checked.warmup, facts["client"]
    return Wave(
        plan=plan,
        window=Window.from_json(facts["window"]),
        records=records.between(begin, len(records)),
        warmup=records.between(0, begin),
        ledgers=tuple(Ledger.from_json(ledger) for ledger in facts["ledger"]["workers"]),
        lost_workers=tuple(facts["lost_workers"]),
        primary_lost=facts["primary_lost"],
        interrupted=facts["interrupted"],
        aborted=Aborted.from_json(facts["aborted"]),
        disk_error=facts["disk_error"],
        left_behind=tuple(facts["left_behind"]),
        foreign_connections=facts["foreign_connections"],
        error_texts={row["key"]: row["texts"] for row in facts["errors"]},
        caps=tuple(client["caps"]),
        workers=tuple(WorkerUse.from_json(worker) for worker in client["workers"]),
        host=None if client["host"] is None else HostUse(**client["host"]),
        processes=tuple(ProcessUse.from_json(process) for process in client["processes"]),
        hosts=_each(HostFacts.from_json, facts["hosts"]) or (),
        calibration=facts["calibration"],
        environment=facts["environment"],
        counts=read_counts(run_dir.counts) if plan.counts_requests else None,
        server_metrics=_each(ServerMetric.from_json, facts["server_metrics"]),
        server_logs=_each(ServerLog.from_json, facts["server_logs"]),
        instances=read_instances(run_dir.instances),
        run_dir=run_dir,
    )


def _todays_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The content of ``summary.json`` with what older versions left out of it; the one place that knows them."""
    facts = {
        "left_behind": (),
        "foreign_connections": 0,
        "server_logs": None,
        "calibration": None,
        "aborted": None,
        "hosts": None,
        **facts,
    }
    if "caps" not in facts["client"]:
        facts["client"] = {"caps": (), "workers": (), "host": None, "processes": ()}
    return facts


def _save_report(wave: Wave, run_dir: RunDir) -> None:
    replace_file(run_dir.report, wave.text())
    write_with_digest(run_dir.summary, {**wave.to_json(), "files": digests_of(*run_dir.kept)})


def _each(make: Callable[[dict[str, Any]], T], rows: list[dict[str, Any]] | None) -> tuple[T, ...] | None:
    return None if rows is None else tuple(map(make, rows))
