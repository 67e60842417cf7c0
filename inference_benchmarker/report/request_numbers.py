"""The numbers of requests in ``summary.json``: counts, times, rates, tokens and sessions. Pure."""

from dataclasses import dataclass, field

from inference_benchmarker.data.decoded import OMITTED
from inference_benchmarker.summary.sessions import SessionRates


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
    turns_unknown: int | None = field(default=None, metadata=OMITTED)
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
    """Rates; ``precision``: the share by which the completed one may be off, absent where it is exact.

    ``over_s``: the time that those sent and completed are over, where arrivals are sessions.
    """

    target: float | None
    scheduled: float | None
    sent: float
    completed: float
    server_rps: float
    precision: float | None = field(default=None, metadata=OMITTED)
    over_s: float | None = field(default=None, metadata=OMITTED)


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
    reusable_share: float | None = field(default=None, metadata=OMITTED)


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
    reusable_share: float | None = field(default=None, metadata=OMITTED)


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
