"""Loads a wave from its run directory: as it is stored, or put together from the spool where it was cut off."""

from __future__ import annotations

from collections import deque
from contextlib import closing, suppress
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from inference_benchmarker.data.json_file import UNREADABLE, cannot_read, foreign, read_json
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.problems import problems_of_values
from inference_benchmarker.records.check import RecordsCheck
from inference_benchmarker.records.counts import check_series
from inference_benchmarker.records.parts import PART
from inference_benchmarker.system.files import is_file
from inference_benchmarker.wave.consistency import check_wave
from inference_benchmarker.wave.files.instances_file import read_instances
from inference_benchmarker.wave.finalise import finalise, make_countable, nothing_recorded, offered
from inference_benchmarker.wave.reader import plan_of, read_stored
from inference_benchmarker.wave.run_dir import RunDir
from inference_benchmarker.wave.spool.spool import is_locked
from inference_benchmarker.wave.spool.spool_state import SpoolState
from inference_benchmarker.wave.writer import each_checked, save_rest, with_requests_stored

if TYPE_CHECKING:
    from inference_benchmarker.wave.finished import FinishedWave

W = TypeVar("W", bound="FinishedWave")


def load(path: str | Path, kind: type[W]) -> W:
    """Load a run directory; one that was cut off is finalised first. BenchmarkError for what is none."""
    run_dir = RunDir.find(Path(path))
    if not _is_stored(run_dir):
        try:
            return _put_together(run_dir, kind)
        except (BenchmarkError, OSError):
            if not _is_stored(run_dir):  # by another command, meanwhile
                raise
    return read_stored(run_dir, kind)


def _put_together(run_dir: RunDir, kind: type[W]) -> W:
    """The wave of a run directory that was cut off."""
    if not is_file(run_dir.spool):
        raise _lost(run_dir)
    if is_locked(run_dir.spool):
        raise BenchmarkError(f"{run_dir.path}: its wave is still running.", "Wait for its end.")
    wave, stored = _of_spool(run_dir, kind)
    if stored:
        with suppress(OSError):  # what cannot be written to can still be read
            return save_rest(wave, run_dir)
    return wave


def _of_spool(run_dir: RunDir, kind: type[W]) -> tuple[W, bool]:
    """The wave of a spool that nobody writes to any more, and that anybody may have written.

    And whether its requests were stored.
    """
    described = read_json(run_dir.plan)
    plan = plan_of(run_dir, described)
    try:
        with closing(SpoolState([run_dir.spool], plan.workers, live=False, part=PART)) as spool_state:
            spool_state.read()
            plan = offered(plan, spool_state)
            refuse([problem.text for problem in problems_of_values(plan)])
            make_countable(plan, spool_state)
            wave = finalise(kind, plan, spool_state, run_dir, described, primary_lost=not spool_state.ended)
        check_wave(wave)
        if wave.counts is not None:
            check_series(wave.counts.series, len(wave.counts.errors))
        wave = wave.with_instances(read_instances(run_dir.instances))
        try:
            return with_requests_stored(wave, run_dir, RecordsCheck()), True
        except OSError:
            deque(each_checked(wave, RecordsCheck()), maxlen=0)
            return wave, False
    except (OSError, MemoryError, RecursionError, *UNREADABLE) as error:
        raise foreign(run_dir.spool, error) from None


def _is_stored(run_dir: RunDir) -> bool:
    return is_file(run_dir.requests) and is_file(run_dir.summary)


def _lost(run_dir: RunDir) -> BenchmarkError:
    """The error of a run directory with neither a whole wave nor a spool: it names what a stored one has lost."""
    written = (run_dir.requests, run_dir.summary, run_dir.counts, run_dir.timeline, run_dir.report)
    if not any(map(lexists, written)):
        return nothing_recorded(run_dir)
    path = run_dir.summary if is_file(run_dir.requests) else run_dir.requests
    return cannot_read(path, "is not a regular file" if lexists(path) else "is missing")
