"""The limits that a capacity keeps: of each, the share of requests that may be over it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from inference_benchmarker.errors import BenchmarkError
from server_capacity.search.answer import Answer
from server_capacity.search.user_limits import UserLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.plan.slo import Slo, Turns
    from server_capacity.search.stretch import Stretch

REASON = "no request has the value that {} limits"
STREAMS = "; token times need a stream, that is, an invoke that yields"
OF_STREAMS = ("ttft", "itl", "tpot")
TURNS = ": sessions may have too few turns"
TIMES = ("response_time", "latency", "ttft", "itl", "tpot")
SESSION, SESSION_SUCCESS = "session", "session_success"
"""The time from a session's arrival to its last answer, and the share of sessions that are completed."""
IN_SESSIONS = "Search with --in sessions, or --in users, an endpoint with sessions: a session_factory or --turns."


@dataclass(frozen=True, slots=True)
class Limit:
    """At most a share of ``allowed`` may be over: of requests, of ``itl`` of gaps.

    ``expression``: as the user wrote it. ``metric``: one of ``TIMES``, ``success`` or ``goodput``; of sessions as units
    ``session`` or ``session_success``. ``bound_s``: the time that is kept (seconds), None of a share; ``strict``: a
    time that equals it is over, too. ``turns``: those of each session that it is on, None for all.
    """

    expression: str
    metric: str
    allowed: float
    bound_s: float | None = None
    strict: bool = True
    turns: Turns | None = None

    @classmethod
    def of(cls, slo: Slo, bare: str = "response_time") -> Limit:
        """The limit that an ``--slo`` is for a search; ``bare``: what a percentile of nothing named is of.

        Raises BenchmarkError for what a search cannot keep.
        """
        if slo.stat in ("success", "goodput"):
            metric = slo.metric if slo.is_on_sessions else slo.stat
            return cls(slo.expression, metric, float(1 - Decimal(str(slo.limit))), turns=slo.turns)
        metric = bare if slo.metric == "default" else slo.metric
        if slo.stage or slo.op not in ("<", "<=") or metric not in (*TIMES, SESSION) or slo.stat[0] != "p":
            raise BenchmarkError(
                f"--slo {slo.expression!r} is not a limit that a capacity can be searched for.",
                "Write a percentile of response_time, latency, ttft, itl or tpot (p99<200ms), or success>=0.99.",
            )
        return cls(slo.expression, metric, float(1 - Decimal(slo.stat[1:]) / 100), slo.limit, slo.op == "<", slo.turns)

    @property
    def is_on_sessions(self) -> bool:
        """Tells whether it limits whole sessions, and not requests."""
        return self.metric in (SESSION, SESSION_SUCCESS)


def limits_of(
    slos: Sequence[Slo], success_threshold: float, bare: str = "response_time", *, of_sessions: bool = False
) -> tuple[Limit, ...]:
    """All limits that a search steers by; the success threshold is one where no ``--slo`` names success.

    Those on values of the user's own are ``user_limits_of`` these. ``of_sessions``: arrivals are sessions, so limits
    may be on them and on some of their turns.
    """
    stray = next((slo for slo in slos if slo.is_on_sessions), None)
    if stray is not None and not of_sessions:
        raise BenchmarkError(f"--slo {stray.expression!r} is on sessions, and this search sends none.", IN_SESSIONS)
    limits = tuple(Limit.of(slo, bare) for slo in slos if not slo.is_on_user_metric)
    if any(limit.metric == "success" and limit.turns is None for limit in limits):
        return limits
    named = f"success>={success_threshold:g}"
    return (*limits, Limit(named, "success", float(1 - Decimal(str(success_threshold)))))


def user_limits_of(slos: Sequence[Slo]) -> tuple[UserLimit, ...]:
    """The limits on values of the user's own."""
    return tuple(UserLimit.of(slo) for slo in slos if slo.is_on_user_metric)


def unmeasured(limits: Sequence[Limit], stretches: Sequence[Stretch]) -> set[str]:
    """The expressions of limits that no request reports, although some were answered."""
    slices = [each for stretch in stretches for each in stretch.slices if each.answered]
    if not slices:
        return set()
    return {
        limit.expression
        for place, limit in enumerate(limits)
        if limit.bound_s is not None and not any(each.counts[place].of for each in slices)
    }


def held_against(limits: Sequence[Limit], stretches: Sequence[Stretch], found: Answer) -> Answer:
    """The answer, unless a limit was never measured: that was met nowhere, and may be violated before all others."""
    missing = unmeasured(limits, stretches)
    if not missing:
        return found
    estimates = tuple(
        replace(each, kept_everywhere=each.kept_everywhere and each.limit not in missing) for each in found.estimates
    )
    if found.outcome == "not_kept":
        return replace(found, estimates=estimates)
    first = next(limit for limit in limits if limit.expression in missing)
    return Answer("cannot_tell", reason=_reason(first), estimates=estimates)


def _reason(limit: Limit) -> str:
    turns = "" if limit.turns is None else TURNS
    return f"{REASON.format(limit.expression)}{turns}{STREAMS if limit.metric in OF_STREAMS else ''}"
