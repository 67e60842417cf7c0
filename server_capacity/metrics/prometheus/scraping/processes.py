"""The processes that the scrapes of a window reached: one, or several by turns, as behind a load balancer. Pure."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from server_capacity.metrics.prometheus.scraping.history import History, Track

STARTED = "process_start_time_seconds"
"""A gauge that client libraries of Prometheus put on a page: when its process started, in unix seconds."""

CLOCKS_APART_S = 60.0
"""A process that started so much before the scrape before it was there already: its server's clock may differ."""

LEAST_STEPS, JUMP = 4, 20
"""A counter that gains so many times as much in one step as in all others together, of so many, has jumped."""

SERVER_LABELS = frozenset({"instance", "pod", "pod_name", "hostname", "host_name", "host", "node", "replica"})
SERVER_LABELS |= {"instance_id", "replica_id", "server_id", "container_id"}
MOST_SERVERS, MOST_COUNTERS = 32, 32

EACH_ONE = "name the page of each instance"


def start_times(history: History, span: Iterable[int]) -> list[tuple[int, float]]:
    """(round, start time) of the process that answered each round; none where the pages do not say it of one."""
    tracks = [history.tracks[key] for key in history.keys(STARTED, ())]
    if len(tracks) != 1:
        return []
    return [(index, value) for index in span if (value := tracks[0].at(index)) is not None]


def several(history: History, span: Sequence[int], started: Sequence[tuple[int, float]]) -> str | None:
    """The reason why what was scraped is not one server's, by what the answers say of the server that gave them.

    That is a start of its process that was before the last scrape, another header, or another value of a label such as
    ``pod``.
    """
    return _older_process(history, started) or _other_names(history, span)


def mixed(history: History, span: Sequence[int], started: Mapping[int, float]) -> str | None:
    """The reason why what was scraped may not be one server's: a counter fell, or another address answered."""
    name, times = max(_fallen(history, span, started), key=lambda pair: pair[1], default=("", 0))
    if times:
        return (
            f"the page's {name} fell {_times(times)} in the window: "
            + ("the server restarted, or " if times == 1 else "")
            + f"each scrape is of one of several servers at this address; {EACH_ONE}"
        )
    peers = dict.fromkeys(peer for index in span if (peer := history.rounds[index].peer))
    if len(peers) > 1:
        return f"{len(peers)} addresses answered ({', '.join(islice(peers, 3))}), maybe of several servers; {EACH_ONE}"
    return None


def _fallen(history: History, span: Sequence[int], started: Mapping[int, float]) -> Iterator[tuple[str, int]]:
    """(name, how often it fell without a restart that the pages tell) of some of the page's counters."""
    known = 0 < len(started) == len(span)
    counters = (each for each in list(history.tracks.items()) if _is_counter(each[0][0], history))
    for (name, _), track in islice(counters, MOST_COUNTERS):
        points = [(index, value) for index in span if (value := track.at(index)) is not None]
        yield (
            name,
            sum(now < before and not (known and started[i] < started[j]) for (i, before), (j, now) in pairwise(points)),
        )


def _is_counter(name: str, history: History) -> bool:
    return "counter" in (history.types.get(name), history.types.get(name.removesuffix("_total")))


def _other_names(history: History, span: Sequence[int]) -> str | None:
    """The reason, where the headers or labels that name a server changed from one scrape to another."""
    headers = [history.rounds[index].server for index in span if history.rounds[index].server]
    named = [("a header that names the server", headers), *_labels(history, span)]
    for what, values in named:
        if changes := sum(before != now for before, now in pairwise(values)):
            return _by_turns(what, changes)
    return None


def _labels(history: History, span: Sequence[int]) -> Iterator[tuple[str, list[str]]]:
    """(what, its value in each round) of labels that name the server: a page of one server has one value at a time."""
    tracks: dict[str, dict[str, Track]] = {}
    for (_, labels), track in list(history.tracks.items()):
        for name, value in labels:
            if name in SERVER_LABELS:
                tracks.setdefault(name, {}).setdefault(value, track)
    for name, by_value in tracks.items():
        if 1 < len(by_value) <= MOST_SERVERS:
            seen = [[value for value, track in by_value.items() if track.at(index) is not None] for index in span]
            if all(len(values) <= 1 for values in seen):
                yield f"the label {name}", [value for values in seen for value in values]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _older_process(history: History, started: Sequence[tuple[int, float]]) -> str | None:
    changes = [(before, now) for before, now in pairwise(started) if before[1] != now[1]]
    restarts = [
        now[1] > before[1] and now[1] > history.rounds[before[0]].began - CLOCKS_APART_S for before, now in changes
    ]
    if all(restarts):
        return None
    return _by_turns(STARTED, len(changes))


def _by_turns(what: str, changes: int) -> str:
    changed = f"{what} changed {_times(changes)} in the window"
    return f"several servers answer at this address by turns: {changed}; {EACH_ONE}"


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
