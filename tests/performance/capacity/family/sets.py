"""Three disjoint sets of the family, and their truths as data.

``choose``: to choose a method and to calibrate it by; ``report``: to report it by; ``sealed``: looked at once. The
seeds of the sealed set are the SHA-256 of the commit that freezes the method, so nobody can know its endpoints before.
Two thirds of it are of the open kinds, a third of those that are held back.
"""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.performance.capacity.family.drawing import HELD_BACK, OPEN, drawn
from tests.performance.capacity.family.truth import TIMES_S, Truth, member_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.performance.capacity.family.drawing import Member

NAMES = ("choose", "report", "sealed")
_FIELDS = ("index", "kind", "attempt", "digest", "truth", "sd", "slope", *(f"oracle_{each}" for each in TIMES_S))


@dataclass(frozen=True, slots=True)
class Known:
    """A member of a set, and its truth."""

    index: int
    member: Member
    truth: Truth


def seed_of(name: str, index: int, commit: str = "") -> str:
    """Of one place of a set; the sealed set's comes from a commit."""
    if (name == "sealed") != bool(commit):
        raise ValueError("the sealed set has the seeds of a commit, and no other set has")
    frozen = hashlib.sha256(commit.encode()).hexdigest() if commit else name
    return f"{frozen} {index}"


def kind_of(name: str, index: int) -> str:
    """The kinds come in turn; of the sealed set every third is held back."""
    if name != "sealed":
        return OPEN[index % len(OPEN)]
    if index % 3 == 2:
        return HELD_BACK[index // 3 % len(HELD_BACK)]
    return OPEN[(index - index // 3) % len(OPEN)]


def file_of(name: str) -> Path:
    """The truths of a set."""
    return Path(__file__).with_name(f"{name}.csv")


def known(name: str, commit: str = "") -> list[Known]:
    """The members whose truths are stored; ValueError where another endpoint is drawn today."""
    if not file_of(name).exists():
        return []
    with file_of(name).open(newline="") as lines:
        return [_known(name, commit, row) for row in csv.DictReader(lines)]


def _known(name: str, commit: str, row: dict[str, str]) -> Known:
    index = int(row["index"])
    member = drawn(row["kind"], seed_of(name, index, commit), int(row["attempt"]))
    if member.digest != row["digest"] or member.kind != kind_of(name, index):
        raise ValueError(f"{name} {index} is not the endpoint whose truth is stored: make its truth again")
    scores = tuple(float(row[f"oracle_{each}"]) for each in TIMES_S)
    return Known(index, member, Truth(float(row["truth"]), float(row["sd"]), float(row["slope"]), scores))


def make(name: str, count: int, commit: str = "") -> Iterator[str]:
    """Store the truths of the first ``count`` members that are not stored yet; a line of text for each."""
    there = {each.index for each in known(name, commit)}
    file = file_of(name)
    if not file.exists():
        file.write_text(",".join(_FIELDS) + "\n")
    for index in range(count):
        if index not in there:
            kind = kind_of(name, index)
            attempt, member, truth = member_of(kind, seed_of(name, index, commit))
            numbers = (f"{each:.6g}" for each in (truth.rate, truth.sd, truth.slope, *truth.scores))
            line = ",".join([str(index), kind, str(attempt), member.digest, *numbers])
            with file.open("a") as lines:
                lines.write(line + "\n")
            yield line
