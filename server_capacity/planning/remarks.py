"""Sentences of a plan: what it rests on, and what follows from it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.words.wording import length_text, metric_text, percent_text, pluralize
from server_capacity.models.fleet.result_section import HPA_FILE
from server_capacity.planning.request import LEAST_OUTSTANDING
from server_capacity.planning.sizing import FAR
from server_capacity.results.text.headline import rate_text
from server_capacity.results.types.result_status import is_refuted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.planning.case import Case
    from server_capacity.results.types.plan import EndpointPlan, Run, WithOneLost

LEAST_SAVED = 0.01
"""A share of the instance hours below which nothing is advised."""


def remarks(case: Case, plan: EndpointPlan) -> Iterator[str]:
    """Everything about the plan of one endpoint that its numbers do not say."""
    yield from _room(case, plan)
    yield from _load(case, plan)
    yield from _together(case)
    yield from case.main.remarks()
    yield from _scaling(case, plan)
    yield from _extrapolated(case, plan)


def missed_text(plan: EndpointPlan) -> str:
    """The sentence that the simulated policy does not keep the limit under the load; empty where it does."""
    found = plan.simulation
    if not found or not found.runs or found.runs[0].share_over <= found.allowed:
        return ""
    share, allowed = (percent_text(round(each, 4)) for each in (found.runs[0].share_over, found.allowed))
    return f"In a simulation with this policy, {share} of requests violate {found.limit} ({allowed} may)."


def simulated_remarks(plan: EndpointPlan) -> Iterator[str]:
    """The same, and what keeps the limit where that was simulated; else what keeps it and costs less."""
    found = plan.simulation
    if not found or not found.runs:
        return
    planned, missed = found.runs[0], missed_text(plan)
    kept = [run for run in found.runs if run.share_over <= found.allowed and _is_of(plan, run)]
    cheapest = min(kept, key=lambda run: run.instance_hours, default=None)
    if missed:
        advice = (
            "Give a higher --minimum" if cheapest is None else f"{_keeping(plan, cheapest)} it: {_how(plan, cheapest)}"
        )
        yield f"{missed} The load rises faster than instances start. {advice}."
    elif cheapest is not None and (saved := 1 - cheapest.instance_hours / planned.instance_hours) >= LEAST_SAVED:
        yield (
            f"{_keeping(plan, cheapest)} {found.limit} under this load too, with {percent_text(round(saved, 2))} "
            f"fewer instance hours than {planned.policy}: {_how(plan, cheapest)}."
        )


def _is_of(plan: EndpointPlan, run: Run) -> bool:
    """Tells whether a policy may be the endpoint's: nothing of Kubernetes scales one of SageMaker's."""
    return run.file != HPA_FILE or not (plan.endpoint and plan.endpoint.kind)


def _keeping(plan: EndpointPlan, run: Run) -> str:
    """The subject of what keeps a limit, and its verb."""
    if run.file is None:
        instances = plan.chosen.instances
        return f"{instances_text(instances)} throughout {'meets' if instances == 1 else 'meet'}"
    name = run.policy
    return f"{name[:1].upper()}{name[1:]} meets"


def _how(plan: EndpointPlan, run: Run) -> str:
    if run.file is not None:
        return f"use {run.file}"
    instances = plan.chosen.instances
    return f"--minimum {instances}" if missed_text(plan) else f"--minimum {instances} --maximum {instances}"


def needed_by(plan: EndpointPlan) -> int:
    """The instances that the target needs at the planned share, whatever the minimum is."""
    chosen = plan.chosen.name
    return next(each.instances or 0 for each in plan.options if each.name == chosen)


def instances_text(count: int) -> str:
    """1 instance, 2 instances."""
    return pluralize(count, "instance", "instances")


def _room(case: Case, plan: EndpointPlan) -> Iterator[str]:
    chosen, lost = plan.chosen, plan.chosen.with_one_lost
    share = percent_text(round(lost.share_of_low or 0.0, 3))
    if chosen.instances < 2:
        yield (
            "A single instance is in one zone, and nothing is left if it fails: two zones need at least 2 instances."
        )
    elif is_refuted(case.main.data):
        yield f"{_with_one_lost(lost)}, {share} of the rate at which a limit was violated in the search."
    elif lost.holds:
        yield f"{_with_one_lost(lost)}, {share} of what one is certain to serve: the limit is still met."
    else:
        yield (
            f"{_with_one_lost(lost)}, more than one is certain to serve. With {instances_text(chosen.with_spare)} the "
            "limit would still be met."
        )


def _with_one_lost(lost: WithOneLost) -> str:
    rate, others = rate_text(lost.rate_per_instance), lost.instances
    return f"If one instance is lost, the other{f' {others:,} get {rate} each' if others > 1 else f' one gets {rate}'}"


def _load(case: Case, plan: EndpointPlan) -> Iterator[str]:
    demand, chosen = case.demand, plan.chosen
    if demand.peak_text:
        bound = (
            ": the maximum allows for that" if case.asked.maximum is None else f", and --maximum is {chosen.maximum:,}"
        )
        yield f"{demand.peak_text} {metric_text(demand.peak_rps)}/s{bound}."
    if demand.recorded is not None and demand.recorded.peak_second > 1.5 * demand.peak_rps:
        yield (
            f"The busiest second has {demand.recorded.peak_second:,} requests: no policy reacts that fast, and "
            "instances sized for the minute queue them."
        )
    if chosen.instances > needed_by(plan):
        yield (
            f"The load needs {instances_text(needed_by(plan))}, but the minimum is {chosen.minimum:,}: the cost is "
            "that of the minimum."
        )
    if chosen.capped:
        yield f"More than {instances_text(chosen.maximum)} cannot be planned, so the maximum may be too low."
    if demand.least_rps == 0:
        stay = f"{instances_text(chosen.minimum)} {'keeps' if chosen.minimum == 1 else 'keep'} running"
        yield f"Some minutes have no request. Still, {stay}, because starting from none takes minutes."


def _together(case: Case) -> Iterator[str]:
    """The searches that were merged: nothing but their names may tell two endpoints apart."""
    if len(case.searches) > 1:
        folders = ", ".join(each.folder for each in case.searches)
        rests = "" if case.main.not_linear else f"; the plan uses {case.main.folder}, with the lowest rate per instance"
        yield (
            f"These are treated as searches of one endpoint: {folders}{rests}. Use a --mix file for different "
            "endpoints."
        )


def _scaling(case: Case, plan: EndpointPlan) -> Iterator[str]:
    scale_out = plan.scale_out
    if scale_out is not None and scale_out.safety_factor is not None:
        wait = length_text(scale_out.alarm_s + scale_out.create_s)
        yield (
            f"The load grows by {percent_text(round(scale_out.growth_per_min or 0.0, 4))} per minute. A new instance "
            f"serves {wait} after it is needed (three minutes for the alarm, and {length_text(scale_out.create_s)} "
            f"to start, {scale_out.source}). So instances may run at {scale_out.safety_factor:.1%} of their limit."
        )
    if plan.endpoint and plan.endpoint.kind == "inference-component":
        yield (
            "An instance here is a copy of the inference component: the instances below must have room for the "
            "copies. Instances are what you pay for and what a quota counts, so copies have no cost and no quota of "
            "their own."
        )
    if str(case.main.instance_type).startswith("ml.t2."):
        yield "Application Auto Scaling does not scale instances of the burstable type T2."
    if case.routing == LEAST_OUTSTANDING:
        yield (
            "Requests go to the instance with the fewest outstanding requests: together, instances serve more than "
            "the sum of each alone, so the plan is conservative."
        )


def _extrapolated(case: Case, plan: EndpointPlan) -> Iterator[str]:
    measured, chosen = max(each.instances for each in case.searches), plan.chosen
    planned = chosen.instances
    if not plan.linear:
        *fewer, most = sorted({each.instances for each in plan.capacities})
        counts = f"{', '.join(map(str, fewer))} and {most} instances"
        yield f"It was measured at {counts}, and is interpolated between them: {case.main.not_linear}."
        yield (
            f"The policy's target is {chosen.invocations_per_instance:,.15g} requests per minute per instance: the "
            f"smallest capacity of one instance in a fleet of {chosen.minimum:,} to {chosen.maximum:,}."
        )
    if planned > FAR * measured:
        yield (
            f"{planned:,} instances are more than {FAR} times the {instances_text(measured)} measured: verify them "
            "with `benchmark capacity --verify`."
        )
