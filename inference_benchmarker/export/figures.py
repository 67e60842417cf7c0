"""The figures of waves, as they stand at an instant, and the metrics that they are handed on as. Pure.

Counters are of all waves of a run against one endpoint, so they never go down; gauges are of its newest wave.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inference_benchmarker.records.feed import Cell
from inference_benchmarker.records.label_counters import LabelCounters
from inference_benchmarker.records.record import Ledger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inference_benchmarker.summary.hosts import HostRow
    from inference_benchmarker.verdict.verdict import Verdict

MOST_ERRORS = 50  # names of errors with a series of their own; those that came later are one
PENDING = "PENDING"


@dataclass(frozen=True, slots=True)
class Count:
    """Requests of one wave or several: the feed's cells added up, the workers' ledgers, and what has names.

    ``turns``: of sessions the first turns, and the later ones.
    """

    cell: Cell = field(default_factory=Cell)
    ledger: Ledger = field(default_factory=Ledger)
    named: LabelCounters = field(default_factory=LabelCounters)
    turns: Mapping[str, Cell] = field(default_factory=dict)

    def with_wave(self, other: Count) -> Count:
        """Both, added up."""
        cell, named = Cell(), LabelCounters()
        turns: defaultdict[str, Cell] = defaultdict(Cell)
        for each in (self, other):
            cell.merge(each.cell)
            named.merge(each.named)
            for name, of_turns in each.turns.items():
                turns[name].merge(of_turns)
        return Count(cell, self.ledger + other.ledger, named, turns)


@dataclass(frozen=True, slots=True)
class Now:
    """A wave at this moment: the rates over its last few whole seconds, None where there is none.

    ``verdict`` and ``hosts``: of a wave that is over.
    """

    target_rate: float | None = None
    sent_rate: float | None = None
    completed_rate: float | None = None
    in_flight: int = 0
    running: bool = False
    verdict: Verdict | None = None
    hosts: tuple[HostRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """A run's waves against one endpoint. ``verdicts``: those of the waves that are over, counted."""

    labels: dict[str, str]
    count: Count
    now: Now
    verdicts: Counter[str] = field(default_factory=Counter)
