"""The answer of a search: ``capacity.json``. Rates in requests/s (or as ``in_`` says), times in seconds. Pure.

Keys that came later have a default, so that older files load; what a file does not have is None.
"""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED, named
from server_capacity.results.types.bounds import (
    Amount,
    CleanUp,
    Count,
    Ended,
    Endpoint,
    ExitCode,
    Interval,
    Rate,
    Seconds,
    Share,
    Suspended,
    Verdict,
    Version,
)
from server_capacity.results.types.search_waves import Confirmation, LimitRow, Payloads, Point, Soak, StretchRow
from server_capacity.results.types.server_side import Memory, Resources, Slower, WhereTimeWent
from server_capacity.results.types.twin import Twin

Outcome = Literal["found", "at_least", "client_limited", "not_kept", "cannot_tell", "interrupted"]


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The highest rate that was kept where none was found, and why no more is known."""

    rate: Rate
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Windows:
    """One-minute windows at the interval's lower end; ``windows`` 0: the share is predicted."""

    seconds: Seconds
    windows: Count = 0
    kept: Count = 0
    share: Share | None = None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """The requests of one label, or of one length."""

    name: str
    requests: Count = 0
    rate: Amount | None = None
    p99: Seconds | None = None
    share_over: list[Share | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PerRequest:
    """Tokens of a request on average, over the ``requests`` of which the server reported the output.

    ``output_sd``: the standard deviation of ``output``.
    """

    requests: Count = 0
    input: Amount | None = None
    cached: Amount | None = None
    output: Amount | None = None
    output_sd: Amount | None = None


@dataclass(frozen=True, slots=True)
class CanaryAnswer:
    """The answer to a fixed question that was asked before the search.

    ``text``: its first characters; None if the same question got two different texts, or none. ``characters``: its
    whole length.
    """

    text: str | None = None
    characters: Count | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Output at the answer: as measured, of sessions at the rate of turns that ``SessionsAt`` has."""

    tokens_per_s: Amount | None = None
    requests_per_s: Amount | None = None
    by_label: list[Kind] = field(default_factory=list)
    by_input_length: list[Kind] = field(default_factory=list)
    per_request: PerRequest | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Law:
    """X (R + Z) as ``n``, and that over the ``users`` that there were."""

    x: Amount
    r: Seconds
    z: Seconds
    n: Amount
    users: Count
    over: Amount


@dataclass(frozen=True, slots=True)
class Users:
    """A search in users."""

    users: Rate | None = None
    interval: Interval | None = None
    think: str = "0s"
    think_s: Seconds = 0.0
    response_s: Seconds | None = None
    law: Law | None = None


@dataclass(frozen=True, slots=True)
class SessionsAt:
    """The load in other units at the interval's lower end, and how long a session took while few were.

    ``open_sessions``: at a time, on average; ``alone_s``: the mean length then, ``length_s`` that at the lower end.
    ``begun_per_s``: sessions as they began in the wave there, of which random arrivals have more or fewer than
    ``sessions_per_s``; None where their number is fixed.
    """

    sessions_per_s: Amount | None = None
    open_sessions: Amount | None = None
    turns_per_s: Amount | None = None
    input_tokens_per_s: Amount | None = None
    output_tokens_per_s: Amount | None = None
    cached_tokens_per_s: Amount | None = None
    turns: Amount | None = None
    length_s: Seconds | None = None
    alone_s: Seconds | None = None
    begun_per_s: Amount | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, slots=True)
class Failed:
    """An error's key, and how many requests failed with it."""

    key: str
    count: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityResult:
    """The whole result of a search. ``ended``, ``confirmed`` and ``clean_up``: see ``results.standing``."""

    schema_version: Version
    created: str | None = None
    name: str | None = None
    endpoint: Endpoint | None = None
    in_: Literal["rps", "users", "sessions"] = field(default="rps", metadata=named("in"))
    outcome: Outcome
    exit_code: ExitCode
    rate: Rate | None = None
    limit: str | None = None
    at_least: AtLeast | None = None
    reason: str | None = None
    interval: Interval | None = None
    confidence: Share = 0.95
    arrivals: Literal["poisson", "constant"] | None = None
    cache: Literal["warm", "fresh", "as-is"] | None = None
    seed: int | None = None
    precision_asked: Amount | None = None
    time_asked_s: Seconds | None = None
    load_s: Seconds | None = None
    void_s: Seconds | None = None
    shared_s: Seconds | None = field(default=None, metadata=OMITTED)
    shared_void_s: Seconds | None = field(default=None, metadata=OMITTED)
    workers: Count | None = None
    limits: list[LimitRow] = field(default_factory=list)
    curve: list[Point] | None = None
    stretches: list[StretchRow] | None = None
    islands: list[Interval] = field(default_factory=list)
    memory: Memory | None = None
    slower: Slower | None = None
    windows: Windows | None = None
    resources: Resources | None = None
    where_time_went: WhereTimeWent | None = None
    tokens: Tokens | None = None
    canaries: list[CanaryAnswer] | None = field(default=None, metadata=OMITTED)
    payloads: Payloads | None = None
    errors: list[Failed] | None = None
    failures: list[str] | None = None
    waves: dict[str, list[str]] | None = None
    confirmation: list[Confirmation] | None = None
    twin: Twin | None = None
    users: Users | None = None
    sessions: SessionsAt | None = field(default=None, metadata=OMITTED)
    suspended: Suspended | None = None
    own_waits: str | None = None
    warnings: list[str] | None = field(default=None, metadata=OMITTED)
    soak: Soak | None = None
    ended: Ended | None = None
    confirmed: Verdict | None = None
    headline: str = ""
    pending: bool | None = field(default=None, metadata=OMITTED)
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
    clean_up: CleanUp | None = field(default=None, metadata=OMITTED)
