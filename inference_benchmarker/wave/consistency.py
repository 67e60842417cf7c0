"""Checks a wave that was read back against what a wave can be: its run directory may be anybody's. Pure.

Numbers that no wave has are refused before anything is computed from them, so that nothing computed afterwards runs
for ever, takes all memory or fails.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.typed import require
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.hosts import HostFacts
from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.check import LONGEST_NS, MOST_COUNT
from inference_benchmarker.records.record import ENDINGS, OUTCOMES, Ledger
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.check import RecordsCheck

MOST_DRAWN = 5_000_000  # arrivals of a Poisson wave, some seconds of drawing
_LAST_UNIX_NS = 1 << 62  # of the year 2116
_KINDS: dict[str, Any] = {
    "window": Window,
    "ledgers": tuple[Ledger, ...],
    "lost_workers": tuple[int, ...],
    "primary_lost": bool,
    "interrupted": bool,
    "aborted": Aborted | None,
    "disk_error": str | None,
    "loopback_down_s": float | None,
    "error_texts": dict[str, list[str]],
    "caps": tuple[int, ...],
    "workers": tuple[WorkerUse, ...],
    "host": HostUse | None,
    "processes": tuple[ProcessUse, ...],
    "hosts": tuple[HostFacts, ...],
    "foreign_connections": int,
    "calibration": dict[str, Any] | None,
    "environment": dict[str, Any],
}


def check_wave(wave: WaveFacts) -> None:
    """Raise ValueError (KeyError) with the first thing that no wave leaves behind, of what is not its requests."""
    for name, kind in _KINDS.items():
        require(getattr(wave, name), kind, name)
    if wave.calibration is not None:
        require(wave.calibration["lines"], list[str], "calibration.lines")
    _check_window(wave.window)
    _check_workers(wave)
    _check_ledgers(wave.ledgers)
    _check_arrivals(wave)


def check_requests(wave: WaveFacts, checked: RecordsCheck) -> None:
    """Raise ValueError where the wave could not have had its requests, which were ``checked`` for themselves."""
    if checked.last_worker >= wave.plan.workers:
        raise ValueError(f"there is no worker {checked.last_worker} among {wave.plan.workers}")
    most = TokenBucket.of(wave.plan).most_arrivals()
    if wave.ledger.late_changes:  # it went on at the rate before
        most = wave.plan.workers * (max(ledger.scheduled for ledger in wave.ledgers) + 1)
        most += 10 * math.isqrt(most)  # where arrivals are drawn for workers, one of them may have fewer than its part
    if most is not None and checked.last_index >= most:
        raise ValueError(f"arrival {checked.last_index:,} is not one of the {most:,} that were planned")
    if checked.warmup and not wave.plan.warmup_ns:
        raise ValueError("there are requests of a warm-up, but none was planned")
    _check_counts(wave, checked)


def _check_counts(wave: WaveFacts, checked: RecordsCheck) -> None:
    """The ledger has as many requests of each outcome as there are; of a wave without records, as were counted."""
    if wave.counts is not None:
        found = {outcome: wave.counts.window.total(outcome) for outcome in OUTCOMES}
        ledger = {outcome: getattr(wave.ledger, outcome) for outcome in OUTCOMES}
        for outcome, count in found.items():
            _require_equal(f"{outcome} requests", count, ledger[outcome])
        return
    for outcome, by_worker in checked.by_worker.items():
        for number, of_worker in enumerate(wave.ledgers):
            _require_equal(f"{outcome} requests of worker {number}", by_worker[number], getattr(of_worker, outcome))
    for number, of_worker in enumerate(wave.ledgers):
        for ending in ENDINGS:
            counted = getattr(of_worker, f"sessions_{ending}")
            _require_equal(f"sessions of worker {number} that {ending}", checked.sessions[ending][number], counted)
        stored = checked.sessions["later_turns"][number]
        if not stored <= of_worker.later_turns <= stored + of_worker.in_flight:
            _require_equal(f"later turns of worker {number}", stored, of_worker.later_turns)


def _require_equal(what: str, found: int, value: int) -> None:
    if found != value:
        raise ValueError(f"the ledger has {value:,} {what}, but {found:,} are stored")


def _check_window(window: Window) -> None:
    for name in ("duration_ns", "planned_ns", "stopped_at_ns"):
        nanoseconds = getattr(window, name) or 0
        if not (nanoseconds >= 0 or name == "stopped_at_ns") or abs(nanoseconds) > LONGEST_NS:
            raise ValueError(f"window.{name} is {nanoseconds / NS:.4g} s")
    if not 0 <= window.start_unix_ns < _LAST_UNIX_NS:
        raise ValueError(f"window.start_unix_ns is {window.start_unix_ns / NS:.4g} s")


def _check_arrivals(wave: WaveFacts) -> None:
    """The arrivals of a Poisson wave are drawn again, one by one: no more of them than its ledger bears out."""
    stopped = wave.window.stopped_at_ns
    until = wave.window.planned_ns if stopped is None else stopped
    arrivals, scheduled = TokenBucket.of(wave.plan).draws(until), wave.ledger.scheduled
    if arrivals > MOST_DRAWN + 10 * scheduled:
        raise ValueError(f"about {arrivals:,.0f} arrivals were due, and {scheduled:,} scheduled")


def _check_workers(wave: WaveFacts) -> None:
    """Each has its place in every list, and nobody else has one."""
    planned = wave.plan.workers
    fields = {"ledgers": wave.ledgers, "caps": wave.caps, "workers": wave.workers}
    for name, each in fields.items():
        if len(each) != planned and (each or name == "ledgers"):  # a wave of an older version has no caps and workers
            raise ValueError(f"there are {planned} workers and {len(each)} {name}")
    for number in wave.lost_workers:
        if not 0 <= number < planned:
            raise ValueError(f"there is no worker {number} among {planned}")
    for host in (wave.host, *(each.use for each in wave.hosts)):
        if host is not None and host.cores < 1:
            raise ValueError(f"host.cores is {host.cores}")
    if wave.hosts and sorted(number for host in wave.hosts for number in host.workers) != list(range(planned)):
        raise ValueError(f"the hosts do not have the {planned} workers once each")


def _check_ledgers(ledgers: tuple[Ledger, ...]) -> None:
    total = sum(ledgers, Ledger())
    for ledger in ledgers:
        for name, count in ledger.to_json().items():
            if not 0 <= count <= MOST_COUNT:
                raise ValueError(f"ledger.{name} is {count:,}")
        if ledger.repeated > ledger.sent:
            raise ValueError(f"{ledger.repeated:,} of {ledger.sent:,} requests were repeats")
        if ledger.later_turns > ledger.turns:
            raise ValueError(f"{ledger.later_turns:,} of {ledger.turns:,} turns were not first ones")
    if total.dropped and not total.scheduled:
        raise ValueError(f"{total.dropped:,} arrivals were dropped, but none was scheduled")
