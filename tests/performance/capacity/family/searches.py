"""Searches of members of the family, kept line by line."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from server_capacity.search.answer import Answer
from server_capacity.search.pace import pace_of
from server_capacity.search.retried_rate import without_warm_up
from server_capacity.search.settings import Settings
from server_capacity.search.slow_down import slower
from tests.performance.capacity.driver import Feed, play
from tests.performance.capacity.family.truth import TIMES_S
from tests.performance.capacity.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.performance.capacity.family.sets import Known

_LEAST_OVER, _LEAST_SERVICES = 4.0, 30.0


@dataclass(frozen=True, slots=True)
class Searched:
    """One search of a member, and what came of it.

    ``oracle``: the oracle's score over the truth. ``findable``: the time is that of 30 services at least, and so long
    that 4 requests are over the limit at the true rate; and the client can send that rate. ``slowdown``: so many
    times as long services took in the end; ``slower``: the search saw the endpoint get slower with time.
    ``answers``: so many, one after the other, come in its load.
    """

    kind: str
    index: int
    time_s: float
    oracle: float
    findable: bool
    slowdown: float
    slower: bool
    answers: float
    result: Result

    @property
    def key(self) -> tuple[int, float, int]:
        """Its endpoint, time and seed: equal in another file where another method met the same random numbers."""
        return self.index, self.time_s, self.result.seed

    @property
    def too_high(self) -> bool:
        """It says that a rate is kept which is above the truth; of what is unknown it says nothing."""
        return self.result.outcome in ("found", "at_least") and self.result.too_high

    @property
    def score(self) -> float:
        """The interval score over the truth."""
        return self.result.score / self.result.truth


def search(members: Iterable[Known], time_s: float, count: int, file: Path, ends: float) -> None:
    """Make the searches that are not in the file, until the clock (``time.monotonic``) shows ``ends``."""
    there = {each.key for each in read(file)} if file.exists() else set()
    members = list(members)
    for seed in range(1, count + 1):
        for each in members:
            if (each.index, time_s, seed) not in there and time.monotonic() < ends:
                with file.open("a") as lines:
                    lines.write(json.dumps(asdict(searched(each, time_s, seed))) + "\n")


def searched(known: Known, time_s: float, seed: int) -> Searched:
    """The result of one search; of no two members, and for no two times, are the random numbers alike."""
    member, truth = known.member, known.truth.rate
    endpoint, settings = member.searched(time_s), Settings(time_s=time_s)
    client = None if member.client is None else member.client * truth
    given = (f"{member.kind} {known.index}", seed, truth)
    got_slower, answers = False, 0.0
    try:
        played = play(endpoint, settings, 1000 * known.index + seed, Feed(client_most=client))
    except ArithmeticError as error:
        result = Result.of(*given, Answer("cannot_tell", reason=repr(error)))
    else:
        result = Result.of(*given, played.answer, load_s=played.load_s, cpu_s=played.cpu_s)
        got_slower = slower(endpoint.limits, without_warm_up(endpoint.limits, played.stretches)) is not None
        counted = sum(each.seconds for each in played.stretches if each.rate and not each.void)
        answers = pace_of(played.stretches).answers_in(counted)
    return Searched(
        kind=member.kind,
        index=known.index,
        time_s=time_s,
        oracle=known.truth.scores[TIMES_S.index(round(time_s))],
        findable=_findable(known, time_s) and (client is None or client > truth),
        slowdown=member.slowdown,
        slower=got_slower,
        answers=answers,
        result=result,
    )


def _findable(known: Known, time_s: float) -> bool:
    rules, allowed = known.member.rules, known.member.limits[0].allowed
    services = time_s / (rules.mean_s + rules.batch_delay_s)
    return services >= _LEAST_SERVICES and known.truth.rate * time_s * allowed >= _LEAST_OVER


def read(file: Path) -> list[Searched]:
    """All searches in a file."""
    return [_read(json.loads(line)) for line in file.read_text().splitlines()]


def _read(values: dict[str, Any]) -> Searched:
    return Searched(**{**values, "result": Result(**values["result"])})
