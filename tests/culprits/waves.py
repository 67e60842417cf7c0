"""The table: waves with something wrong with the client, something wrong with the server, or nothing wrong at all."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tests.bench import FACTORIES
from tests.culprits import factories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.embedded.running import RunningEndpoint

EVIDENCE = Path(__file__).parent / "evidence"


@dataclass(frozen=True)
class Culprit:
    """A wave, and whom its verdict is to blame.

    ``codes``: the findings of which one at least must be there. ``sides``: what ``limited_by`` may be. ``endpoint``
    and ``bad_replica``: their configurations; the second one's address is in BAD_TARGET. ``before`` is shell code,
    ``neighbours`` is how many other processes compute on this host, ``meanwhile`` runs beside the wave.
    """

    name: str
    kind: Literal["client", "server", "clean"]
    flags: tuple[object, ...]
    endpoint: Mapping[str, Any]
    sides: tuple[str | None, ...]
    codes: tuple[str, ...] = ()
    factories: str = FACTORIES
    bad_replica: Mapping[str, Any] | None = None
    refuses: bool = False
    before: str = ""
    neighbours: int = 0
    meanwhile: Callable[[RunningEndpoint], None] | None = field(default=None, repr=False)

    @property
    def evidence(self) -> Path:
        """The run directory with the wave's facts."""
        return EVIDENCE / self.name

    @property
    def held_out(self) -> bool:
        """Whether nobody looks at its verdict while limits are chosen."""
        return self.name in HELD_OUT


def _await_the_first_arrival(endpoint: RunningEndpoint) -> None:
    deadline = time.monotonic() + 60
    while not endpoint.arrivals()["sequence"] and time.monotonic() < deadline:
        time.sleep(0.05)


def _stall(endpoint: RunningEndpoint) -> None:
    _await_the_first_arrival(endpoint)
    time.sleep(6)
    endpoint.stall(3)


def _grow_slower(endpoint: RunningEndpoint) -> None:
    """Each service takes longer than the one before, up to ten times as long: the servers stand still in between."""
    _await_the_first_arrival(endpoint)
    begun = time.monotonic()
    while (share := (time.monotonic() - begun) / 10) < 1:
        endpoint.stall(0.1 * 0.9 * share)
        time.sleep(0.1)


def _rate(rate: int, seconds: float, *more: object) -> tuple[object, ...]:
    return ("--client-rps", rate, "--obs-time", seconds, "--seed", 1, *more)


def _client(
    name: str, codes: tuple[str, ...], flags: tuple[object, ...], text: str = FACTORIES, **more: Any
) -> Culprit:
    endpoint = {"servers": 50, "service_s": 0.05} | more.pop("endpoint", {})
    return Culprit(name, "client", flags, endpoint, more.pop("sides", ("client",)), codes, text, **more)


def _server(name: str, flags: tuple[object, ...], **more: Any) -> Culprit:
    culprit = {"endpoint": {}, "sides": ("server",)} | more
    return Culprit(name, "server", flags, **culprit)


def _clean(name: str, flags: tuple[object, ...], text: str = FACTORIES, **endpoint: Any) -> Culprit:
    return Culprit(name, "clean", flags, {"service_s": 0.1, **endpoint}, (None,), factories=text)


LATE = ("schedule_lag", "loop_blocked")
# What this client did is named, but the load was offered and the endpoint may have its part in it.
NO_LIMIT = (None, "client")
CULPRITS = (
    _client("json_dumps", ("loop_blocked",), _rate(20, 10), factories.JSON_DUMPS, endpoint={"service_s": 0.1}),
    _client("blocking_sleep", ("loop_blocked",), _rate(40, 8), factories.BLOCKING_SLEEP),
    _client("small_pool", ("connection_pool",), _rate(200, 8), factories.SMALL_POOL, endpoint={"service_s": 0.02}),
    _client("payload_building", ("payload_building",), _rate(80, 8), factories.PAYLOAD_BUILDING),
    _client("busy_neighbour", LATE, _rate(150, 7), neighbours=4, endpoint={"service_s": 0.02}),
    _client(
        "few_descriptors",
        ("descriptors",),
        _rate(100, 8),
        before="ulimit -n 128",
        endpoint={"servers": 500, "service_s": 1.5},
    ),
    _client(
        "new_connections",
        ("connections_opened",),
        _rate(150, 8),
        factories.NEW_CONNECTIONS,
        endpoint={"service_s": 0.01},
        sides=NO_LIMIT,
    ),
    _client(
        "hidden_retries",
        ("hidden_retries",),
        _rate(30, 10),
        factories.HIDDEN_RETRIES,
        endpoint={"error_share": 0.3, "error_status": 503},
        sides=NO_LIMIT,
    ),
    _client("collections", ("loop_blocked",), _rate(30, 8), factories.COLLECTIONS),
    _client("lock", ("lock_wait",), _rate(30, 10), factories.LOCK),
    _client("thread", LATE, _rate(30, 8), factories.THREAD),
    _client("few_workers", ("worker_cpu", "schedule_lag"), _rate(500, 5), factories.FEW_WORKERS),
    _server("overload", _rate(300, 12), factories=factories.FIRST_TUTORIAL),
    _server("lifo_overload", _rate(180, 8, "--drain-timeout", 3), endpoint={"service_s": 0.03, "discipline": "lifo"}),
    _server("ps_overload", _rate(260, 7), endpoint={"discipline": "ps"}),
    _server(
        "batch_overload",
        _rate(60, 10),
        endpoint={"servers": 1, "service_s": 0.2, "batch_size": 8, "batch_delay_s": 0.02},
    ),
    _server("growing_service", _rate(100, 10), meanwhile=_grow_slower),
    _server("stall", _rate(120, 10), meanwhile=_stall),
    _server("refused_by_status", _rate(300, 7), endpoint={"queue_limit": 10}),
    _server("refused_connections", _rate(150, 8), refuses=True),
    _server(
        "bad_replica",
        _rate(60, 12),
        factories=factories.REPLICAS,
        endpoint={"servers": 12, "service_s": 0.05},
        bad_replica={"servers": 1, "service_s": 0.1},
    ),
    _server(
        "rate_limit",
        _rate(100, 8),
        endpoint={"servers": 20, "service_s": 0.05, "error_share": 0.4, "error_status": 429},
    ),
    _server("abandoned", _rate(180, 8, "--drain-timeout", 0.5), endpoint={"servers": 2}),
    # Nothing tells how much it could answer: that it fails is said, and that nobody's capacity is the cause.
    _server(
        "all_failing",
        _rate(60, 8),
        endpoint={"servers": 20, "service_s": 0.05, "error_share": 1.0},
        sides=("server", None),
        codes=("success_below_threshold",),
    ),
    _clean(
        "lifo_60",
        _rate(40, 12, "--arrivals", "poisson"),
        servers=10,
        service="exponential",
        service_s=0.15,
        discipline="lifo",
    ),
    _clean("ps_70", _rate(70, 10, "--arrivals", "poisson"), servers=10, service="exponential", discipline="ps"),
    _clean("batches", _rate(50, 10), servers=2, service_s=0.2, batch_size=8, batch_delay_s=0.05),
    _clean("bimodal", _rate(55, 10), servers=10, service="bimodal"),
    _clean("slow_start", _rate(80, 10), servers=20, slow_start_s=2),
    _clean("pauses", _rate(55, 10), servers=10, pause_every_s=2, pause_s=0.3),
    _clean("heavy_tail", _rate(100, 8), servers=40, service="lognormal", cv=4),
    _clean("high_latency", _rate(100, 10), servers=400, service_s=2),
    _clean("mixed_sizes", _rate(80, 8), factories.MIXED_SIZES, servers=20),
    _clean("streams", _rate(25, 12), factories.STREAMS, servers=100, service_s=2, tokens=20),
    _clean("closed_loop", ("--concurrency", 16, "--obs-time", 10, "--seed", 1), servers=4, service_s=0.05),
    _clean("poisson_80", _rate(80, 10, "--arrivals", "poisson"), servers=10, service="exponential"),
)


def _held_out() -> frozenset[str]:
    """Six of each kind, drawn before any of them was sent."""
    draw = random.Random("held out")
    kinds = ([culprit.name for culprit in CULPRITS if culprit.kind == kind] for kind in ("client", "server", "clean"))
    return frozenset(name for names in kinds for name in draw.sample(names, 6))


HELD_OUT = _held_out()
