"""Runs a wave: starts its processes, watches them, reaps them and finalises.

Imports neither Locust nor gevent, so a notebook that calls ``run_wave`` is not patched.
"""

from __future__ import annotations

import errno
import secrets
import shutil
import tempfile
from contextlib import ExitStack, closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference_benchmarker.engine.endpoint.source import source_problems
from inference_benchmarker.engine.hosts.joining import joined
from inference_benchmarker.engine.processes.children import child_environment, note_addresses, note_asked_for
from inference_benchmarker.engine.processes.interrupts import counting_interrupts
from inference_benchmarker.engine.progress_listener import FaultTolerantView, Live, NullView
from inference_benchmarker.engine.watchers.disk import free_bytes, room_problems, room_warning
from inference_benchmarker.engine.watchers.wave_processes import WaveProcesses
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.problems import check_plan, problems_of
from inference_benchmarker.system.given import resolved
from inference_benchmarker.system.host import adopting_orphans, loopback_problems, raise_descriptor_limit
from inference_benchmarker.wave.environment import describe_environment
from inference_benchmarker.wave.plan_file import save_plan
from inference_benchmarker.wave.run_dir import RunDir, cannot_write
from inference_benchmarker.words.redact import prepare
from inference_benchmarker.words.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from inference_benchmarker.engine.pilot import Pilot
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.wave.wave import Wave

DESCRIPTORS_A_WORKER = 4  # its standard input, its pipe and log here, and a connection of the primary's
DESCRIPTORS_BESIDE_WORKERS = 24


def run_wave(
    plan: WavePlan,
    live: Live | None = None,
    calibration: dict[str, Any] | None = None,
    pilot: Pilot | None = None,
    beside: Callable[[RunDir], AbstractContextManager[object]] = nullcontext,
) -> Wave:
    """Run one wave, store it in its run directory and return it. ``calibration``: its result, to be stored with it.

    ``pilot`` changes the rate, or the number of users, of a plan whose load is ``steered``; the plan of the returned
    wave has the load that was sent, as stages or populations. ``beside``: a context that is open while the wave runs,
    and may write into its directory.

    Raises BenchmarkError before any load is sent if the plan or the factories file cannot work, and KeyboardInterrupt
    if interrupted before the wave began. A later interrupt ends the wave early; it is returned with what was
    measured.
    """
    refuse(_pilot_problems(plan, pilot))
    plan = resolve(plan)
    live = FaultTolerantView(live or NullView())
    free = free_bytes(plan.output_dir)
    refuse(room_problems(plan, free))
    if warning := room_warning(plan, free):
        live.say(warning)
    note_asked_for(plan.factories_file or plan.locust_file, plan.factory_settings.values())
    note_addresses(plan.endpoint_name, plan.url, *plan.factory_settings.values())
    prepare()
    run_dir = RunDir.create(plan.output_dir)
    made = _identity(run_dir)
    keep = False
    try:
        with counting_interrupts() as interrupts, ExitStack() as following:
            party = following.enter_context(joined(plan, run_dir, interrupts, live))
            plan = party.dealt(plan)
            live.starting(f"Starting {pluralize(plan.workers, 'worker', 'workers')}.", 0)
            with adopting_orphans(), beside(run_dir), WaveProcesses(plan, run_dir, party) as processes:
                facts = facts_of(plan, calibration)
                _write_plan(run_dir, plan, facts)
                processes.tell_plan(plan)
                # Loaded while the processes load Locust: what computes, and what looks for leftovers in the end.
                import psutil  # noqa: F401 - asked of later

                from inference_benchmarker.engine.conductor import Conductor
                from inference_benchmarker.wave.spool.spool_state import SpoolState

                spool_state = following.enter_context(closing(SpoolState([run_dir.spool], plan.workers)))
                conductor = Conductor(
                    plan, run_dir, processes, spool_state, interrupts=interrupts, live=live, pilot=pilot
                )
                try:
                    conductor.run()
                finally:
                    keep = conductor.worker_ended
            live.close()
            wave = _store(
                conductor.finalise(facts), made, live
            )  # after the processes' end: so nothing of theirs is missed
            if wave.run_dir is not None:
                conductor.forget_spill()
            return wave
    except (BenchmarkError, KeyboardInterrupt):
        if not keep:
            _discard(run_dir)
        raise
    finally:
        live.close()


def resolve(plan: WavePlan) -> WavePlan:
    """A checked plan whose file is absolute, whose seed is drawn and whose recording is read.

    Every cheap problem is raised here, and those of the recording after them.
    """
    found = [problem.text for problem in problems_of(plan)]
    found += source_problems(plan.factories_file, plan.locust_file, plan.factory_settings)
    refuse([*found, *_descriptor_problems(plan.workers), *loopback_problems()])
    return _with_recording(
        replace(
            plan,
            seed=secrets.randbits(32) if plan.seed is None else plan.seed,
            factories_file=plan.factories_file and resolved(plan.factories_file),
            locust_file=plan.locust_file and resolved(plan.locust_file),
        )
    )


def _with_recording(plan: WavePlan) -> WavePlan:
    """The same plan with its recording read, if it has one that was not."""
    replay = plan.load.replay if isinstance(plan.load, OpenLoop) else None
    if replay is None:
        return _with_conversations(plan)
    from inference_benchmarker.recording.reading import is_read, read

    if is_read(replay):
        return plan
    seed, most = plan.seed or 0, plan.bounds.num_requests
    if plan.conversations is None:
        plan = plan.with_replay(read(replay, seed, most, plan.output_dir))
    else:
        from inference_benchmarker.recording.conversations.reading import replayed

        conversations, replay = replayed(plan.conversations, replay, seed, most, plan.output_dir)
        plan = replace(plan.with_replay(replay), conversations=conversations)
    check_plan(plan)
    return plan


def _with_conversations(plan: WavePlan) -> WavePlan:
    """The same plan with its conversations read, if it has some that were not."""
    if plan.conversations is None:
        return plan
    from inference_benchmarker.recording.conversations.reading import are_read, read_conversations

    if are_read(plan.conversations):
        return plan
    # Those of the warm-up are the last ones: with fewer, the wave would send the same again.
    most = TokenBucket.of(plan).most_with_warmup()
    most = None if most is None else most + plan.first_payload * (2 if plan.warmup_ns else 1)
    found = read_conversations(plan.conversations, most, plan.output_dir)
    return replace(plan, conversations=found)


def facts_of(plan: WavePlan, calibration: dict[str, Any] | None = None) -> dict[str, Any]:
    """With what and where a plan is run, to be kept beside it."""
    facts: dict[str, Any] = {"environment": describe_environment(plan, child_environment())}
    return facts if calibration is None else {**facts, "calibration": calibration}


def make_run_dir(plan: WavePlan, facts: dict[str, Any]) -> RunDir:
    """A new run directory that holds the plan, and with what and where it is run."""
    run_dir = RunDir.create(plan.output_dir)
    try:
        _write_plan(run_dir, plan, facts)
    except BenchmarkError:
        _discard(run_dir)
        raise
    return run_dir


def _write_plan(run_dir: RunDir, plan: WavePlan, facts: dict[str, Any]) -> None:
    """Write down what is run, and with what and where, so that what comes can be read whatever happens."""
    try:
        save_plan(run_dir, plan, facts)
        if isinstance(plan.load, OpenLoop) and plan.load.replay is not None:
            from inference_benchmarker.recording.reading import hand_rows

            hand_rows(plan.load.replay, run_dir.recorded_rows)
        elif plan.conversations is not None:
            plan.conversations.rows.hand(run_dir.recorded_rows)
    except OSError as error:
        raise cannot_write(plan.output_dir, error) from None


def _discard(run_dir: RunDir) -> None:
    """Leave no directory of a wave that never began, unless a process left its last words there."""
    if run_dir.spool.is_file() and run_dir.spool.stat().st_size:
        return
    if any(log.stat().st_size and b"Traceback" in log.read_bytes() for log in run_dir.logs.glob("*.log")):
        return
    shutil.rmtree(run_dir.path, ignore_errors=True)


def _identity(run_dir: RunDir) -> tuple[int, int]:
    """Which folder it is, whatever its path will lead to later."""
    status = run_dir.path.stat()
    return status.st_dev, status.st_ino


def _store(wave: Wave, made: tuple[int, int], live: Live) -> Wave:
    """Store the wave; where that cannot be, in the system's temporary folder, and say so.

    The verdict is the wave's own: it does not change with the disk that its files go to.
    """
    from inference_benchmarker.wave import writer

    origin = wave.run_dir
    assert origin is not None
    try:
        if _identity(origin) != made:
            raise OSError(errno.ESTALE, "another folder took its place")
        return writer.save(wave, origin)
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno != errno.ESTALE:
            writer.take_back(origin)
    elsewhere = RunDir(Path(tempfile.mkdtemp(suffix="_benchmark")))
    try:
        save_plan(elsewhere, wave.plan, {"environment": wave.environment})
        wave = writer.save(wave, elsewhere)
        live.say(f"{origin.path}: cannot be written ({reason}); the wave is stored in {elsewhere.path}.")
    except OSError:
        shutil.rmtree(elsewhere.path, ignore_errors=True)
        wave = wave.stored_in(None)
        later = f" `benchmark report {origin.path}` stores it once it can." if origin.spool.is_file() else ""
        live.say(f"The wave could not be stored ({reason}); only the printed result exists.{later}")
    return wave


def _pilot_problems(plan: WavePlan, pilot: Pilot | None) -> list[str]:
    steered = plan.load.is_steered
    if steered and pilot is None:
        return ["A steered load has no end of its own: give run_wave a pilot, or leave steered=True out of the load."]
    if pilot is not None and not steered:
        return [
            "A pilot changes a steered load: give it OpenLoop(rate, steered=True), or a ClosedLoop with steered=True."
        ]
    return []


def _descriptor_problems(workers: int) -> list[str]:
    """A problem where the workers need more descriptors than there are, here and in the primary."""
    allowed, needed = raise_descriptor_limit(), DESCRIPTORS_A_WORKER * workers + DESCRIPTORS_BESIDE_WORKERS
    if needed > allowed:
        return [f"--workers {workers} needs {needed} file descriptors; this process may have {allowed} (ulimit -n)."]
    return []
