"""The report of a plan for users: the first line, the options side by side, and what they rest on. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import duration_text, metric_text, money_text, percent_text
from server_capacity.planning.users.remarks import ROUTINGS, option_of, replicas_text
from server_capacity.results.text.headline import between, rate_text
from server_capacity.results.types.bounds import Interval
from server_capacity.results.types.users_plan import PREFIX_AWARE, RANDOM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.users_plan import ReplicaOption, UsersPlan

_LIMIT_UNITS = {"users": " open conversations", "sessions": " conversations/s"}


def users_headline(plan: UsersPlan) -> str:
    """``14 replicas can serve 10,000 users in their busiest hour with random routing (9 with prefix-aware) ...``."""
    chosen, cost = plan.chosen, plan.cost
    kind = plan.endpoint.instance_type if plan.endpoint else None
    other = option_of(plan, PREFIX_AWARE if plan.routing == RANDOM else RANDOM)
    beside = f" ({other.replicas:,} with {ROUTINGS[other.routing]})" if other else ""
    how = f"with {ROUTINGS[plan.routing]} routing{beside}"
    if other is None and not plan.routing_given:
        how = "if each conversation stays on its replica" if chosen.replicas > 1 else ""
    what = f"{replicas_text(chosen.replicas)}{f' of {kind}' if kind else ''}"
    text = f"{what} can serve {plan.demand.users:,} users in their busiest hour {how}".rstrip()
    if cost is not None:
        text += f" for {money_text(cost.hour, cost.currency)}/h"
    open_ones = f" {'; '.join(plan.warnings)}." if plan.warnings else ""
    return f"{text}.{open_ones}"


def options_rows(plan: UsersPlan) -> Iterator[list[str]]:
    """A row for each share, with the replicas by each routing and the cost of the planned one."""
    routings = list(dict.fromkeys(each.routing for each in plan.options))
    priced = any(each.cost for each in plan.options)
    heads = [text for routing in routings for text in (ROUTINGS[routing], "with spare")]
    yield ["Run at", "share", *heads, *(["per hour", "per month"] if priced else [])]
    for share in sorted({each.share for each in plan.options}, reverse=True):
        row = {each.routing: each for each in plan.options if each.share == share}
        planned = row.get(plan.routing)
        first = next(iter(row.values()))
        mark = " ←" if share == plan.chosen.share else ""
        yield [
            first.name + mark,
            percent_text(share),
            *(text for routing in routings for text in _counts(row.get(routing))),
            *(_money(planned) if priced else []),
        ]


def _counts(option: ReplicaOption | None) -> tuple[str, str]:
    return ("-", "-") if option is None else (f"{option.replicas:,}", f"{option.with_spare:,}")


def _money(option: ReplicaOption | None) -> tuple[str, str]:
    cost = option.cost if option else None
    if cost is None:
        return "-", "-"
    return money_text(cost.hour, cost.currency), money_text(cost.month, cost.currency)


def sentences(plan: UsersPlan) -> Iterator[str]:
    """Everything below the table."""
    yield _demand(plan)
    yield _measured(plan)
    yield from plan.remarks
    yield from _engine(plan)
    yield from _costs(plan)


def _demand(plan: UsersPlan) -> str:
    demand = plan.demand
    per_day = metric_text(demand.conversations_per_day)
    turns = demand.turns and demand.users * demand.conversations_per_day * demand.turns
    of_turns = f" ({metric_text(turns)} turns)" if turns else ""
    return (
        f"{demand.users:,} users with {per_day} conversations a day{of_turns}, {metric_text(demand.peak_factor)} times "
        f"the average in the busiest hour: {metric_text(demand.peak_per_s)}/s begin then. Each takes "
        f"{duration_text(demand.length_s)} as measured, so {metric_text(demand.peak_open)} are open at a time "
        "(Little's law: arrivals x length)."
    )


def _measured(plan: UsersPlan) -> str:
    one, unit = plan.measured, _LIMIT_UNITS[plan.unit]
    counted = ("Measured on " if one.counted else "Taken as ") + replicas_text(one.measured_at)
    low = rate_text(one.low, None, unit)
    if one.high is None:
        return f"{counted}: each served {low}, and no limit was violated."
    interval = Interval(one.low, one.high)
    ends = between(interval, unit)
    rate = rate_text(one.rate, interval, unit)
    return f"{counted}: each meets {plan.limit or 'every limit'} up to {rate} (95%: {ends}). The plan uses {low}."


def _engine(plan: UsersPlan) -> Iterator[str]:
    comparison, engine = plan.comparison, plan.comparison.engine
    if engine is None:
        return
    prefill, step = (":".join(f"{each:.4g}" for each in values) for values in (engine.prefill_ms, engine.step_ms))
    yield (
        f"The simulated engine is fitted to the search's {engine.streams:,} streams (--prefill-ms={prefill} "
        f"--step-ms={step}). Simulated with {comparison.conversations:,} of the conversations, a replica meets "
        f"the limits up to {comparison.users:,} users."
    )


def _costs(plan: UsersPlan) -> Iterator[str]:
    cost, conversation, user = plan.cost, plan.cost_per_conversation, plan.cost_per_user_month
    if cost is None or conversation is None or user is None:
        return
    beside = ", ".join(filter(None, (cost.region, cost.source, cost.date)))
    of_one, of_user = money_text(conversation, cost.currency), money_text(user, cost.currency)
    yield (
        f"A conversation costs {of_one}, a user {of_user} per month, with {replicas_text(plan.chosen.replicas)} day "
        f"and night at {cost.price_per_hour:g} {cost.currency} per hour for {cost.instance_type} ({beside}); a month "
        "has 730 hours."
    )
