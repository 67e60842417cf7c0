"""A scraper's rounds, and of each series the values in packed arrays, so that a day of them fits. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.exposition import Labels, Page

Key = tuple[str, "Labels"]
MOST_BYTES = 64 << 20
"""Of names, labels and descriptions: a page may have new labels each time, such as the id of a request."""
FULL = "the page has had more series than 64 MiB hold: those that came later are left out"
_SERIES_BYTES = 700  # of a series without its texts
_TEXT_BYTES = 65  # of a text without its characters, and its place in a tuple


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
        self._room = MOST_BYTES

    def add(self, round_: Round, page: Page | None) -> None:
        """A round and, where it brought one, its page."""
        index = len(self.rounds)
        if page:
            for kept, told in ((self.types, page.types), (self.units, page.units), (self.broken, page.broken)):
                kept.update((name, text) for name, text in told.items() if name in kept or self._takes(name, text))
            for sample in page.samples:
                key = (sample.name, sample.labels)
                if (track := self.tracks.get(key)) is None:
                    if not self._takes(*chain(*sample.labels)):
                        self.broken[sample.name] = FULL
                        continue
                    track = self.tracks[key] = Track()
                track.add(index, sample.value)
        self.rounds.append(round_)  # last: a reader on another thread sees whole rounds

    def _takes(self, *texts: str) -> bool:
        """Tells whether there is room for a series or a description with these texts, and takes it."""
        needed = _SERIES_BYTES + sum(_TEXT_BYTES + len(text) for text in texts)
        if needed > self._room:
            return False
        self._room -= needed
        return True

    def keys(self, name: str, labels: Labels) -> list[Key]:
        """The series of that name that have at least those labels."""
        given = set(labels)
        return [key for key in list(self.tracks) if key[0] == name and given <= set(key[1])]
