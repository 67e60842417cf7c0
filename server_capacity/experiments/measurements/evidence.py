"""Everything that a search has measured by now: its waves, and their stretches on one clock. No input or output."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop, OpenLoop
from server_capacity.experiments.measurements.user_count_search import answer_of
from server_capacity.search.retried_rate import without_warm_up
from server_capacity.search.slow_down import SLOWER, slower, without_slow_down

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.client_limit import Queueing
    from server_capacity.experiments.measurements.counting import Counted
    from server_capacity.experiments.measurements.question import Question
    from server_capacity.search.answer import Answer
    from server_capacity.search.slow_down import Slower
    from server_capacity.search.stretch import Stretch


@dataclass(frozen=True, slots=True)
class CountedStretch:
    """A stretch of the search, on its one clock and with its own number, and the run directory's name of its wave."""

    counted: Counted
    wave: str

    @property
    def stretch(self) -> Stretch:
        """The stretch itself."""
        return self.counted.stretch


@dataclass(slots=True)
class SearchEvidence:
    """Everything that was measured by now, the waves in their order.

    ``warming``: the waves before, which sent each payload once. ``client_limit``: why no higher rate could be offered,
    with all workers that there may be; or None. ``queueing``: within the client, of requests that it had sent.
    ``slower``: where the endpoint got slower with time, and ``early`` the answer of what came before.
    ``failures``: sentences on what broke a wave off, or could not be done. ``marks``: of each wave the purposes of its
    stages, and why some counted for nothing at first; ``shared``: so many of the first waves were sent for another
    tier.
    """

    workers: int
    warming: list[Wave] = field(default_factory=list)
    waves: list[Wave] = field(default_factory=list)
    rows: list[CountedStretch] = field(default_factory=list)
    client_limit: str | None = None
    queueing: Queueing | None = None
    slower: Slower | None = None
    early: Answer | None = None
    interrupted: bool = False
    failures: list[str] = field(default_factory=list)
    marks: list[list[tuple[str, str]]] = field(default_factory=list)
    shared: int = 0

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Those that an answer may be taken from: of a wave that another one followed, not what the client spoilt."""
        last = self.rows[-1].wave if self.rows else ""
        return tuple(row.stretch for row in self.rows if row.stretch.void in ("", SLOWER) or row.wave == last)

    @property
    def adaptive(self) -> list[Wave]:
        """The waves whose rate, or number of users, changed."""
        loads = [(wave, wave.plan.load) for wave in self.waves]
        return [wave for wave, load in loads if isinstance(load, OpenLoop | ClosedLoop) and load.steered]

    @property
    def next_place(self) -> tuple[int, float]:
        """The number of the next stretch, and when it begins (seconds on the search's clock)."""
        return (self.rows[-1].stretch.number + 1, self.rows[-1].stretch.end_s) if self.rows else (0, 0.0)

    @property
    def load_s(self) -> float:
        """Seconds in which something was sent."""
        return sum(row.stretch.seconds for row in self.rows if row.stretch.rate > 0)

    @property
    def void_s(self) -> float:
        """Those of them that count for nothing."""
        return sum(row.stretch.seconds for row in self.rows if row.stretch.rate > 0 and row.stretch.void)

    @property
    def shared_s(self) -> float:
        """Those that were sent for another tier."""
        return sum(row.stretch.seconds for row in self._shared_rows)

    @property
    def shared_void_s(self) -> float:
        """Those of them that count for nothing."""
        return sum(row.stretch.seconds for row in self._shared_rows if row.stretch.void)

    @property
    def _shared_rows(self) -> list[CountedStretch]:
        names = {name_of(wave) for wave in self.waves[: self.shared]}
        return [row for row in self.rows if row.stretch.rate > 0 and row.wave in names]

    def add(self, wave: Wave, stages: Sequence[Counted]) -> None:
        """Another wave, with its stages by the wave's own clock and numbers."""
        number, start_s = self.next_place
        self.marks.append([(each.stretch.purpose, each.stretch.void) for each in stages])
        self.waves.append(wave)
        self.rows += [
            CountedStretch(replace(each, stretch=shifted(each.stretch, number, start_s)), name_of(wave))
            for each in stages
        ]

    def leave_out_warm_up(self, question: Question) -> None:
        """Stretches in which the endpoint was slower than later count for nothing from now on."""
        if question.is_of_rates:
            self._renew(without_warm_up(question.limits, [row.stretch for row in self.rows]))

    def leave_out_slow_down(self, question: Question) -> None:
        """Stretches from before the endpoint got slower count for nothing from now on."""
        stretches = [row.stretch for row in self.rows]
        seen = slower(question.limits, stretches) if question.is_of_rates else None
        if seen is None:
            return
        if self.slower is None:
            early = [each for each in stretches if each.end_s <= seen.until_s]
            self.slower, self.early = seen, answer_of(question, early)
        self._renew(without_slow_down(question.limits, stretches))

    def leave_out(self, spoilt: Mapping[int, str]) -> None:
        """Stretches with these numbers count for nothing from now on, for a reason each, where they still did."""
        stretches = [row.stretch for row in self.rows]
        self._renew([each if each.void else replace(each, void=spoilt.get(each.number, "")) for each in stretches])

    def _renew(self, stretches: Sequence[Stretch]) -> None:
        self.rows = [
            replace(row, counted=replace(row.counted, stretch=stretch))
            for row, stretch in zip(self.rows, stretches, strict=True)
        ]


def name_of(wave: Wave) -> str:
    """The name by which rows know their wave."""
    return "" if wave.run_dir is None else wave.run_dir.path.name


def shifted(stretch: Stretch, number: int, start_s: float) -> Stretch:
    """The same stretch of a wave whose first one has this number, and which began then on the search's clock."""
    slices = tuple(replace(each, start_s=each.start_s + start_s, end_s=each.end_s + start_s) for each in stretch.slices)
    return replace(
        stretch,
        number=stretch.number + number,
        start_s=stretch.start_s + start_s,
        end_s=stretch.end_s + start_s,
        slices=slices,
    )
