"""A scraper's rounds, and of each series the values in packed arrays, so that a day of them fits. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.exposition import Labels, Page

Key = tuple[str, "Labels"]


@dataclass(frozen=True, slots=True)
class Round:
    """One scrape, in unix seconds: when it was due, asked for and answered. ``error``: why it brought nothing."""

    due: float
    began: float
    ended: float
    error: str | None = None


class Track:
    """A series: its values, and the indices of the rounds that had one."""

    def __init__(self) -> None:
        self.rounds = array("I")
        self.values = array("d")

    def add(self, index: int, value: float) -> None:
        """The value of a round; a series that stands twice on a page counts the first time."""
        if not self.rounds or self.rounds[-1] != index:
            self.rounds.append(index)
            self.values.append(value)

    def at(self, index: int) -> float | None:
        """The value of the round, None where it had none."""
        place = bisect_left(self.rounds, index)
        return self.values[place] if place < len(self.rounds) and self.rounds[place] == index else None

    @property
    def born(self) -> int:
        """The first round that had it."""
        return self.rounds[0]


class History:
    """All rounds and tracks, what the pages said of types and units, and of which names lines could not be read."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.tracks: dict[Key, Track] = {}
        self.types: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.broken: dict[str, str] = {}

    def add(self, round_: Round, page: Page | None) -> None:
        """A round and, where it brought one, its page."""
        index = len(self.rounds)
        if page:
            self.types.update(page.types)
            self.units.update(page.units)
            self.broken.update(page.broken)
            for sample in page.samples:
                key = (sample.name, sample.labels)
                if (track := self.tracks.get(key)) is None:
                    track = self.tracks[key] = Track()
                track.add(index, sample.value)
        self.rounds.append(round_)  # last: a reader on another thread sees whole rounds

    def keys(self, name: str, labels: Labels) -> list[Key]:
        """The series of that name that have at least those labels."""
        given = set(labels)
        return [key for key in list(self.tracks) if key[0] == name and given <= set(key[1])]
