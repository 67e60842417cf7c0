"""The codec of stored results: decodes each kind, and holds what it tells against itself. Pure.

A function for each kind gives its type; ValueError, with a sentence, for a value out of its bounds or a contradiction.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from inference_benchmarker.data.decoded import decoded
from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK, worst_exit_code
from inference_benchmarker.plan.slo import Slo
from server_capacity.results.types.standing import inherited, standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from server_capacity.results.types.capacity import CapacityResult, LimitRow, Side, Slower, Windows
    from server_capacity.results.types.plan import Choice, EndpointPlan, Option, PlanResult
    from server_capacity.results.types.proof import ProofResult, ProvenLimit
    from server_capacity.results.types.ranking import RankedRow, RankingResult

_SAME, _ROUNDED = 1e-6, 1e-4
_HOURS_A_MONTH = 730
_MOST = 0.5
_COUNTS = ("instances", "instance_count")
_CODES_OF = {
    "found": {OK},
    "at_least": {OK, MISSED},
    "not_kept": {MISSED},
    "cannot_tell": {MISSED},
    "client_limited": {INVALID},
    "interrupted": {INTERRUPTED},
}
"""The exit codes of the outcomes of a search, but for what it left behind."""
_FEW = 50
_OFFERED = 1.01
"""What an answer may be above the highest rate that was offered: a wave offers a rate to four digits."""


def check_capacity(data: Mapping[str, Any]) -> CapacityResult:
    """The object of ``capacity.json``."""
    from server_capacity.results.types.capacity import CapacityResult

    found = decoded(data, CapacityResult)
    _require(_of_capacity(found))
    return found


def check_ranking(data: Mapping[str, Any]) -> RankingResult:
    """The object of ``ranking.json``."""
    from server_capacity.results.types.ranking import RankingResult

    found = decoded(data, RankingResult)
    _require(_of_ranking(found))
    return found


def check_plan(data: Mapping[str, Any]) -> PlanResult:
    """The object of ``fleet_plan.json``."""
    from server_capacity.results.types.plan import PlanResult

    found = decoded(data, PlanResult)
    _require(_of_plan(found))
    return found


def check_proof(data: Mapping[str, Any]) -> ProofResult:
    """The object of ``proof.json``."""
    from server_capacity.results.types.proof import ProofResult

    found = decoded(data, ProofResult)
    _require(_of_proof(found))
    return found


def _require(problems: Iterator[str]) -> None:
    problem = next(problems, None)
    if problem is not None:
        raise ValueError(problem)


def _like(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=1e-9)


def _between(name: str, low: float, rate: float | None, high: float) -> Iterator[str]:
    if low > high:
        yield f"the interval of {name} goes from {low:g} to {high:g}"
    elif rate is not None and not low * (1 - _SAME) <= rate <= high * (1 + _SAME):
        yield f"{name} is {rate:g}, outside of its interval from {low:g} to {high:g}"


def _of_capacity(found: CapacityResult) -> Iterator[str]:
    if found.interval is not None:
        yield from _between("rate", found.interval.low, found.rate, found.interval.high)
    for row in found.limits:
        if row.interval is not None:
            yield from _between(f"the rate of {row.expression}", row.interval.low, row.rate, row.interval.high)
    if found.outcome == "found" and (found.rate is None or found.interval is None):
        yield "its outcome is found, but it has no rate"
    if found.outcome == "found" and found.rate == 0:
        yield "a rate of 0 was found"
    if found.outcome == "at_least" and found.at_least is None:
        yield "its outcome is at_least, but it has no rate"
    yield from _codes(found)
    yield from _counts(found)
    yield from _of_windows(found.windows)
    yield from _of_slower(found.slower)
    if found.memory is not None:
        yield from _of_side("the rate from below", found.memory.below)
        yield from _of_side("the rate from above", found.memory.above)
    yield from _kept_nowhere(found)


def _codes(found: CapacityResult) -> Iterator[str]:
    """The exit code agrees with the outcome, and with what was broken or left behind."""
    good = found.outcome in ("found", "at_least") and found.ended in (None, "complete") and found.clean_up != "failed"
    if found.exit_code == 0 and not good:
        yield f"its exit code is 0, but its outcome is {found.outcome.replace('_', ' ')}"
    if (found.exit_code == 130) != (found.outcome == "interrupted") and found.clean_up != "failed":
        yield f"its exit code is {found.exit_code}, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.confirmed is not None and (not found.confirmation or found.confirmation[-1].verdict != found.confirmed):
        yield "its confirmation differs from that of its last wave"
    yield from _own_code(found)
    yield from _at_low(found)
    for row in found.limits:
        yield from _of_limit(row)


def _own_code(found: CapacityResult) -> Iterator[str]:
    """The exit code is that of the outcome and of what was left behind: an earlier version told no more of its end."""
    if found.ended is None:
        return
    codes = {standing(replace(found, exit_code=code)).exit_code for code in _CODES_OF[found.outcome]}
    if found.exit_code not in codes and found.exit_code != 0:  # which was told already
        meant = " or ".join(map(str, sorted(codes)))
        yield f"its exit code is {found.exit_code}, but its answer means {meant}"


def _of_limit(row: LimitRow) -> Iterator[str]:
    """The bound of a limit, and the share that may be over it, are those that its expression has."""
    slo = Slo.read(row.expression)
    if isinstance(slo, str):  # of a server's metric, of a value of the user's own, or of nothing that gave out
        return
    bound = None if slo.stat in ("success", "goodput") else slo.limit
    allowed = 1 - slo.limit if bound is None else 1 - float(slo.stat[1:]) / 100 if slo.stat[1].isdigit() else None
    for told, meant in ((row.bound, bound), (row.allowed, allowed)):
        if told is not None and meant is not None and not _like(told, meant):
            yield f"{row.expression} is told with {told:g}, and has {meant:g}"


def _at_low(found: CapacityResult) -> Iterator[str]:
    """The values at the lower end are those of the last wave there that nothing spoilt."""
    waves = [each for each in found.confirmation or [] if not each.spoilt]
    told = {row.expression: row.value for row in waves[-1].limits} if waves else {}
    for row in found.limits:
        value = told.get(row.expression)
        if value is not None and row.at_low is not None and not _like(value, row.at_low):
            yield f"{row.expression} was {value:g} in the wave at the lower end, and is told as {row.at_low:g}"


def _counts(found: CapacityResult) -> Iterator[str]:
    stretches = found.stretches or []
    for each in stretches:
        if each.end_s < each.start_s or each.failed > each.answered:
            yield f"stretch {each.number} ends before it begins, or has more failures than answers"
        if each.answered > each.sent:
            yield f"stretch {each.number} has {each.answered:,} answers to {each.sent:,} requests"
        expected = each.rate * (each.end_s - each.start_s)
        if found.in_ == "rps" and not each.void and not expected / 2 - _FEW <= each.sent <= 2 * expected + _FEW:
            yield f"stretch {each.number} sent {each.sent:,} requests, but its rate and time give {expected:,.0f}"
    rates = [each.rate for each in stretches] + [each.rate for each in found.confirmation or []]
    told = found.at_least.rate if found.at_least else found.rate
    if not stretches and found.interval is not None:  # it is confirmed at its lower end
        told = found.interval.low
    if rates and told is not None and told > _OFFERED * max(rates):
        yield f"it tells of {told:g}, and the highest rate that was tried is {max(rates):g}"


def _of_windows(windows: Windows | None) -> Iterator[str]:
    """The share of windows that were counted is that of those that kept the limits."""
    if windows is None:
        return
    if windows.kept > windows.windows:
        yield f"{windows.kept} of {windows.windows} windows kept the limits"
    elif windows.windows and windows.share is not None and not _like(windows.share, windows.kept / windows.windows):
        yield f"{windows.kept} of {windows.windows} windows kept the limits, and their share is {windows.share:g}"
    if windows.interval is not None:
        yield from _between("the share of windows", windows.interval.low, windows.share, windows.interval.high)


def _of_slower(slower: Slower | None) -> Iterator[str]:
    """An endpoint that got slower went well first, and not any more after that."""
    if slower is None:
        return
    before, after = slower.before, slower.after
    if before.start_s >= after.start_s:
        yield f"it was slower at {after.start_s:g} s than later, at {before.start_s:g} s"
    if before.mean_s is not None and after.mean_s is not None:
        if before.mean_s >= after.mean_s:
            yield f"it got slower, but answers took no longer: {after.mean_s:g} s after {before.mean_s:g} s"
    elif before.share >= after.share:
        yield f"it got slower, but the share over the limit did not rise: {after.share:g} after {before.share:g}"
    yield from _of_side("the early rate", slower.early)


def _of_side(name: str, side: Side) -> Iterator[str]:
    if side.interval is not None:
        yield from _between(name, side.interval.low, side.rate, side.interval.high)


def _kept_nowhere(found: CapacityResult) -> Iterator[str]:
    """A limit that most requests of every stretch were over is kept at no rate.

    A share nearer to what is allowed tells nothing: an answer may lie between rates, and a stretch may be short.
    """
    if found.outcome not in ("found", "at_least"):
        return
    counting = [each for each in found.stretches or [] if not each.void]
    for place, limit in enumerate(found.limits):
        told = [each.share_over[place] for each in counting if place < len(each.share_over)]
        over = [share for share in told if share is not None]
        if limit.allowed is not None and over and min(over) > max(limit.allowed, _MOST):
            yield f"its outcome is {found.outcome.replace('_', ' ')}, and every stretch is over {limit.expression}"


def _of_ranking(found: RankingResult) -> Iterator[str]:
    ranked = [row for row in found.rows if row.rank is not None]
    if found.rows[: len(ranked)] != ranked:
        yield "rows without a rank come before ranked ones"
    ranks = [row.rank or 0 for row in ranked]
    if ranks != sorted(ranks):
        yield "its rows are not ordered by rank"
    for place, row in enumerate(ranked, 1):
        if row.rank is not None and row.rank > place:
            yield f"row {place} has rank {row.rank}"
        if any(other == place or other > len(ranked) for other in row.tied_with):
            yield f"row {place} ties with a row that does not exist"
        if row.score is None or row.rate is None or row.instances is None:
            yield f"row {place} has a rank but no score or rate"
        if not row.capacity:
            yield f"row {place} has a rank but no search"
        yield from _of_row(row, place)
        yield from _of_target(row, place, found)
    if found.exit_code == 0 and any(row.exit_code for row in ranked):
        yield "its exit code is 0, but a search that it is built on has another one"


def _of_row(row: RankedRow, place: int) -> Iterator[str]:
    if row.interval is not None:
        yield from _between(f"the rate of row {place}", row.interval.low, row.rate, row.interval.high)
    hour = None if row.price is None else row.price.per_hour * (row.instances_for_target or 1)
    if row.cost_hour is not None and hour is not None and not _like(row.cost_hour, hour):
        yield f"row {place} costs {row.cost_hour:g} per hour, but its instances cost {hour:g}"
    if (
        row.cost_hour is not None
        and row.cost_month is not None
        and not _like(row.cost_month, row.cost_hour * _HOURS_A_MONTH)
    ):
        yield f"row {place} costs {row.cost_month:g} per month, but {row.cost_hour:g} per hour"


def _of_target(row: RankedRow, place: int, found: RankingResult) -> Iterator[str]:
    """The instances for the target follow from the lower end."""
    low = row.rate if row.interval is None else row.interval.low
    if found.target_rps is None or row.instances_for_target is None or not low or row.instances is None:
        return
    if not _needed(row.instances_for_target, low / row.instances * found.utilisation, found.target_rps):
        yield f"row {place} takes {row.instances_for_target} instances, which are not what {found.target_rps:g}/s need"


def _of_plan(found: PlanResult) -> Iterator[str]:
    if not found.endpoints and not found.refused:
        yield "it neither plans nor refuses an endpoint"
    for plan in found.endpoints:
        yield from _of_endpoint(plan)
        yield from _of_options(plan, found.spare)
    if found.endpoints and found.target_rps is not None:
        total = sum(plan.target_rps for plan in found.endpoints)
        if not _like(total, found.target_rps):
            yield f"its endpoints serve {total:g}/s, but its target is {found.target_rps:g}/s"
    costs = [plan.cost.hour for plan in found.endpoints if plan.cost is not None]
    if found.cost is not None and len(costs) == len(found.endpoints) and not _like(sum(costs), found.cost.hour):
        yield f"its endpoints cost {sum(costs):g} an hour, and all of it {found.cost.hour:g}"
    codes = [plan.exit_code for plan in found.endpoints if plan.exit_code is not None]
    if codes and len(codes) == len(found.endpoints):  # an older version inherited nothing
        code = worst_exit_code(MISSED if found.refused else OK, *codes)
        if found.exit_code != code:
            yield f"its exit code is {found.exit_code}, but what it is based on means {code}"
    elif found.exit_code == 0 and found.refused:
        yield "its exit code is 0, but endpoints were refused"


def _of_endpoint(plan: EndpointPlan) -> Iterator[str]:
    one, chosen = plan.per_instance, plan.chosen
    if one.high is not None:
        yield from _between(f"the rate of {plan.name}", one.low, one.rate, one.high)
    if not chosen.minimum <= chosen.instances <= chosen.maximum:
        yield f"{plan.name} has {chosen.instances} instances, of {chosen.minimum} to {chosen.maximum}"
    if chosen.with_spare < chosen.instances:
        yield f"{plan.name} has {chosen.instances} instances, and {chosen.with_spare} with the spare ones"
    if plan.linear and chosen.instances * one.low * chosen.share < plan.target_rps * (1 - 1e-4):
        yield f"{chosen.instances} instances of {plan.name} do not hold {plan.target_rps:g}/s at {chosen.share:.0%}"
    if all(option.name != chosen.name or not _like(option.share, chosen.share) for option in plan.options):
        yield f"what is chosen for {plan.name} is none of its options"
    if one.high is None and one.low > one.rate * (1 + _SAME):
        yield f"the rate of {plan.name} is {one.rate:g}, below its lower end {one.low:g}"
    if plan.cost != chosen.cost:
        yield f"the cost of {plan.name} is not that of what is chosen"
    yield from _of_sources(plan)
    yield from _of_one_lost(plan)


def _of_sources(plan: EndpointPlan) -> Iterator[str]:
    """The rate of one instance follows from the search that it is of."""
    one = plan.per_instance
    for source in plan.capacities:
        if source.folder == plan.capacity and not _like(source.low, one.low * one.measured_at):
            found = f"{source.low:g}/s on {one.measured_at}"
            yield f"an instance of {plan.name} serves {one.low:g}/s, but its search found {found}"


def _of_one_lost(plan: EndpointPlan) -> Iterator[str]:
    """The target on one instance fewer."""
    lost, target, low = plan.chosen.with_one_lost, plan.target_rps, plan.per_instance.low
    if lost.instances != plan.chosen.instances - 1:
        yield f"with one of {plan.chosen.instances} instances of {plan.name} lost there are {lost.instances}"
    if lost.rate_per_instance is not None and not _like(lost.rate_per_instance * lost.instances, target):
        yield f"{lost.instances} instances of {plan.name} have {lost.rate_per_instance:g}/s each, of {target:g}/s"
    if plan.linear and lost.share_of_low is not None and not _like(lost.share_of_low * low * lost.instances, target):
        yield f"{lost.instances} instances of {plan.name} have {lost.share_of_low:g} of the {low:g}/s that one holds"


def _of_options(plan: EndpointPlan, spare: int | None) -> Iterator[str]:
    """Each option has as many instances as its share needs and as may be lost, and costs what they do."""
    chosen, target = plan.chosen, plan.target_rps
    alone = next((option.instances for option in plan.options if option.share == 1), None)
    for option in plan.options:
        count = option.instances or 0
        if plan.linear and count and not _needed(count, option.share * plan.per_instance.low, target):
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
        if not _like(cost.hour, cost.price_per_hour * priced.instances):
            yield f"{priced.instances} instances of {plan.name} cost {cost.hour:g} an hour, at {cost.price_per_hour:g}"
        if not _like(cost.month, cost.hour * _HOURS_A_MONTH):
            yield f"{plan.name} costs {cost.month:g} per month, but {cost.hour:g} per hour"


def _needed(instances: int, each: float, target: float) -> bool:
    """Tells whether so many hold the target, and one fewer does not, where one holds so much."""
    return instances * each >= target * (1 - _ROUNDED) and (instances - 1) * each <= target * (1 + _ROUNDED)


def _of_proof(found: ProofResult) -> Iterator[str]:
    if found.exit_code == 0 and found.outcome != "holds":
        yield f"its exit code is 0, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.exit_code == INTERRUPTED and found.outcome != "interrupted" and found.plan_exit_code != INTERRUPTED:
        yield f"its exit code is 130, but its outcome is {found.outcome.replace('_', ' ')}"
    if found.outcome == "holds" and found.ended_early is not None:
        yield "its outcome is holds, but it ended early"
    own = (MISSED, INVALID) if found.reason else (MISSED,)
    bases = {"holds": (OK,), "fails": (MISSED,), "interrupted": (INTERRUPTED,)}.get(found.outcome, own)
    codes = {inherited(replace(found, exit_code=base)) for base in bases}
    if found.plan_exit_code is not None and found.exit_code not in codes:  # an older version inherited nothing
        code = " or ".join(map(str, sorted(codes)))
        yield f"its exit code is {found.exit_code}, but its plan or what it left behind means {code}"
    if found.outcome == "holds" and any(row.verdict != "holds" for row in found.limits):
        yield "its outcome is holds, but a limit is violated"
    if found.outcome == "holds" and found.backlog:
        yield f"its outcome is holds, but {found.backlog:,} requests were left at the end"
    yield from _of_fleet(found)
    for row in found.limits:
        yield from _of_proven(row)
        if row.interval is not None:
            yield from _between(f"the share over {row.expression}", row.interval.low, None, row.interval.high)


def _of_fleet(found: ProofResult) -> Iterator[str]:
    """The instances are as many as its endpoint had, or was made with."""
    endpoint = found.endpoint
    if endpoint is None:
        return
    arguments = endpoint.arguments or {}
    for told in (endpoint.instances, *(arguments.get(name) for name in _COUNTS)):
        if isinstance(told, int) and told != found.instances:
            yield f"it is for {found.instances} instances, but its endpoint had {told}"


def _of_proven(row: ProvenLimit) -> Iterator[str]:
    """The share over a limit agrees with its verdict, and lies in its interval."""
    if row.share_over is None or row.allowed is None:
        return
    if row.verdict == "holds" and row.share_over > row.allowed + _SAME:
        yield f"{row.expression} is met, but {row.share_over:g} are over it, and {row.allowed:g} may be"
    if row.verdict == "fails" and row.share_over <= row.allowed:
        yield f"{row.expression} is violated, but {row.share_over:g} are over it, and {row.allowed:g} may be"
    if row.interval is not None:
        yield from _between(f"the share over {row.expression}", row.interval.low, row.share_over, row.interval.high)
