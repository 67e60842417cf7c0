"""The models of a multi-model endpoint: which are in memory, and when one that is not will be."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple


class Visit(NamedTuple):
    """A request's visit: ``ready_ns`` is when its model can serve; a miss ``loads`` it, and may evict one."""

    hit: bool
    ready_ns: int
    loads: bool
    evicted: bool


class ModelCache:
    """At most ``capacity`` models, the most recently used ones; a miss loads for ``load_ns``.

    It unloads the least recently used model where there is no room. Loads do not wait for each other. A model counts
    as in memory from the moment its load begins; a request for one that still loads waits for that load and is no
    hit. Pure: instants come in as arguments.
    """

    def __init__(self, capacity: int, load_ns: int) -> None:
        self._capacity = capacity
        self._load_ns = load_ns
        self._ready: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._ready)

    def visit(self, model: str, now_ns: int) -> Visit:
        """A request for a model: the most recent one from now on."""
        ready = self._ready.get(model)
        if ready is not None:
            self._ready.move_to_end(model)
            return Visit(hit=ready <= now_ns, ready_ns=ready, loads=False, evicted=False)
        evicted = len(self._ready) >= self._capacity
        if evicted:
            self._ready.popitem(last=False)
        self._ready[model] = now_ns + self._load_ns
        return Visit(hit=False, ready_ns=now_ns + self._load_ns, loads=True, evicted=evicted)
