"""The content of ``summary.json``: rates in requests/s, times in seconds. Pure.

A key that came later has a default: an older file lacks it.
"""

from dataclasses import dataclass, field
from typing import Any

from inference_benchmarker.data.decoded import OMITTED
from inference_benchmarker.facts.aborted import Aborted
from inference_benchmarker.facts.client_use import HostUse, ProcessUse, WorkerUse
from inference_benchmarker.facts.hosts import HostClock
from inference_benchmarker.facts.prompt_reuse import PromptReuse
from inference_benchmarker.facts.server_metric import ServerLog, ServerMetric
from inference_benchmarker.report.instance_numbers import Instances
from inference_benchmarker.report.request_numbers import (
    AllCounts,
    Attempts,
    GoodRequests,
    Kept,
    SessionNumbers,
    Times,
    TokenCounts,
    WaveRates,
    WaveWindow,
)
from inference_benchmarker.summary.recovery import Recovery
from inference_benchmarker.verdict.finding import Finding


@dataclass(frozen=True, slots=True)
class StageLimit:
    """A limit, compared with the requests of a stage."""

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
    ttft: Times | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Errors:
    """An error's key, how many requests failed with it, and examples of its text."""

    key: str
    count: int
    first_s: float
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Warmup:
    """The requests before the window, and the later turns of its sessions."""

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
    sent_in_window: int | None = field(default=None, metadata=OMITTED)
    answered_in_window: int | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the server's metrics show; ``lines``: of its log, where there are some."""

    code: str
    measured: str
    advice: str
    lines: list[str] | None = field(default=None, metadata=OMITTED)


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
    node: str | None = field(default=None, metadata=OMITTED)
    zone: str | None = field(default=None, metadata=OMITTED)
    instance_type: str | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Client:
    """The client's side: how many requests each worker could have in flight, and the use of its processes."""

    caps: list[int] = field(default_factory=list)
    workers: list[WorkerUse] = field(default_factory=list)
    host: HostUse | None = None
    processes: list[ProcessUse] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """All that is reported of a wave. ``files``: the digests of the other files of its run directory.

    ``judged_by``: the number of the rules that its verdict is by; without it, they are those of an earlier version.
    """

    schema_version: int
    name: str | None = None
    verdict: str
    exit_code: int
    judged_by: int | None = field(default=None, metadata=OMITTED)
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
    prompts: PromptReuse | None = None
    files: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
