"""Parts of a wave whose requests were counted: its stages, and stretches by when requests were over. Pure."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.facts.wave_facts import Window
from inference_benchmarker.plan.load import Bounds
from inference_benchmarker.records.counting import BIN_NS
from inference_benchmarker.records.counts import in_flight
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.records.counts import Counts

_OVER = ("ok", "failed", "abandoned")


def counted_stage(facts: WaveFacts, counts: Counts, number: int, times: tuple[int, int], planned: int) -> WaveFacts:
    """The facts of a stage: what was counted of the arrivals that were due in it."""
    start, end = times
    own = counts.of_stage(number).since(start)
    ledger = Ledger(scheduled=planned, sent=own.total("sent"), **{name: own.total(name) for name in _OVER})
    if not facts.lost_workers:
        ledger = replace(ledger, dropped=max(planned - ledger.sent, 0))
    answered = np.concatenate([own[what].bins for what in ("ok_at", "failed_at")])
    last = int(answered.max(initial=-1) + 1) * BIN_NS - start
    return _part(facts, own, Window(*_begun(facts, start), end - start, max(last, 0)), ledger)


def counted_spans(facts: WaveFacts, counts: Counts, length_ns: int) -> Iterator[tuple[int, int, WaveFacts]]:
    """The requests that were over in each stretch of whole seconds, with its start and end.

    Of these alone the outcome is known: so many count as planned, and as sent.
    """
    window = counts.window
    whole = facts.window.planned_ns or window.seconds * NS
    for start, end in pairwise([*range(0, whole, length_ns), whole]):
        own = window.between(start // NS, -(-end // NS)).since(start)
        over = {name: own.total(name) for name in _OVER}
        sent = sum(over.values())
        length = Window(*_begun(facts, start), None, end - start)
        yield start, end, _part(facts, own, length, Ledger(scheduled=sent, sent=sent, **over))


def in_flight_at(counts: Counts, instant_ns: int) -> int:
    """The requests in flight at an instant, to 20 ms."""
    return int(in_flight(counts, np.array([instant_ns // BIN_NS]))[0])


def _begun(facts: WaveFacts, start_ns: int) -> tuple[int, int]:
    return facts.window.start_unix_ns + start_ns, facts.window.t0_monotonic_ns + start_ns


def _part(facts: WaveFacts, counts: Counts, window: Window, ledger: Ledger) -> WaveFacts:
    """The slowest requests of a part are not distinguished from those of the wave."""
    return replace(
        facts,
        plan=replace(facts.plan, bounds=Bounds()),
        window=window,
        records=facts.records.between(0, 0),
        warmup=facts.records.between(0, 0),
        ledgers=(ledger,),
        counts=counts,
    )
