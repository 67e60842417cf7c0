"""The contradictions of a plan in itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import MISSED, OK, worst_exit_code
from server_capacity.results.agreement import HOURS_A_MONTH, SAME, between, like, needed
from server_capacity.results.users_plan_checks import users_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.plan import Choice, EndpointPlan, Option, PlanResult


def plan_problems(found: PlanResult) -> Iterator[str]:
    """Every contradiction of the plan in itself, as a sentence."""
    if found.users is not None:
        yield from users_problems(found, found.users)
        return
    if not found.endpoints and not found.refused:
        yield "it neither plans nor refuses an endpoint"
    for plan in found.endpoints:
        yield from _of_endpoint(plan)
        yield from _of_options(plan, found.spare)
    if found.endpoints and found.target_rps is not None:
        total = sum(plan.target_rps for plan in found.endpoints)
        if not like(total, found.target_rps):
            yield f"its endpoints serve {total:g}/s, but its target is {found.target_rps:g}/s"
    costs = [plan.cost.hour for plan in found.endpoints if plan.cost is not None]
    if found.cost is not None and len(costs) == len(found.endpoints) and not like(sum(costs), found.cost.hour):
        yield f"its endpoints cost {sum(costs):g} an hour, and all of it {found.cost.hour:g}"
    codes = [plan.exit_code for plan in found.endpoints if plan.exit_code is not None]
    if codes and len(codes) == len(found.endpoints):  # an older version inherited nothing
        code = worst_exit_code(MISSED if found.refused else OK, *codes)
        is_graver = worst_exit_code(found.exit_code, code) == found.exit_code
        if found.exit_code != code and not (is_graver and found.refused):  # the plan has no codes of those
            yield f"its exit code is {found.exit_code}, but what it is based on means {code}"
    elif found.exit_code == 0 and found.refused:
        yield "its exit code is 0, but endpoints were refused"


def _of_endpoint(plan: EndpointPlan) -> Iterator[str]:
    one, chosen = plan.per_instance, plan.chosen
    if one.high is not None:
        yield from between(f"the rate of {plan.name}", one.low, one.rate, one.high)
    if not chosen.minimum <= chosen.instances <= chosen.maximum:
        yield f"{plan.name} has {chosen.instances} instances, of {chosen.minimum} to {chosen.maximum}"
    if chosen.with_spare < chosen.instances:
        yield f"{plan.name} has {chosen.instances} instances, and {chosen.with_spare} with the spare ones"
    if plan.linear and chosen.instances * one.low * chosen.share < plan.target_rps * (1 - 1e-4):
        yield f"{chosen.instances} instances of {plan.name} do not hold {plan.target_rps:g}/s at {chosen.share:.0%}"
    if all(option.name != chosen.name or not like(option.share, chosen.share) for option in plan.options):
        yield f"what is chosen for {plan.name} is none of its options"
    if one.high is None and one.low > one.rate * (1 + SAME):
        yield f"the rate of {plan.name} is {one.rate:g}, below its lower end {one.low:g}"
    if plan.cost != chosen.cost:
        yield f"the cost of {plan.name} is not that of what is chosen"
    yield from _of_sources(plan)
    yield from _of_one_lost(plan)


def _of_sources(plan: EndpointPlan) -> Iterator[str]:
    """The rate of one instance follows from the search that it is of."""
    one = plan.per_instance
    for source in plan.capacities:
        if source.folder == plan.capacity and not like(source.low, one.low * one.measured_at):
            found = f"{source.low:g}/s on {one.measured_at}"
            yield f"an instance of {plan.name} serves {one.low:g}/s, but its search found {found}"


def _of_one_lost(plan: EndpointPlan) -> Iterator[str]:
    """The target on one instance fewer."""
    lost, target, low = plan.chosen.with_one_lost, plan.target_rps, plan.per_instance.low
    if lost.instances != plan.chosen.instances - 1:
        yield f"with one of {plan.chosen.instances} instances of {plan.name} lost there are {lost.instances}"
    if lost.rate_per_instance is not None and not like(lost.rate_per_instance * lost.instances, target):
        yield f"{lost.instances} instances of {plan.name} have {lost.rate_per_instance:g}/s each, of {target:g}/s"
    if plan.linear and lost.share_of_low is not None and not like(lost.share_of_low * low * lost.instances, target):
        yield f"{lost.instances} instances of {plan.name} have {lost.share_of_low:g} of the {low:g}/s that one holds"


def _of_options(plan: EndpointPlan, spare: int | None) -> Iterator[str]:
    """Each option has as many instances as its share needs and as may be lost, and costs what they do."""
    chosen, target = plan.chosen, plan.target_rps
    alone = next((option.instances for option in plan.options if option.share == 1), None)
    for option in plan.options:
        count = option.instances or 0
        if plan.linear and count and not needed(count, option.share * plan.per_instance.low, target):
            yield f"{count} instances of {plan.name} are not what {target:g}/s need at {option.name}"
        if count and alone and spare is not None and option.with_spare != max(count, alone + spare):
            yield f"{option.name} has {count} instances, {spare} to spare, and {option.with_spare} with them"
        if option.name == chosen.name and chosen.with_spare != max(option.with_spare or 0, chosen.instances):
            yield f"{chosen.with_spare} instances are chosen with the spare ones, not those of {option.name}"
        if option.name == chosen.name and chosen.instances != max(count, chosen.minimum):
            yield f"{chosen.instances} instances of {plan.name} are chosen, but {option.name} takes {count}"
    options: list[Option | Choice] = [*plan.options, chosen]
    for priced in options:
        cost = priced.cost
        if cost is None or cost.price_per_hour is None or priced.instances is None:
            continue
        if not like(cost.hour, cost.price_per_hour * priced.instances):
            yield f"{priced.instances} instances of {plan.name} cost {cost.hour:g} an hour, at {cost.price_per_hour:g}"
        if not like(cost.month, cost.hour * HOURS_A_MONTH):
            yield f"{plan.name} costs {cost.month:g} per month, but {cost.hour:g} per hour"
