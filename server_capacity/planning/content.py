"""The object of ``fleet_plan.json``: what to deploy for a load, as programs read it. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.exit_codes import worst_exit_code
from inference_benchmarker.words.wording import pluralize
from server_capacity.planning.remarks import remarks
from server_capacity.planning.sizing import (
    ALARM_S,
    AWS_FACTOR,
    CannotTellError,
    floored,
    held_by_each,
    law_of,
    safety_factor,
)
from server_capacity.results.types.plan import Choice, EndpointPlan, Option, PerInstance, ScaleOut, WithOneLost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.planning.case import Case
    from server_capacity.planning.sizing import Law


LIMIT_ALONE, AWS, TO_SCALE_OUT = "limit alone", "AWS's safety factor 0.5", "time to scale out"
_SIDE_BY_SIDE = (0.7, 0.6)


def endpoint_plan(case: Case) -> EndpointPlan | str:
    """The plan of one endpoint, or the reason why none can be made of what was measured."""
    law = law_of(case.searches)
    if isinstance(law, str):
        return law
    scale_out = _scale_out(case)
    options = [_option(case, law, name, share) for name, share in _shares(case, scale_out)]
    option = _chosen(case, options)
    try:
        needed = law.needed(case.demand.target_rps, option.share)
    except CannotTellError as error:
        return str(error)
    _require_maximum(case, law, option.share, needed)
    bounds = _bounds(case, law, option, scale_out)
    planned = _whole(case, law, scale_out, options, _choice(case, law, option, bounds))
    return replace(planned, remarks=list(remarks(case, planned)))


def _whole(case: Case, law: Law, scale_out: ScaleOut | None, options: list[Option], chosen: Choice) -> EndpointPlan:
    """The plan without remarks."""
    main = case.main
    count = main.instances
    return EndpointPlan(
        name=case.asked.name or main.name,
        capacity=main.folder,
        capacities=[each.to_source() for each in case.searches],
        endpoint=main.data.endpoint,
        variant=main.variant or None,
        factories_file=main.factories_file,
        requests=main.requests,
        limits=[row.expression for row in main.data.limits],
        limit=main.data.limit,
        arrivals=main.data.arrivals,
        per_instance=PerInstance(
            main.low / count,
            main.rate / count,
            None if main.high is None else main.high / count,
            count,
            main.is_counted,
            main.at_least,
        ),
        linear=law.most is None,
        routing=case.routing,
        target_rps=case.demand.target_rps,
        peak_rps=case.demand.peak_rps,
        least_rps=case.demand.least_rps,
        options=options,
        scale_out=scale_out,
        correlation=main.correlation,
        warnings=list(dict.fromkeys(each for search in case.searches for each in search.warnings)),
        exit_code=worst_exit_code(*(each.exit_code for each in case.searches)),
        chosen=chosen,
        cost=chosen.cost,
    )


def _shares(case: Case, scale_out: ScaleOut | None) -> Iterator[tuple[str, float]]:
    """The shares of the limit that stand side by side, the largest first but for the one of the growth."""
    used = sorted({*_SIDE_BY_SIDE, case.asked.utilisation} - {1.0, AWS_FACTOR}, reverse=True)
    yield LIMIT_ALONE, 1.0
    yield from ((f"{100 * share:.4g}% use", share) for share in used)
    yield AWS, AWS_FACTOR
    if scale_out is not None and scale_out.safety_factor is not None:
        yield TO_SCALE_OUT, scale_out.safety_factor


def _option(case: Case, law: Law, name: str, share: float) -> Option:
    target = case.demand.target_rps
    try:
        instances = law.needed(target, share)
        alone = law.needed(target, 1.0)
    except CannotTellError:
        return Option(name, share)
    per_instance = share * law.held(instances) / instances
    return Option(
        name,
        share,
        instances,
        with_spare=max(instances, alone + case.asked.spare),
        invocations_per_instance=floored(60 * per_instance),
        cost=case.costing(instances, target),
    )


def _chosen(case: Case, options: list[Option]) -> Option:
    """The option that the utilisation asks for, or that of the growth where this leaves more room."""
    asked = next(each for each in options if abs(each.share - case.asked.utilisation) < 1e-9)
    growth = next((each for each in options if each.name == TO_SCALE_OUT), asked)
    return growth if growth.share < asked.share else asked


def _require_maximum(case: Case, law: Law, share: float, needed: int) -> None:
    """BenchmarkError where the given maximum does not allow the instances that the target needs."""
    maximum = case.asked.maximum
    if maximum is None or maximum >= needed:
        return
    held = share * law.held(maximum)
    raise BenchmarkError(
        f"--maximum {maximum:,} is too few for {case.asked.name or case.main.name}: {case.demand.target_rps:,.5g}/s "
        f"need {pluralize(needed, 'instance', 'instances')} at {share:.4g} of their limit, but {maximum:,} "
        f"can serve {held:,.4g}/s.",
        f"Give --maximum {needed:,}, a smaller load, or a larger --utilisation.",
    )


class _Bounds(NamedTuple):
    minimum: int
    maximum: int
    capped: bool


def _choice(case: Case, law: Law, option: Option, bounds: _Bounds) -> Choice:
    """The instances that serve, of which there are never fewer than the minimum; what they cost, and their target."""
    instances = max(option.instances or 0, bounds.minimum)
    each = option.share * held_by_each(law, bounds.minimum, bounds.maximum)
    return Choice(
        name=option.name,
        share=option.share,
        instances=instances,
        with_spare=max(option.with_spare or 0, instances),
        invocations_per_instance=floored(60 * each),
        cost=case.costing(instances, case.demand.target_rps),
        **bounds._asdict(),
        with_one_lost=_with_one_lost(case, law, instances),
    )


def _bounds(case: Case, law: Law, option: Option, scale_out: ScaleOut | None) -> _Bounds:
    """Minimum and maximum of a policy: for the least load that is known, and for the peak and what may be lost."""
    share, spare = option.share, case.asked.spare
    factor = scale_out and scale_out.safety_factor
    peak = case.demand.peak_rps / (factor or 1.0)
    largest, capped = _at_most(law, peak, share)
    kept, _ = _at_most(law, peak, 1.0)
    maximum = case.asked.maximum or max(largest, kept + spare, option.with_spare or 0)
    least = case.demand.least_rps
    lowest = min(2, option.instances or 0) if not least else max(2, _at_most(law, least, share)[0])
    minimum = case.asked.minimum or min(lowest, maximum)
    return _Bounds(minimum, max(maximum, minimum), capped)


def _at_most(law: Law, rate: float, share: float) -> tuple[int, bool]:
    """The instances that a rate needs, or the most that the law covers; and whether it is the latter."""
    try:
        return law.needed(rate, share), False
    except CannotTellError:
        assert law.most is not None
        return law.most, True


def _with_one_lost(case: Case, law: Law, instances: int) -> WithOneLost:
    """The target on one instance fewer, compared with what those hold: a share of 1 is the limit itself."""
    left, target = instances - 1, case.demand.target_rps
    if not left:
        return WithOneLost(instances=0, holds=False)
    share = target / law.held(left)
    return WithOneLost(instances=left, rate_per_instance=target / left, share_of_low=share, holds=share <= 1.0)


def _scale_out(case: Case) -> ScaleOut | None:
    """The time to scale out and the factor that the growth asks for; BenchmarkError where that time is not known."""
    creation, growth = case.seconds_to_create, case.asked.growth_per_min
    if creation is None and growth is None:
        return None
    if creation is None:
        raise BenchmarkError(
            f"--growth needs the time until a new instance of {case.main.name} serves, which the search did not "
            "measure.",
            "Give --seconds-to-create.",
        )
    create_s, source = creation
    return ScaleOut(
        ALARM_S, create_s, source, growth, safety_factor=None if growth is None else safety_factor(growth, create_s)
    )
