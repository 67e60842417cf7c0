"""Reads what stands in the files of a run directory. Whose it is, is not known: all of it is checked against bounds."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.data.digest import KEY, WITHOUT, require_digest
from inference_benchmarker.data.json_file import UNREADABLE, cannot_read, foreign, read_json
from inference_benchmarker.data.typed import require
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.hosts import HostFacts
from inference_benchmarker.facts.server_metric import ServerMetric
from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.plan import WavePlan
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.records.parts import PART
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.report.summary_types import SummaryResult
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.consistency import check_requests, check_wave
from inference_benchmarker.wave.files.counts_file import read_counts
from inference_benchmarker.wave.files.identity import check_of_wave, require_own, require_unchanged
from inference_benchmarker.wave.files.instances_file import read_instances
from inference_benchmarker.wave.files.requests_file import Requests, read_requests
from inference_benchmarker.wave.files.timeline_file import check_timeline
from inference_benchmarker.wave.plan_file import scheduled
from inference_benchmarker.wave.report_check import check_report
from inference_benchmarker.wave.stored_verdict import is_judged_by_today, of_other_rules, stored_verdict
from inference_benchmarker.words.text import one_line
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inference_benchmarker.report.request_numbers import Counts, WaveWindow
    from inference_benchmarker.report.summary_types import HostPart
    from inference_benchmarker.wave.finished import FinishedWave
    from inference_benchmarker.wave.run_dir import RunDir

W = TypeVar("W", bound="FinishedWave")

_FACTS = (
    *("schema_version", "verdict", "exit_code", "interrupted", "window", "environment", "ledger", "lost_workers"),
    *("primary_lost", "disk_error", "loopback_down_s", "aborted", "left_behind", "foreign_connections", "errors"),
    *("server_metrics", "server_logs", "hosts", "calibration", "client", "prompts"),
)


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


def read_digests(path: Path) -> dict[str, str]:
    """The digests of a run directory's other files, of its ``summary.json``; an earlier version stored none."""
    found: dict[str, str] = read_facts(path).get("files") or {}
    return found


def read_server_metrics(path: Path) -> list[ServerMetric]:
    """The rows of ``server_metrics.json``; ValueError for what is none."""
    found = read_json(path)
    require_digest(found)  # an earlier version wrote none
    return [decoded(row, ServerMetric) for row in found["metrics"]]


def read_stored(run_dir: RunDir, kind: type[W]) -> W:
    """The wave as it is stored, each file checked against the others; BenchmarkError where they disagree."""
    described = read_json(run_dir.summary)
    plan = read_plan(run_dir)
    requests = read_requests(run_dir.requests, PART)
    try:
        wave = _wave(kind, plan, requests, _facts_of(described), run_dir)
        check_wave(wave)
        for path in filter(is_file, (run_dir.requests, run_dir.counts)):
            check_of_wave(path, wave.window.start_unix_ns)
        if require_digest(described):
            require(described["files"], dict[str, str], "files")
            for path in (run_dir.plan, run_dir.requests, run_dir.counts, run_dir.server_metrics):
                _readable(require_unchanged, path, described["files"])
            _readable(require_own, run_dir.instances, described["files"])
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
        if is_judged_by_today(described):
            return wave
        return wave.with_verdict(stored_verdict(described, wave.verdict))
    except UNREADABLE as error:
        raise foreign(run_dir.summary, error) from None


def _readable(check: Callable[[Path, dict[str, str]], None], path: Path, digests: dict[str, str]) -> None:
    """Check a file that this user may read; BenchmarkError where not."""
    try:
        check(path, digests)
    except OSError as error:
        raise cannot_read(path, f"cannot be read ({error.strerror or error})") from None


def reservations(wave: FinishedWave) -> Iterator[str]:
    """Clauses on what a reader of a stored wave must know: what cannot be checked, and whose rules judged it."""
    if wave.run_dir is not None and not has_digest(wave.run_dir):
        yield WITHOUT
    if clause := of_other_rules(wave.verdict):
        yield clause


def side_problems(run_dir: RunDir, wave: FinishedWave) -> Iterator[str]:
    """Sentences on files that are not as the wave left them, and from which none of its numbers is computed.

    An earlier version stored no digest of a timeline: it is compared with the requests.
    """
    digests = read_digests(run_dir.summary) if is_file(run_dir.summary) else {}
    for path in (run_dir.timeline, run_dir.report, run_dir.client_csv):
        try:
            (require_own if path == run_dir.client_csv else require_unchanged)(path, digests)
        except OSError as error:
            yield f"{path}: cannot be read ({error.strerror or error}). No number is computed from it."
        except BenchmarkError as error:
            yield f"{error.message} No number is computed from it."
    if run_dir.timeline.name not in digests and is_file(run_dir.timeline):
        try:
            check_timeline(run_dir.timeline, wave)
        except (OSError, *UNREADABLE) as error:
            yield f"{run_dir.timeline}: does not fit its wave ({one_line(str(error), 200)})."


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


def _facts_of(described: dict[str, Any]) -> SummaryResult:
    """The facts in a summary, without what another version computed of them and called by other codes."""
    return decoded({name: described[name] for name in _FACTS if name in described}, SummaryResult)


def _wave(kind: type[W], plan: WavePlan, requests: Requests, summary_result: SummaryResult, run_dir: RunDir) -> W:
    """The wave that a summary describes."""
    records, begin, client = requests.records, requests.checked.warmup, summary_result.client
    return kind(
        plan=plan,
        window=_window(summary_result.window),
        records=records.between(begin, len(records)),
        warmup=records.between(0, begin),
        ledgers=tuple(_ledger(each) for each in summary_result.ledger.workers),
        lost_workers=tuple(summary_result.lost_workers),
        primary_lost=summary_result.primary_lost,
        interrupted=summary_result.interrupted,
        aborted=summary_result.aborted,
        disk_error=summary_result.disk_error,
        loopback_down_s=summary_result.loopback_down_s,
        left_behind=tuple(summary_result.left_behind),
        foreign_connections=summary_result.foreign_connections,
        error_texts={row.key: row.texts for row in summary_result.errors},
        caps=tuple(client.caps),
        workers=tuple(client.workers),
        host=client.host,
        processes=tuple(client.processes),
        hosts=tuple(_host(each) for each in summary_result.hosts or ()),
        calibration=summary_result.calibration,
        environment=summary_result.environment,
        counts=read_counts(run_dir.counts) if plan.counts_requests else None,
        server_metrics=None if summary_result.server_metrics is None else tuple(summary_result.server_metrics),
        server_logs=None if summary_result.server_logs is None else tuple(summary_result.server_logs),
        instances=read_instances(run_dir.instances),
        prompts=summary_result.prompts,
        run_dir=run_dir,
    )


def _window(wave_window: WaveWindow) -> Window:
    planned, stopped = wave_window.planned_s, wave_window.stopped_at_s
    return Window(
        wave_window.start_unix_ns,
        wave_window.t0_monotonic_ns,
        None if planned is None else round(planned * NS),
        round(wave_window.duration_s * NS),
        None if stopped is None else round(stopped * NS),
    )


def _ledger(counts: Counts) -> Ledger:
    return Ledger(**{each.name: getattr(counts, each.name) or 0 for each in fields(Ledger)})


def _host(host_part: HostPart) -> HostFacts:
    part, workers = host_part, tuple(host_part.workers)
    place = (part.node, part.zone, part.instance_type)
    return HostFacts(part.name, workers, part.versions, part.use, part.clock, part.lost, *place)
