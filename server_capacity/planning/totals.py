"""A whole plan: its endpoints, what they cost together, and its first line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inference_benchmarker.exit_codes import MISSED, OK, worst_exit_code
from inference_benchmarker.version import SCHEMA_VERSION
from inference_benchmarker.words.wording import metric_text, money_text
from server_capacity.planning.remarks import instances_text, missed_text
from server_capacity.results.types.axes import label_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Plan = Mapping[str, Any]

_SUMS = ("hour", "month")


def content(
    endpoints: Sequence[dict[str, Any]],
    refused: Sequence[str],
    *,
    created: str,
    utilisation: float,
    spare: int,
    quota: list[dict[str, Any]] | None = None,
    priced: Sequence[str] = (),
) -> dict[str, Any]:
    """The object of fleet_plan.json.

    ``refused``: sentences on endpoints that no plan can be made for; ``priced``: types that a price was given of.
    """
    first = endpoints[0] if endpoints else {}
    scale_out = first.get("scale_out") or {}
    data = {
        "schema_version": SCHEMA_VERSION,
        "created": created,
        "exit_code": worst_exit_code(MISSED if refused else OK, *(each.get("exit_code", OK) for each in endpoints)),
        "target_rps": sum(each["target_rps"] for each in endpoints) if endpoints else None,
        "utilisation": utilisation,
        "spare": spare,
        "growth_per_min": scale_out.get("growth_per_min"),
        "limits": list(dict.fromkeys(limit for each in endpoints for limit in each["limits"])),
        "arrivals": first.get("arrivals"),
        "endpoints": list(endpoints),
        "quota": quota,
        "cost": total_cost([each["cost"] for each in endpoints]),
        "priced": list(priced),
        "files": [],
        "missing": [],
        "refused": list(refused),
    }
    return {**data, "headline": headline(data)}


def total_cost(costs: Sequence[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The cost of all together; None where one has none, or they are in several currencies."""
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs) or len({cost["currency"] for cost in known}) > 1:
        return None
    if len(known) == 1:
        return known[0]
    return {**{key: sum(cost[key] for cost in known) for key in _SUMS}, "currency": known[0]["currency"]}


def headline(data: Plan) -> str:
    """The first line: ``8 instances of ml.m5.xlarge hold 1,000/s (6 at the limit alone), 2 to 12 with scaling``."""
    endpoints, refused = data["endpoints"], data["refused"]
    if not endpoints:
        return f"No plan: {refused[0]}"
    told = _of_one(endpoints[0]) if len(endpoints) == 1 else _of_several(endpoints)
    cost = data.get("cost")
    priced = f"; {money_text(cost['hour'], cost['currency'])}/h" if cost else ""
    missed = [
        f"{each['name']}: {text}" if len(endpoints) > 1 else text for each in endpoints if (text := missed_text(each))
    ]
    open_ones = [f"{each['name']}: {'; '.join(each['warnings'])}." for each in endpoints if each.get("warnings")]
    return " ".join(
        [f"{told}{priced}.", *open_ones, *missed, *([f"{len(refused)} refused: {refused[0]}"] if refused else [])]
    )


def _of_one(plan: Plan) -> str:
    chosen = plan["chosen"]
    kind = (plan["endpoint"] or {}).get("instance_type")
    values = {name: text for name, text in (plan.get("variant") or {}).items() if name != "instance_type" or not kind}
    told = [kind, *([label_of(values)] if values else [])]
    what = instances_text(chosen["instances"]) + (f" of {', '.join(filter(None, told))}" if any(told) else "")
    alone = f" ({limit_alone(plan):,} at the limit alone)"
    verb = "holds" if chosen["instances"] == 1 else "hold"
    return f"{what} {verb} {load_text(plan['target_rps'])}{alone}, {bounds_text(chosen)} with scaling"


def _of_several(endpoints: Sequence[Plan]) -> str:
    planned = sum(each["chosen"]["instances"] for each in endpoints)
    alone = sum(limit_alone(each) for each in endpoints)
    rate = load_text(sum(each["target_rps"] for each in endpoints))
    return f"{len(endpoints)} endpoints: {planned:,} instances hold {rate} ({alone:,} at the limit alone)"


def load_text(rate: float) -> str:
    """A rate that is asked for: 1,000/s, 333.3/s."""
    return f"{metric_text(rate)}/s"


def limit_alone(plan: Plan) -> int:
    """The instances that the target needs at the limit itself."""
    return int(plan["options"][0]["instances"])


def bounds_text(chosen: Plan) -> str:
    """Minimum and maximum: 2 to 12."""
    return f"{chosen['minimum']:,} to {chosen['maximum']:,}"
