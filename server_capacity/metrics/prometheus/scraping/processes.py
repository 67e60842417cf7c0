"""The processes that the scrapes of a window reached: one, or several by turns, as behind a load balancer. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from server_capacity.metrics.prometheus.scraping.history import History

STARTED = "process_start_time_seconds"
"""A gauge that client libraries of Prometheus put on a page: when its process started, in unix seconds."""

CLOCKS_APART_S = 60.0
"""A process that started so much before the scrape before it was there already: its server's clock may differ."""

LEAST_STEPS, JUMP = 4, 20
"""A counter that gains so many times as much in one step as in all others together, of so many, has jumped."""

EACH_ONE = "name the page of each instance"


def start_times(history: History, span: Iterable[int]) -> list[tuple[int, float]]:
    """(round, start time) of the process that answered each round; none where the pages do not say it of one."""
    tracks = [history.tracks[key] for key in history.keys(STARTED, ())]
    if len(tracks) != 1:
        return []
    return [(index, value) for index in span if (value := tracks[0].at(index)) is not None]


def several(history: History, started: Sequence[tuple[int, float]]) -> str | None:
    """The reason why what was scraped is not one server's: a process answered that was there before the last scrape."""
    changes = [(before, now) for before, now in pairwise(started) if before[1] != now[1]]
    restarts = [
        now[1] > before[1] and now[1] > history.rounds[before[0]].began - CLOCKS_APART_S for before, now in changes
    ]
    if all(restarts):
        return None
    times = "once" if len(changes) == 1 else f"{len(changes)} times"
    return f"several servers answer at this address by turns: {STARTED} changed {times} in the window; {EACH_ONE}"


def fell(times: int) -> str | None:
    """The reason why a counter that fell so often, and not by restarts that the pages tell, has no gain."""
    if not times:
        return None
    if times == 1:
        return (
            "it fell once in the window: the server restarted, or several servers answer at this address by turns;"
            f" {EACH_ONE}"
        )
    return f"it fell {times} times in the window: several servers answer at this address by turns, so {EACH_ONE}"


def jumped(values: Sequence[float], *, known: bool) -> str | None:
    """The reason why the gain of a counter that never fell is only about so much: one step has nearly all of it.

    ``known``: whether each page says when its process started. Where the others gained nothing, the one step is all
    that there was to count.
    """
    gains = sorted(now - before for before, now in pairwise(values))
    rest = sum(gains[:-1])
    if known or len(gains) < LEAST_STEPS or not 0 < JUMP * rest < gains[-1]:
        return None
    return (
        f"one step between scrapes gained more than {JUMP} times as much as all the others: several servers answer at"
        f" this address by turns, or it was a burst; {EACH_ONE}"
    )
