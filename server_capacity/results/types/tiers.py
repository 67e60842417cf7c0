"""The capacities of several tiers of one endpoint: ``tiers.json``. Rates as ``in_`` says, times in seconds. Pure."""

from dataclasses import dataclass, field
from typing import Literal

from inference_benchmarker.data.decoded import OMITTED, named
from server_capacity.results.types.bounds import Ended, ExitCode, Interval, Rate, Seconds, Verdict, Version

Unit = Literal["rps", "users", "sessions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRow:
    """A tier; ``capacity``: the folder of its search, None where it was not searched, and ``headline`` says why.

    ``load_s``: the load that its answer was taken from, of which ``shared_s`` was sent for tiers before it; of that,
    ``shared_void_s`` counts for nothing. ``after_overload``: the limits were met again at lower rates only, between the
    ends of ``interval``, which is no 95% interval then.
    """

    tier: str
    limits: list[str] = field(default_factory=list)
    capacity: str | None = None
    outcome: str = ""
    headline: str = ""
    rate: Rate | None = None
    interval: Interval | None = None
    limit: str | None = None
    load_s: Seconds | None = None
    shared_s: Seconds | None = None
    shared_void_s: Seconds | None = field(default=None, metadata=OMITTED)
    after_overload: bool | None = field(default=None, metadata=OMITTED)
    ended: Ended | None = None
    confirmed: Verdict | None = None
    exit_code: ExitCode
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TiersResult:
    """All tiers in the order in which they were searched; the exit code is that of the gravest."""

    schema_version: Version
    created: str | None = None
    name: str | None = None
    in_: Unit = field(default="rps", metadata=named("in"))
    exit_code: ExitCode
    rows: list[TierRow]
    headline: str = ""
    built_on: dict[str, str] | None = field(default=None, metadata=OMITTED)
    digest: str | None = field(default=None, metadata=OMITTED)
