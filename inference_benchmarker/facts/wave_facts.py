"""The facts that a wave left behind, before anyone computes on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeGuard

from inference_benchmarker.plan.load import OpenLoop
from inference_benchmarker.plan.pacing import TokenBucket
from inference_benchmarker.records.record import Ledger
from inference_benchmarker.words.units import MAX_SECONDS, NS

if TYPE_CHECKING:
    from inference_benchmarker.facts.aborted import Aborted
    from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
    from inference_benchmarker.facts.hosts import HostFacts
    from inference_benchmarker.facts.instances import Followed
    from inference_benchmarker.facts.prompt_reuse import PromptReuse
    from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.records.counts import Counts
    from inference_benchmarker.records.parts import InParts

OF_SETTINGS = "settings_sha256"
"""The key of the environment below which the digests of the files that settings name stand."""

OF_MODULES = "modules_sha256"
"""The same of the modules beside the factories (or Locust) file that it imports, by their path from its folder."""


@dataclass(frozen=True, slots=True)
class Window:
    """When the wave was. ``start_unix_ns`` is the wall clock at wave start, the one anchor for server metrics."""

    start_unix_ns: int
    t0_monotonic_ns: int
    planned_ns: int | None
    duration_ns: int
    stopped_at_ns: int | None = None

    @property
    def start(self) -> str:
        """The wall clock at wave start (UTC), in ms."""
        return _iso(self.start_unix_ns)

    @property
    def end(self) -> str:
        """The same at its end."""
        return _iso(self.start_unix_ns + self.duration_ns)


@dataclass(frozen=True, slots=True)
class WaveFacts:
    """A finished wave.

    ``records`` are the window's, ``warmup`` those before it; ``caps`` how many requests each worker could have in
    flight; ``processes`` the series that ``--sample-client-hw`` asks for; ``server_logs`` what was read because
    requests ended in server errors; ``loopback_down_s`` when this host first could not reach itself in mid-wave;
    ``instances`` what was followed of the server's; ``left_behind`` names the processes that the user's code had
    started and that were still there after the wave; ``foreign_connections`` those to the primary's port that had no
    key of the wave's; ``aborted`` says why the wave was ended early by itself; ``hosts`` that sent the load, empty
    where this one alone did; ``host`` is this one, where the primary runs; ``counts`` is None where each request has
    its record: else ``records`` are the slowest, and there is none of the warm-up. ``prompts``: what could have been
    cached of them, where sessions asked a language model; None for a part of a wave.
    """

    plan: WavePlan
    window: Window
    records: InParts
    warmup: InParts
    ledgers: tuple[Ledger, ...]
    lost_workers: tuple[int, ...] = ()
    primary_lost: bool = False
    interrupted: bool = False
    aborted: Aborted | None = None
    disk_error: str | None = None
    loopback_down_s: float | None = None
    left_behind: tuple[str, ...] = ()
    foreign_connections: int = 0
    error_texts: dict[str, list[str]] = field(default_factory=dict)
    caps: tuple[int, ...] = ()
    workers: tuple[WorkerUse, ...] = ()
    host: HostUse | None = None
    processes: tuple[ProcessUse, ...] = ()
    hosts: tuple[HostFacts, ...] = ()
    calibration: dict[str, Any] | None = None
    server_metrics: tuple[ServerMetric, ...] | None = None
    server_logs: tuple[ServerLog, ...] | None = None
    instances: tuple[Followed, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    counts: Counts | None = None
    prompts: PromptReuse | None = None

    @property
    def ledger(self) -> Ledger:
        """The whole wave's ledger."""
        return sum(self.ledgers, Ledger())

    @property
    def warmup_sent(self) -> int:
        """Requests of the warm-up."""
        return len(self.warmup) if self.counts is None else self.counts.warmup.total("sent")

    @property
    def begun_before(self) -> InParts:
        """Requests of sessions that began before the window: load in it, but none of its sample. No others are."""
        return self.warmup if self.has_sessions else self.records.between(0, 0)

    @property
    def open_loop(self) -> bool:
        """Tells whether arrivals were independent of completions."""
        return isinstance(self.plan.load, OpenLoop)

    @property
    def has_sessions(self) -> bool:
        """Tells whether arrivals are sessions of several turns."""
        return self.environment.get("sessions") is True

    @property
    def warmed(self) -> tuple[int, float] | None:
        """The number of requests that were sent once before the load, and their time in seconds; None without any."""
        stored = self.environment.get("warmed")
        if not isinstance(stored, dict):
            return None
        requests, seconds = stored.get("requests"), stored.get("seconds")
        if not (_is_sane(requests) and _is_sane(seconds)):
            return None
        return int(requests), float(seconds)

    @property
    def load_text(self) -> str:
        """The load in words, whose arrivals are requests or sessions."""
        load = self.plan.load
        if not self.has_sessions:
            return load.text
        if isinstance(load, OpenLoop):
            return load.text.replace("requests/s", "sessions/s")
        return f"{load.concurrency:,} sessions open"

    @property
    def paced(self) -> bool:
        """Tells whether it is known before when a request is due: in the open loop, and where users think."""
        return isinstance(self.plan.load, OpenLoop) or self.plan.load.has_users or self.has_sessions


def _is_sane(value: Any) -> TypeGuard[float]:
    """Tells whether a value that anybody may have written is a number that such a thing can have."""
    return type(value) in (int, float) and 0 <= value < MAX_SECONDS


def reconcile_ledgers(
    plan: WavePlan, ledgers: list[Ledger], lost: set[int], stopped_at_ns: int | None
) -> tuple[Ledger, ...]:
    """Check each worker's count against the plan's: what it was to send, and what nobody sent because it died.

    A stop reaches a worker late or, the second time, at once: then what it sent after the stop was scheduled
    too, and what it had not sent by then is lost. So it is where a worker heard of a change of the rate too late.
    """
    if isinstance(plan.load, OpenLoop):
        scheduled = TokenBucket.of(plan).count(stopped_at_ns)
    else:
        scheduled = [ledger.arrivals for ledger in ledgers]
    settled = []
    for number, (ledger, planned) in enumerate(zip(ledgers, scheduled, strict=True)):
        taken_up = ledger.arrivals + ledger.dropped
        adrift = stopped_at_ns is not None or ledger.late_changes > 0
        scheduled_here = max(planned, taken_up) if adrift else planned
        missing = max(0, planned - taken_up) if number in lost or adrift else 0
        settled.append(Ledger(**{**_counts(ledger), "scheduled": scheduled_here, "lost": missing}))
    return tuple(settled)


def _counts(ledger: Ledger) -> dict[str, int]:
    return {name: count for name, count in ledger.to_json().items() if name != "in_flight"}


def _iso(unix_ns: int) -> str:
    return datetime.fromtimestamp(unix_ns / NS, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
