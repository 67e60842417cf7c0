"""The rules by which the servers of the queueing model work."""

from __future__ import annotations

from dataclasses import dataclass

DISCIPLINES = ("fifo", "lifo", "ps")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules by which the servers work.

    ``discipline``: who is taken up next, the first come (``fifo``) or the last (``lifo``), whose service then is not
    interrupted; or all are in service at once and share the servers evenly, none with more than one (``ps``).
    ``queue_limit``: how many may wait, with ``ps`` how many may be there beyond the number of servers; None: no limit.

    A server takes up to ``batch_size`` requests at once when that many wait, or one has waited for
    ``batch_delay_ns``; the batch takes as long as its longest request, and all of it ends together.

    When more than ``grow_queue`` wait (with ``ps``: are there beyond the number of servers) after an arrival, a server
    is added that serves ``grow_delay_ns`` later, one at a time, up to ``most_servers`` (at least ``servers``).
    The last added goes when for ``grow_keep_ns`` the others were enough.

    The first service of each server takes ``cold_start_ns`` longer; a server that never worked is preferred to one
    that has. What begins within ``slow_start_ns`` of the first arrival, and the first ``slow_start_requests``, takes
    ``slow_start_factor`` times as long; where that is ``slow_start_gradual``, the factor falls evenly to 1 meanwhile.
    All of this begins anew with an arrival before which nobody was there for ``cool_ns``; 0: never. From the first
    arrival on, all servers stand still for ``pause_ns`` every ``pause_every_ns``; 0: never.

    ``burst_ns`` of service can be saved up, of which each server earns ``burst_baseline`` of the time; a service that
    begins with less saved up takes 1 / ``burst_baseline`` times as long. 0: none does.
    """

    servers: int
    discipline: str = "fifo"
    queue_limit: int | None = None
    batch_size: int = 1
    batch_delay_ns: int = 0
    most_servers: int = 0
    grow_queue: int = 0
    grow_delay_ns: int = 0
    grow_keep_ns: int = 0
    cold_start_ns: int = 0
    slow_start_ns: int = 0
    slow_start_requests: int = 0
    slow_start_factor: float = 1.0
    slow_start_gradual: bool = False
    cool_ns: int = 0
    burst_ns: int = 0
    burst_baseline: float = 1.0
    pause_every_ns: int = 0
    pause_ns: int = 0
