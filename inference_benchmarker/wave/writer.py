"""Writes a wave to the files of its run directory, beside its plan; what is written stays in it (``files``)."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.data.decoded import encoded
from inference_benchmarker.data.json_file import read_json, write_json, write_with_digest
from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.columns import Records
from inference_benchmarker.summary.timeline import timeline
from inference_benchmarker.system.files import is_file, replace_file
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.wave.consistency import check_requests
from inference_benchmarker.wave.files.counts_file import write_counts
from inference_benchmarker.wave.files.identity import digests_of
from inference_benchmarker.wave.files.instances_file import read_instances, write_instances
from inference_benchmarker.wave.files.requests_file import in_file, write_requests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inference_benchmarker.records.check import RecordsCheck
    from inference_benchmarker.wave.finished import FinishedWave
    from inference_benchmarker.wave.run_dir import RunDir

W = TypeVar("W", bound="FinishedWave")


def save(wave: W, run_dir: RunDir) -> W:
    """Store a wave beside its plan, and return it as one that is stored there.

    The spool goes when all else is safely there. OSError where it cannot be stored: see ``take_back``.
    """
    return save_rest(with_requests_stored(wave, run_dir), run_dir)


def save_rest(wave: W, run_dir: RunDir) -> W:
    """Store what is known beside the requests, which are stored already, and what is computed from them."""
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


def save_server_metrics(wave: FinishedWave) -> None:
    """Store what a wave's server said beside the rest. OSError where it cannot be written to any more."""
    if wave.run_dir is not None:
        if wave.instances:
            write_instances(wave.run_dir.instances, wave.instances)
        rows = [encoded(metric) for metric in wave.server_metrics or ()]
        logs = [encoded(log) for log in wave.server_logs or ()]
        write_with_digest(
            wave.run_dir.server_metrics, {"schema_version": SCHEMA_VERSION, "metrics": rows, "logs": logs}
        )
        _save_report(wave, wave.run_dir)


def add_digest(run_dir: RunDir, path: Path) -> None:
    """Store the digest of a file that came after the wave beside those of the wave's files. OSError."""
    if is_file(run_dir.summary):
        fields = read_json(run_dir.summary)
        files = {**fields["files"], **digests_of(run_dir.path, path)}
        write_with_digest(run_dir.summary, {**fields, "files": files})


def take_back(run_dir: RunDir) -> None:
    """Take away what ``save`` began to store: it would tell less than the spool that stays."""
    for path in (run_dir.requests, run_dir.counts, run_dir.timeline, run_dir.report, run_dir.summary):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def with_requests_stored(wave: W, run_dir: RunDir, check: RecordsCheck | None = None) -> W:
    """The wave with its requests written down, and checked against what a wave can have where there is a ``check``.

    Those of a large wave are then the file's. ValueError where they are refused: nothing is written.
    """
    parts = each_checked(wave, check) if check else _parts_of(wave)
    write_requests(run_dir.requests, parts, wave.window.start_unix_ns)
    if isinstance(wave.records, Records) and isinstance(wave.warmup, Records):
        return wave
    return wave.with_requests(in_file(run_dir.requests))


def each_checked(wave: FinishedWave, check: RecordsCheck) -> Iterator[Records]:
    """All requests in parts, each checked against what a wave can have; ValueError at the end where they do not fit."""
    for part in _parts_of(wave):
        check.take(part)
        yield part
    check_requests(wave, check)


def _parts_of(wave: FinishedWave) -> Iterator[Records]:
    """All requests, the warm-up's first; those of a small wave are one part."""
    if isinstance(wave.records, Records) and isinstance(wave.warmup, Records):
        yield Records.joined([wave.warmup, wave.records])
    else:
        yield from wave.warmup.parts()
        yield from wave.records.parts()


def _with_what_lies_beside(wave: W) -> W:
    """The wave with its instances as they were followed while it ran: whoever loads it reads them, too."""
    if wave.run_dir is None or wave.instances:
        return wave
    with suppress(BenchmarkError):  # damaged by a full disk: who followed them writes them anew
        return wave.with_instances(read_instances(wave.run_dir.instances))
    return wave


def _save_report(wave: FinishedWave, run_dir: RunDir) -> None:
    replace_file(run_dir.report, wave.text())
    write_with_digest(run_dir.summary, {**wave.to_json(), "files": digests_of(run_dir.path, *run_dir.kept)})
