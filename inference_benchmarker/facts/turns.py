"""Some turns of each session as a wave of their own: the first ones, the later, or those that a limit names. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.records.columns import ROW_KEY, Records
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.plan.slo import Turns
    from inference_benchmarker.records.parts import InParts
    from inference_benchmarker.records.record import RequestRecord


class OfTurns:
    """The requests of some turns, ``InParts``; the others are left out of each part."""

    def __init__(self, records: InParts, turns: Turns) -> None:
        self._records, self._turns = records, turns

    @property
    def metrics(self) -> tuple[str, ...]:
        """As ``InParts`` says."""
        return self._records.metrics

    @cached_property
    def _rows(self) -> int:
        return sum(len(part) for part in self.parts("turn"))

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[RequestRecord]:
        for part in self.parts():
            yield from part

    def parts(self, *columns: str) -> Iterator[Records]:
        """As ``InParts`` says."""
        for part in self._records.parts(*dict.fromkeys((*columns, "turn") if columns else ())):
            number = part.int("turn")
            chosen = (number >= self._turns.first) & (number <= self._turns.last)
            if chosen.any():
                yield part.where(chosen)

    def between(self, first: int, stop: int) -> Records:
        """As ``InParts`` says; they are held in memory."""
        return Records.joined(list(self.parts())).between(first, stop)

    def since(self, start_ns: int) -> OfTurns:
        """As ``InParts`` says."""
        return OfTurns(self._records.since(start_ns), self._turns)


def of_turns(facts: WaveFacts, turns: Turns) -> WaveFacts:
    """The wave of these turns alone; its ledger counts what was sent, as if that were all that was planned."""
    records = OfTurns(facts.records, turns)
    counts = dict.fromkeys(("ok", "failed", "abandoned"), 0)
    sent = repeated = 0
    for part in records.parts(*ROW_KEY, "outcome"):
        for name in counts:
            counts[name] += int(np.count_nonzero(part.outcome(name)))
        sent, repeated = sent + len(part), repeated + int(np.count_nonzero(part.repeats))
    ledger = Ledger(scheduled=sent - repeated, sent=sent, repeated=repeated, **counts)
    return replace(facts, records=records, warmup=facts.warmup.between(0, 0), ledgers=(ledger,), prompts=None)
