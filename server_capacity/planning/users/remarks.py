"""Sentences of a plan for users: the routing, the loss of a replica, and how far it goes beyond the search. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import metric_text, percent_text, pluralize
from server_capacity.planning.sizing import FAR
from server_capacity.planning.users.sizing import open_at_most
from server_capacity.results.types.users_plan import PREFIX_AWARE, RANDOM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.planning.measured import Measured
    from server_capacity.results.types.users_plan import ReplicaOption, Routing, UsersPlan

ROUTINGS: dict[Routing, str] = {PREFIX_AWARE: "prefix-aware", RANDOM: "random"}
UNITS = {"users": "open conversations", "sessions": "conversations/s"}


def replicas_text(count: int) -> str:
    """1 replica, 2 replicas."""
    return pluralize(count, "replica", "replicas")


def option_of(plan: UsersPlan, routing: Routing) -> ReplicaOption | None:
    """The option of this routing at the planned share; None where it is not known."""
    found = (each for each in plan.options if each.routing == routing and each.share == plan.chosen.share)
    return next(found, None)


def remarks(plan: UsersPlan, search: Measured) -> Iterator[str]:
    """Everything about the plan that its numbers do not say."""
    yield from _routing(plan)
    yield from _lost(plan)
    yield from _chance(plan, search)
    if plan.measured.high is None:
        yield (
            "No limit was violated in the search: the plan uses the highest load that was sent, and fewer replicas may "
            "suffice."
        )
    yield from search.caveats()
    if not plan.measured.counted:
        yield "The number of measured replicas is not known; one is assumed. Set it with --instances N."
    if plan.chosen.replicas > FAR * plan.measured.measured_at:
        yield (
            f"{plan.chosen.replicas:,} replicas are more than {FAR} times the {plan.measured.measured_at:,} measured, "
            "and nothing between the router and them was."
        )
    yield "Conversations are those of the search, with its turns, lengths and think times."


def _routing(plan: UsersPlan) -> Iterator[str]:
    """Both routings and the planned one, or the reason why they are not compared."""
    aware, spread = option_of(plan, PREFIX_AWARE), option_of(plan, RANDOM)
    reason = plan.comparison.reason
    if reason is not None and spread is None:
        yield f"Routing cannot be compared: {reason}."
        if plan.chosen.replicas > 1:
            yield (
                "So this plan holds only behind a router that continues each conversation on its replica: any other "
                "finds fewer prefixes in the cache, and may need more replicas."
            )
        return
    if reason is not None:
        yield f"Routing makes no difference: {reason}."
        return
    if aware is None or spread is None:
        yield "Behind random routing no number of replicas is enough."
        return
    yield _both(aware, spread, plan)
    yield from _planned(plan, aware, spread)


def _both(aware: ReplicaOption, spread: ReplicaOption, plan: UsersPlan) -> str:
    unit = UNITS[plan.unit]
    shares = [percent_text(round(each.hit_rate or 0.0, 3)) for each in (aware, spread)]
    values = [metric_text(each.per_replica) for each in (aware, spread)]
    return (
        f"Prefix-aware routing finds {shares[0]} of the input tokens in the cache, so each replica serves at least "
        f"{values[0]} {unit}. Random routing over {replicas_text(spread.replicas)} finds {shares[1]}, and each serves "
        f"at least {values[1]}. One replica alone serves {metric_text(plan.measured.low)}. Both routings are "
        "simulated, with load uneven by chance."
    )


def _planned(plan: UsersPlan, aware: ReplicaOption, spread: ReplicaOption) -> Iterator[str]:
    more = spread.replicas - aware.replicas
    if not more:
        yield f"Both need {replicas_text(aware.replicas)}."
    elif plan.routing == PREFIX_AWARE:
        yield f"The plan needs a router that is prefix-aware: with random routing it takes {replicas_text(more)} more."
    else:
        why = "" if plan.routing_given else ", since nothing says that the router is prefix-aware"
        yield (
            f"The plan is for random routing{why}. If the router continues each conversation on its replica "
            f"(--routing {PREFIX_AWARE}), it takes {replicas_text(more)} fewer."
        )


def _lost(plan: UsersPlan) -> Iterator[str]:
    lost = plan.lost
    if not lost.replicas:
        yield "Nothing is left if the only replica fails."
        return
    others = f"the other {lost.replicas:,} get" if lost.replicas > 1 else "the other one gets"
    load = f"{metric_text(lost.per_replica)} {UNITS[plan.unit]}{' each' if lost.replicas > 1 else ''}"
    if lost.holds:
        yield f"If one replica is lost, {others} {load}: the limit is still met."
    else:
        spare = replicas_text(plan.chosen.with_spare)
        yield f"If one replica is lost, {others} {load}, more than is certain to be served. {spare} would be enough."


def _chance(plan: UsersPlan, search: Measured) -> Iterator[str]:
    """The open conversations of a replica vary by chance, and what follows from that."""
    mean = plan.demand.peak_open / plan.chosen.replicas
    yield (
        f"Users come at random: a replica has {metric_text(mean)} open conversations on average in the busiest hour, "
        f"and up to {plan.open_at_most:,} in 95% of the time; it is certain to serve "
        f"{metric_text(_most_open(plan, plan.chosen))}{_room(plan, search)}."
    )


def _most_open(plan: UsersPlan, option: ReplicaOption) -> float:
    """The open conversations that each replica is certain to serve."""
    return option.per_replica * (1.0 if plan.unit == "users" else plan.demand.length_s)


def _room(plan: UsersPlan, search: Measured) -> str:
    """The end of the sentence: whether that leaves room for what comes by chance, or what would."""
    if plan.comparison.engine is not None and plan.chosen.replicas > 1:
        return " on average, with the uneven load that chance causes in the simulation"
    if plan.unit == "sessions" and search.data.arrivals != "constant":
        return " on average, since conversations of the search began at random, too"
    if plan.open_at_most <= _most_open(plan, plan.chosen):
        return ""
    return f". At times it has more than that and may miss the limit: {_with_room(plan)}"


def _with_room(plan: UsersPlan) -> str:
    """The option of this routing, with the largest use, that leaves room for chance."""
    options = [each for each in plan.options if each.routing == plan.routing and each.share < plan.chosen.share]
    for option in options:
        if open_at_most(plan.demand, option.replicas) <= _most_open(plan, option):
            return f"{replicas_text(option.replicas)} ({option.name}) would leave room"
    lowest = min(each.share for each in plan.options)
    return f"only --utilisation below {lowest:g} would leave room"
