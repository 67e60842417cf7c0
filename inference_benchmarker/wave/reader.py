"""Reads what stands in the files of a run directory. Whose it is, is not known: all of it is held against bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from inference_benchmarker.data.digest import KEY, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, foreign, read_json
from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.hosts import HostFacts
from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.records.parts import PART
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.consistency import check_requests, check_wave
from inference_benchmarker.wave.files.counts_file import read_counts
from inference_benchmarker.wave.files.identity import check_of_wave, require_unchanged
from inference_benchmarker.wave.files.instances_file import read_instances
from inference_benchmarker.wave.files.requests_file import Requests, read_requests
from inference_benchmarker.wave.plan_file import scheduled
from inference_benchmarker.wave.report_check import check_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inference_benchmarker.wave.finished import FinishedWave
    from inference_benchmarker.wave.run_dir import RunDir

T = TypeVar("T")
W = TypeVar("W", bound="FinishedWave")

_SERVER_ROW: dict[str, Any] = {
    "name": str,
    "statistics": dict[str, float | None],
    "dimensions": dict[str, str] | None,
    "unit": str | None,
    "reason": str | None,
    "series_of": str | None,
}


def read_plan(run_dir: RunDir) -> WavePlan:
    """The plan of a run directory; BenchmarkError for what is none, or none that a wave could have."""
    return plan_of(run_dir, read_json(run_dir.plan))


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


def read_stored(run_dir: RunDir, kind: type[W]) -> W:
    """The wave as it is stored, each file held against the others; BenchmarkError where they disagree."""
    described = read_json(run_dir.summary)
    plan = read_plan(run_dir)
    requests = read_requests(run_dir.requests, PART)
    try:
        wave = _of_facts(kind, plan, requests, _todays_facts(described), run_dir)
        check_wave(wave)
        for path in filter(is_file, (run_dir.requests, run_dir.counts)):
            check_of_wave(path, wave.window.start_unix_ns)
        if require_digest(described):
            require(described["files"], dict[str, str], "files")
            for path in (run_dir.plan, run_dir.requests, run_dir.counts, run_dir.instances):
                require_unchanged(path, described["files"])
        elif "files" in described:
            raise ValueError("it has digests of the other files but none of its own")
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


def plan_of(run_dir: RunDir, described: dict[str, Any]) -> WavePlan:
    """The plan that ``plan.json`` describes; BenchmarkError where no wave could have it."""
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


def _of_facts(kind: type[W], plan: WavePlan, requests: Requests, facts: dict[str, Any], run_dir: RunDir) -> W:
    """The wave that ``Wave.to_json`` described."""
    records, begin, client = requests.records, requests.checked.warmup, facts["client"]
    return kind(
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


def _each(make: Callable[[dict[str, Any]], T], rows: list[dict[str, Any]] | None) -> tuple[T, ...] | None:
    return None if rows is None else tuple(map(make, rows))
