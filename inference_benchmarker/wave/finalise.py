"""Puts a finished wave together from what its spool reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.facts.client_use import HostUse, ProcessUse
from inference_benchmarker.facts.wave_facts import Window, reconcile_ledgers
from inference_benchmarker.plan.load import ClosedLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.plan.steering import as_offered
from inference_benchmarker.records.counts import slowest
from inference_benchmarker.wave.consistency import MOST_DRAWN
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.record import Ledger
    from inference_benchmarker.wave.finished import FinishedWave
    from inference_benchmarker.wave.run_dir import RunDir
    from inference_benchmarker.wave.spool.spool_state import SpoolState

W = TypeVar("W", bound="FinishedWave")


def finalise(
    kind: type[W],
    plan: WavePlan,
    spool_state: SpoolState,
    run_dir: RunDir,
    facts: dict[str, Any],
    *,
    primary_lost: bool = False,
    interrupted: bool = False,
    disk_error: str | None = None,
    loopback_down_s: float | None = None,
    left_behind: tuple[str, ...] = (),
) -> W:
    """The wave, of this ``kind``, that a run directory's spool reports; a worker without a last report is lost.

    ``facts``: what ``plan.json`` says beside the plan. BenchmarkError where the wave never began.
    """
    if spool_state.start is None:
        raise nothing_recorded(run_dir)
    plan = offered(plan, spool_state)
    everything, begin = spool_state.records(), spool_state.warmup_rows
    counts = spool_state.counts() if plan.counts_requests else None
    if counts is not None:
        everything = slowest(everything)
    lost = {number for number, worker in enumerate(spool_state.workers) if not worker.final}
    return kind(
        plan=plan,
        window=_window(plan, spool_state),
        records=everything.between(begin, len(everything)),
        warmup=everything.between(0, begin),
        ledgers=reconcile_ledgers(plan, _ledgers(plan, spool_state), lost, spool_state.end_at),
        lost_workers=tuple(sorted(lost)),
        primary_lost=primary_lost,
        interrupted=interrupted or spool_state.stop_asked,
        aborted=spool_state.aborted,
        disk_error=disk_error,
        loopback_down_s=loopback_down_s,
        left_behind=left_behind,
        foreign_connections=spool_state.foreign_connections,
        error_texts=spool_state.texts,
        caps=tuple(spool_state.start.get("caps", ())),
        workers=tuple(worker.worker_use for worker in spool_state.workers),
        **_client(plan, spool_state),
        calibration=facts.get("calibration"),
        environment=_environment(facts, spool_state),
        counts=counts,
        prompts=spool_state.prompts.reuse(),
        run_dir=run_dir,
    )


def _environment(facts: dict[str, Any], spool_state: SpoolState) -> dict[str, Any]:
    """The environment with what the workers reported of payloads and sessions, and of what was sent before the load."""
    fields: dict[str, Any] = {}
    if spool_state.payloads_in_turn is not None:
        fields["payloads"] = spool_state.payloads_in_turn
    if spool_state.has_sessions:
        fields["sessions"] = True
    if spool_state.warmed is not None:
        fields["warmed"] = spool_state.warmed
    return {**facts.get("environment", {}), **fields}


def offered(plan: WavePlan, spool_state: SpoolState) -> WavePlan:
    """The plan with what was really offered, where its rate was steered; any other plan as it is.

    A wave without an end of its own lasted until it was stopped, or until the last that is known of it.
    """
    ends = [spool_state.planned_end, plan.bounds.duration_ns]
    end = min((end for end in ends if end is not None), default=None)
    if end is None:
        stops = [stop for stop in (spool_state.stop_at, spool_state.gone_at) if stop is not None]
        end = min(stops or [max((worker.at for worker in spool_state.workers), default=0)])
        end = max(end, spool_state.last_due + 1)
    return as_offered(plan, spool_state.changes, end)


def _ledgers(plan: WavePlan, spool_state: SpoolState) -> list[Ledger]:
    """Each worker's count. Of a change that it never heard of, before it was done, it could not say so itself."""
    end, counts = plan.bounds.duration_ns, plan.counts_requests
    ledgers = [worker.counted_ledger if counts else worker.ledger for worker in spool_state.workers]
    changes = sum(end is None or change.at_ns < end for change in spool_state.changes)
    return [
        replace(ledger, late_changes=ledger.late_changes + max(0, changes - worker.changes)) if worker.final else ledger
        for ledger, worker in zip(ledgers, spool_state.workers, strict=True)
    ]


def nothing_recorded(run_dir: RunDir) -> BenchmarkError:
    """The error of a run directory that holds a plan alone."""
    return BenchmarkError(f"{run_dir.path}: no request was recorded in it.", "The wave ended before it began.")


def make_countable(plan: WavePlan, spool_state: SpoolState) -> None:
    """Draw of a Poisson wave no more arrivals than its requests bear out.

    Where the plan has many more, as that of a long wave that was soon cut off, the arrivals after the last report are
    left out: the wave counts as stopped then. ValueError where even so there are too many.
    """
    bucket, rows = TokenBucket.of(plan), spool_state.rows
    most = MOST_DRAWN + 10 * rows
    if bucket.draws(spool_state.end_at) <= most:
        return
    spool_state.cut_at = max(worker.at for worker in spool_state.workers)
    if (arrivals := bucket.draws(spool_state.end_at)) > most:
        raise ValueError(f"about {arrivals:,.0f} arrivals were due, and {rows:,} requests were reported")


def _planned_ns(plan: WavePlan, spool_state: SpoolState) -> int | None:
    """The planned duration; None of a closed loop that was over with the last request of its number, whenever."""
    number, sent = plan.bounds.num_requests, sum(ledger.arrivals for ledger in _ledgers(plan, spool_state))
    if isinstance(plan.load, ClosedLoop) and number is not None and sent >= number:
        return None
    return TokenBucket.of(plan).duration_ns(spool_state.end_at)


def _window(plan: WavePlan, spool_state: SpoolState) -> Window:
    """The duration ends with the last answer; a request that was abandoned has none."""
    assert spool_state.start is not None
    done = [worker.last_done for worker in spool_state.workers if worker.last_done is not None]
    last = max(done or [worker.at for worker in spool_state.workers], default=0)
    return Window(
        start_unix_ns=spool_state.start["wall_ns"],
        t0_monotonic_ns=spool_state.start["t0"],
        planned_ns=_planned_ns(plan, spool_state),
        duration_ns=max(last, 0),
        stopped_at_ns=spool_state.end_at,
    )


def _client(plan: WavePlan, spool_state: SpoolState) -> dict[str, Any]:
    """The use of host and processes while the wave sent; where it was shorter than a sample, what there is."""
    assert spool_state.start is not None
    begun = spool_state.start["wall_ns"] / NS
    planned = _planned_ns(plan, spool_state)
    ended = float("inf") if planned is None else begun + planned / NS + 1
    samples = spool_state.samples.within(begun, ended)
    host = HostUse.of(samples, **spool_state.start["host"]) if "host" in spool_state.start else None
    return {
        "host": host,
        "hosts": spool_state.hosts.facts(begun, ended, host),
        "processes": ProcessUse.of(samples) if plan.sample_client_hw else (),
    }
