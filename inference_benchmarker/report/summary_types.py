"""The content of ``summary.json``: rates in requests/s, times in seconds. Pure.

A key that came later has a default: an older file lacks it.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from inference_benchmarker.data.decoded import OMITTED
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.hosts import HostClock
from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
from inference_benchmarker.summary.recovery import Recovery
from inference_benchmarker.summary.sessions import SessionRates
from inference_benchmarker.verdict.finding import Finding


@dataclass(frozen=True, slots=True)
class Times:
    """A distribution; ``precision``: the share that its percentiles may be off, absent where they are exact."""

    count: int
    mean: float
    stdev: float | None
    min: float
    p50: float
    p90: float
    p95: float
    p99: float
    p99_9: float
    max: float
    lower_bound_from: float | None
    precision: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class WaveWindow:
    """Wall-clock start and end (UTC), and the lengths."""

    start: str
    end: str
    start_unix_ns: int
    t0_monotonic_ns: int
    planned_s: float | None
    duration_s: float
    stopped_at_s: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """Arrivals (scheduled, dropped, lost) and requests; ``repeated``: those that were not an arrival's first."""

    scheduled: int
    sent: int
    dropped: int
    lost: int
    ok: int
    failed: int
    abandoned: int
    late_changes: int = 0
    repeated: int = 0
    later_turns: int | None = field(default=None, metadata=OMITTED)
    dropped_turns: int | None = field(default=None, metadata=OMITTED)
    not_begun: int | None = field(default=None, metadata=OMITTED)
    sessions_completed: int | None = field(default=None, metadata=OMITTED)
    sessions_failed: int | None = field(default=None, metadata=OMITTED)
    sessions_raised: int | None = field(default=None, metadata=OMITTED)
    in_flight: int = 0


@dataclass(frozen=True, slots=True)
class AllCounts(Counts):
    """Those of the wave, and of each worker."""

    workers: list[Counts] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows of ``requests.parquet``, and what is not known for want of the others."""

    kept: str
    rows: int
    not_told: list[str]


@dataclass(frozen=True, slots=True)
class WaveRates:
    """Rates; ``precision``: the share by which the completed one may be off, absent where it is exact."""

    target: float | None
    scheduled: float | None
    sent: float
    completed: float
    server_rps: float
    precision: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of the ok requests."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_in_per_s: float | None
    tokens_out_per_s: float | None
    counted: str | None
    tokens_in_per_request: Times | None
    tokens_out_per_request: Times | None
    tokens_out_per_s_per_request: Times | None


@dataclass(frozen=True, slots=True)
class GoodputLimit:
    """A limit, and the share of the sent that met it."""

    limit: str
    share: float | None


@dataclass(frozen=True, slots=True)
class GoodRequests:
    """Requests that met every limit."""

    rate: float | None
    share: float | None
    limits: list[GoodputLimit]


@dataclass(frozen=True, slots=True)
class Turn:
    """The requests of one turn, or with ``and_later`` of it and all that follow."""

    turn: int
    and_later: bool
    sent: int
    ok: int
    failed: int
    context_tokens: float | None
    cached_share: float | None
    latency: Times | None
    ttft: Times | None


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """All times of the requests of some turns."""

    sent: int
    latency: Times | None
    response_time: Times | None
    failed_latency: Times | None
    lag: Times | None
    build: Times | None
    ttft: Times | None
    itl: Times | None
    tpot: Times | None


@dataclass(frozen=True, slots=True)
class SessionNumbers:
    """Sessions; of those of the wave all times of the first turns, the later ones, and those that a limit names."""

    started: int
    completed: int
    failed: int
    raised: int
    open: int
    success: float | None
    good: int | None
    rates: SessionRates
    duration: Times | None
    turns_a_session: Times | None
    by_turn: list[Turn]
    of_turns: dict[str, TurnTimes] | None = field(default=None, metadata=OMITTED)
    cached_share: float | None = field(default=None, metadata=OMITTED)
    recorded_reuse: float | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Attempts:
    """Arrivals and the requests of clients that try again."""

    arrivals: int
    requests: int
    repeated: int
    attempts_per_arrival: float
    by_attempts: list[int]
    success_by_user: float
    user_time: Times | None


@dataclass(frozen=True, slots=True)
class StageLimit:
    """A limit, held against the requests of a stage."""

    expression: str
    measured: float | None
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage of a schedule, and what became of its arrivals."""

    name: str
    start_s: float
    end_s: float
    from_rps: float
    to_rps: float
    planned: int
    sent: int
    ok: int
    failed: int
    abandoned: int
    success_rate: float | None
    completed_rate: float
    latency: Times | None
    response_time: Times | None
    in_flight_end: int
    sessions: SessionNumbers | None = None
    repeats: Attempts | None
    recovery: Recovery | None
    goodput: GoodRequests | None
    slos: list[StageLimit]
    slos_met_share: float | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """The requests of one label."""

    label: str
    sent: int
    ok: int
    failed: int
    latency: Times | None
    response_time: Times | None


@dataclass(frozen=True, slots=True)
class Errors:
    """An error's key, how many requests failed with it, and examples of its text."""

    key: str
    count: int
    first_s: float
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Warmup:
    """The requests before the window."""

    planned_s: float | None
    sent: int
    ok: int
    failed: int
    abandoned: int
    rate: float
    latency: Times | None = None
    response_time: Times | None = None
    failed_latency: Times | None = None
    lag: Times | None = None
    build: Times | None = None
    ttft: Times | None = None
    itl: Times | None = None
    tpot: Times | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the server's metrics tell; ``lines``: of its log, where there are some."""

    code: str
    measured: str
    advice: str
    lines: list[str] | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """A line of the table of events; ``since_s``: after the rise of the load that it answers, where it answers one."""

    at_s: float
    kind: Literal["load", "alarm", "asked", "served", "failed"]
    text: str
    since_s: float | None = None


@dataclass(frozen=True, slots=True)
class InstanceStep:
    """The instances from an instant on: ``current`` serve, ``desired`` are requested."""

    at_s: float
    current: float
    desired: float | None
    status: str | None


@dataclass(frozen=True, slots=True)
class FollowedInstances:
    """The instances of one variant or query; ``changes`` from one number to another, and when they happened."""

    of: str
    source: str
    steps: list[InstanceStep]
    changes: list[dict[str, float | None]]
    events: list[InstanceEvent]
    remarks: list[str]


@dataclass(frozen=True, slots=True)
class LimitsMissed:
    """The ``spans`` in which limits were missed, each stretch of ``step_s`` judged by itself."""

    limits: list[str]
    seconds: float
    step_s: float
    spans: list[tuple[float, float]]
    failed: int


@dataclass(frozen=True, slots=True)
class Instances:
    """The server's instances while the wave ran, and when limits were missed meanwhile."""

    followed: list[FollowedInstances]
    limits_missed: LimitsMissed | None


@dataclass(frozen=True, slots=True)
class HostPart:
    """A host that sent a part of the load, and what was computed of its requests."""

    name: str
    workers: list[int]
    versions: dict[str, str]
    use: HostUse | None
    clock: HostClock | None
    lost: str | None
    sent: int
    lag: Times | None
    latency: Times | None
    cpu: float | None
    steal: float | None


@dataclass(frozen=True, slots=True)
class Client:
    """The client's side: how many requests each worker could have in flight, and the use of its processes."""

    caps: list[int] = field(default_factory=list)
    workers: list[WorkerUse] = field(default_factory=list)
    host: HostUse | None = None
    processes: list[ProcessUse] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """All that is told of a wave. ``files``: the digests of the other files of its run directory."""

    schema_version: int
    name: str | None = None
    verdict: str
    exit_code: int
    interrupted: bool
    limited_by: str | None = None
    findings: list[Finding] = field(default_factory=list)
    records: Kept | None = None
    window: WaveWindow
    environment: dict[str, Any]
    ledger: AllCounts
    lost_workers: list[int]
    primary_lost: bool
    disk_error: str | None
    loopback_down_s: float | None = None
    aborted: Aborted | None = None
    left_behind: list[str] = field(default_factory=list)
    foreign_connections: int = 0
    success_rate: float | None = None
    rates: WaveRates | None = None
    latency: Times | None = None
    response_time: Times | None = None
    failed_latency: Times | None = None
    lag: Times | None = None
    build: Times | None = None
    ttft: Times | None = None
    itl: Times | None = None
    tpot: Times | None = None
    metrics: dict[str, Times] = field(default_factory=dict)
    tokens: TokenCounts | None = None
    goodput: GoodRequests | None = None
    sessions: SessionNumbers | None = None
    repeats: Attempts | None = None
    stages: list[Stage] | None = None
    labels: list[Labelled] = field(default_factory=list)
    errors: list[Errors]
    finish_reasons: dict[str, int] | None = None
    warmup: Warmup | None = None
    server_metrics: list[ServerMetric] | None = None
    server_logs: list[ServerLog] | None = None
    instances: Instances | None = None
    diagnosis: list[Remark] = field(default_factory=list)
    hosts: list[HostPart] | None = None
    calibration: dict[str, Any] | None = None
    client: Client
    files: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
