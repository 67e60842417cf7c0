"""A scraper's rounds, and of each series the values in packed arrays, so that a day of them fits. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from server_capacity.metrics.prometheus.exposition import TOO_LARGE, held_by

if TYPE_CHECKING:
    from server_capacity.metrics.prometheus.exposition import Labels, Page

Key = tuple[str, "Labels"]
MOST_BYTES = 64 << 20
"""Of names, labels and descriptions: a page may have new labels each time, such as the id of a request."""
MOST_VALUES = 40_000_000
"""Of all series together, 12 bytes each: 500 series of a page that is read each second for 22 hours."""
FULL = "the page has had more series than 64 MiB hold: those that came later are left out"
TOO_MANY = "the page has had more than 40,000,000 values: the series that stand last are left out (raise `interval`)"


@dataclass(frozen=True, slots=True)
class Round:
    """One scrape, in unix seconds: when it was due, asked for and answered. ``error``: why it brought nothing.

    ``server``: the headers in which the server named itself, ``peer``: the address that answered; empty where unknown.
    """

    due: float
    began: float
    ended: float
    error: str | None = None
    server: str = ""
    peer: str = ""


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
    """All rounds and tracks, what the pages said of types and units, and of which names lines could not be read.

    ``left_out``: why series of a name are missing.
    """

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.tracks: dict[Key, Track] = {}
        self.types: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self._room = MOST_BYTES
        self._values = 0

    def add(self, round_: Round, page: Page | None) -> None:
        """A round and, where it brought one, its page."""
        index = len(self.rounds)
        if page:
            for kept, texts in ((self.types, page.types), (self.units, page.units), (self.broken, page.broken)):
                kept.update((name, text) for name, text in texts.items() if name in kept or self._takes(name, text))
            self.left_out.update(dict.fromkeys(page.left_out, TOO_LARGE))
            for sample in page.samples:
                key = (sample.name, sample.labels)
                if (track := self.tracks.get(key)) is None:
                    if not self._takes(*chain(*sample.labels)):
                        self.left_out.setdefault(sample.name, FULL)
                        continue
                    track = self.tracks[key] = Track()
                track.add(index, sample.value)
                self._values += 1
            if self._values > MOST_VALUES:
                self._forget_last()
        self.rounds.append(round_)  # last: a reader on another thread sees whole rounds

    def _forget_last(self) -> None:
        """Leave out the series that came last, so that those before have room for a while; there come no new ones."""
        self._room = 0
        self._values = sum(len(track.rounds) for track in self.tracks.values())
        while self._values > MOST_VALUES * 7 // 8 and len(self.tracks) > 1:
            (name, _), track = self.tracks.popitem()
            self._values -= len(track.rounds)
            self.left_out[name] = TOO_MANY

    def _takes(self, *texts: str) -> bool:
        """Tells whether there is room for a series or a description with these texts, and takes it."""
        needed = held_by(*texts)
        if needed > self._room:
            return False
        self._room -= needed
        return True

    def at(self, key: Key, index: int) -> float | None:
        """The value of a series in a round; None where it had none, or is left out by now."""
        track = self.tracks.get(key)
        return None if track is None else track.at(index)

    def keys(self, name: str, labels: Labels) -> list[Key]:
        """The series of that name that have at least those labels."""
        given = set(labels)
        return [key for key in list(self.tracks) if key[0] == name and given <= set(key[1])]
