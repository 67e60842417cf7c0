"""A whole plan: its endpoints, what they cost together, and its first line. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import OK, worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.wording import metric_text, money_text
from server_capacity.planning.remarks import instances_text, missed_text
from server_capacity.planning.users.text import users_headline
from server_capacity.results.types.axes import label_of
from server_capacity.results.types.bounds import Cost
from server_capacity.results.types.plan import PlanResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.planning.measured import Refused
    from server_capacity.results.types.bounds import Quota
    from server_capacity.results.types.plan import Choice, EndpointPlan


def content(
    endpoints: Sequence[EndpointPlan],
    refused: Sequence[Refused],
    *,
    created: str,
    utilisation: float,
    spare: int,
    quota: list[Quota] | None = None,
    priced: Sequence[str] = (),
) -> PlanResult:
    """The plan of all.

    ``refused``: sentences on endpoints that no plan can be made for, with their exit codes. ``priced``: types that a
    price was given of.
    """
    first = endpoints[0] if endpoints else None
    scale_out = first.scale_out if first else None
    codes = [OK if each.exit_code is None else each.exit_code for each in endpoints]
    codes += [each.exit_code for each in refused]
    found = PlanResult(
        schema_version=SCHEMA_VERSION,
        created=created,
        exit_code=worst_exit_code(OK, *codes),
        target_rps=sum(each.target_rps for each in endpoints) if endpoints else None,
        utilisation=utilisation,
        spare=spare,
        growth_per_min=scale_out.growth_per_min if scale_out else None,
        limits=list(dict.fromkeys(limit for each in endpoints for limit in each.limits)),
        arrivals=first.arrivals if first else None,
        endpoints=list(endpoints),
        quota=quota,
        cost=total_cost([each.cost for each in endpoints]),
        priced=list(priced),
        refused=[each.why for each in refused],
    )
    return replace(found, headline=headline(found))


def total_cost(costs: Sequence[Cost | None]) -> Cost | None:
    """The cost of all together; None where one has none, or they are in several currencies."""
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs) or len({cost.currency for cost in known}) > 1:
        return None
    if len(known) == 1:
        return known[0]
    return Cost(sum(cost.hour for cost in known), sum(cost.month for cost in known), currency=known[0].currency)


def headline(data: PlanResult) -> str:
    """The first line: ``8 instances of ml.m5.xlarge can serve 1,000/s (6 without headroom) for ...``."""
    endpoints, refused = data.endpoints, data.refused
    if data.users is not None:
        return users_headline(data.users)
    if not endpoints:
        return f"No plan: {refused[0]}"
    answer = _of_one(endpoints[0]) if len(endpoints) == 1 else _of_several(endpoints)
    cost = data.cost
    priced = f" for {money_text(cost.hour, cost.currency)}/h" if cost else ""
    scaling = [f"Autoscaling: {bounds_text(endpoints[0].chosen)} instances."] if len(endpoints) == 1 else []
    missed = [
        f"{each.name}: {text}" if len(endpoints) > 1 else text for each in endpoints if (text := missed_text(each))
    ]
    open_ones = [f"{each.name}: {'; '.join(each.warnings)}." for each in endpoints if each.warnings]
    return " ".join(
        [
            f"{answer}{priced}.",
            *scaling,
            *open_ones,
            *missed,
            *([f"{len(refused)} refused: {refused[0]}"] if refused else []),
        ]
    )


def _of_one(plan: EndpointPlan) -> str:
    chosen = plan.chosen
    kind = plan.endpoint.instance_type if plan.endpoint else None
    values = {name: text for name, text in (plan.variant or {}).items() if name != "instance_type" or not kind}
    names = [kind, *([label_of(values)] if values else [])]
    what = instances_text(chosen.instances) + (f" of {', '.join(filter(None, names))}" if any(names) else "")
    alone = f" ({limit_alone(plan):,} without headroom)"
    return f"{what} can serve {load_text(plan.target_rps)}{alone}"


def _of_several(endpoints: Sequence[EndpointPlan]) -> str:
    planned = sum(each.chosen.instances for each in endpoints)
    alone = sum(limit_alone(each) for each in endpoints)
    rate = load_text(sum(each.target_rps for each in endpoints))
    return f"{len(endpoints)} endpoints: {planned:,} instances can serve {rate} ({alone:,} without headroom)"


def load_text(rate: float) -> str:
    """A rate that is asked for: 1,000/s, 333.3/s."""
    return f"{metric_text(rate)}/s"


def limit_alone(plan: EndpointPlan) -> int:
    """The instances that the target needs at the limit itself."""
    return plan.options[0].instances or 0


def bounds_text(chosen: Choice) -> str:
    """Minimum and maximum: 2 to 12."""
    return f"{chosen.minimum:,} to {chosen.maximum:,}"
