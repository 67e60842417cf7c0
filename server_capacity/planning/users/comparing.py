"""Both routings compared on the engine of a search, or the reason why they cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.words.wording import percent_text
from server_capacity.planning.users.fitted import fitted
from server_capacity.planning.users.replica import TIMES, Replicas
from server_capacity.planning.users.routing import Routed, Routings, most_users
from server_capacity.planning.users.workload import sessions_in
from server_capacity.results.types.users_plan import PREFIX_AWARE, RoutingComparison
from server_capacity.search.limits import Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from server_capacity.planning.measured import Measured
    from server_capacity.planning.users.fitted import Fitted
    from server_capacity.planning.users.workload import Session
    from server_capacity.results.types.users_plan import FittedEngine, Routing

MEASURED = 600
"""Conversations of a simulation: with 2,000 turns the share over a p95 is known to within half a percent."""
LEAST_CONVERSATIONS = 30
NO_HITS = 0.01
"""The share of the input tokens below which it makes no difference where a conversation is continued."""
WHOLE, MOST_WHOLE = 0.9, 0.05
"""So much of a first turn in the cache is nearly all of it; of more conversations than so many that is to be said."""
AGREE = 1.25
"""The simulated capacity may be so many times beyond the interval that was measured."""


class Compared(NamedTuple):
    """``routings``: None where they are not simulated; ``equal``: nothing is cached, so there is no difference.

    ``remarks``: what the simulation rests on beyond what was measured.
    """

    comparison: RoutingComparison
    routings: Routings | None = None
    equal: bool = False
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waves:
    """The waves of a search: all of them, and those whose conversations are simulated."""

    every: Sequence[WaveFacts]
    at_low: Sequence[WaveFacts]


def hit_rate_of(search: Measured) -> float | None:
    """The share of the search's input tokens that the cache had at the lower end; None where nobody says."""
    at = search.data.sessions
    if at is None or at.cached_tokens_per_s is None or not at.input_tokens_per_s:
        return None
    return min(1.0, at.cached_tokens_per_s / at.input_tokens_per_s)


def compare(search: Measured, waves: Callable[[], Waves], kv_tokens: int | None) -> Compared:
    """Both routings; ``waves`` loads those of the search, and BenchmarkError from it is a reason not to compare."""
    hit_rate = hit_rate_of(search)
    if hit_rate is not None and hit_rate < NO_HITS:
        reason = f"the search found {percent_text(round(hit_rate, 4))} of its input tokens in the cache: there is none"
        return Compared(RoutingComparison(reason=f"{reason} to compare"), equal=True)
    limits = limits_on_times(search)
    if search.instances > 1:
        return _not_compared(f"{search.instances} replicas were searched together, and a simulation needs one alone")
    if not any(limit.expression == search.data.limit for limit in limits) and search.high is not None:
        return _not_compared(f"{search.data.limit or 'its limit'} is none that is simulated")
    try:
        loaded = waves()
        engine = fitted(loaded.every, kv_tokens)
    except BenchmarkError as error:
        return _not_compared(error.message.rstrip("."))
    return _simulated(search, limits, engine, _sessions(loaded.at_low), is_given=kv_tokens is not None)


def _not_compared(reason: str) -> Compared:
    return Compared(RoutingComparison(reason=reason))


def _sessions(waves: Sequence[WaveFacts]) -> list[Session]:
    return [session for wave in waves for part in wave.records.parts() for session in sessions_in(part)]


def limits_on_times(search: Measured) -> list[Limit]:
    """The limits of a search that a simulation has times of."""
    found = []
    for row in search.data.limits:
        try:
            limit = Limit.of(Slo.parse(row.expression), "latency")
        except BenchmarkError:  # of the server, of the user's own values, or none but to keep up
            continue
        if limit.metric in TIMES:
            found.append(limit)
    return found


def _simulated(
    search: Measured, limits: Sequence[Limit], engine: Fitted, sessions: Sequence[Session], *, is_given: bool
) -> Compared:
    if len(sessions) < LEAST_CONVERSATIONS:
        return _not_compared(f"{len(sessions)} whole conversations are known, of {LEAST_CONVERSATIONS} that it takes")
    longest = max(turn.prompt + turn.output for session in sessions for turn in session)
    if longest > engine.rules.longest:
        return _not_compared(f"a turn of {longest:,} tokens has no room in a KV cache of {engine.rules.kv_tokens:,}")

    def simulate(users: int, replicas: int, routing: Routing) -> Routed | None:
        aware = routing == PREFIX_AWARE
        fleet = Replicas(engine.rules, sessions, limits, way_s=engine.way_s, replicas=replicas, aware=aware)
        served = fleet.run(users, MEASURED)
        met = served.meets(limits)
        return Routed(users, served.sessions_per_s, served.hit_rate) if met else None

    in_users, open_at_low = search.data.in_ == "users", _open_at_low(search)
    alone = most_users(lambda users: simulate(users, 1, PREFIX_AWARE), round(open_at_low))
    if alone is None:
        return _not_compared("the engine fitted to its waves meets the limits with any number of users, or with none")
    size = alone.users if in_users else alone.sessions_per_s
    most = search.low if search.high is None else search.high
    if not search.low / AGREE <= size <= most * AGREE and not (search.high is None and size > most):
        found = f"{alone.users:,} users" if in_users else f"{size:.3g} conversations/s"
        return _not_compared(f"the engine fitted to its waves serves {found}, which disagrees with the search")
    comparison = RoutingComparison(engine=engine.engine, conversations=len(sessions), users=alone.users)
    remarks = tuple(_beyond(engine.engine, sessions, is_given=is_given))
    return Compared(comparison, Routings(simulate, alone, in_users), remarks=remarks)


def _open_at_low(search: Measured) -> float:
    at = search.data.sessions
    assert at is not None
    return search.low if search.data.in_ == "users" else search.low * (at.length_s or 1.0)


def _beyond(engine: FittedEngine, sessions: Sequence[Session], *, is_given: bool) -> Iterator[str]:
    """Sentences on what the simulation assumes beyond what was measured."""
    if not is_given:
        yield (
            f"The search does not measure a replica's KV cache: the simulation has {engine.kv_tokens:,} tokens of it "
            "(--kv-tokens)."
        )
    longest = max(turn.prompt for session in sessions for turn in session)
    if longest > engine.prompt:
        yield (
            f"With random routing a replica may compute prompts of up to {longest:,} tokens, and of no more than "
            f"{engine.prompt:,} in the search: beyond those the simulation extrapolates."
        )
    known = sum(session[0].cached >= WHOLE * session[0].prompt for session in sessions) / len(sessions)
    if known > MOST_WHOLE:
        yield (
            f"{percent_text(round(known, 3))} of the conversations found {WHOLE:.0%} or more of their first turn in "
            "the cache. If that is no prefix which they share, the search sent some of them twice, and the capacity "
            "is too high."
        )
