"""The section ``twin`` of capacity.json: fitted, judged, and asked. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from inference_benchmarker.system.progress import tell
from server_capacity.models.twin.fit import Refused, fit
from server_capacity.models.twin.misfit import judge
from server_capacity.models.twin.shares import ranked
from server_capacity.models.twin.twin import bounds
from server_capacity.models.twin.what_if import what_if
from server_capacity.results.types import twin as result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server_capacity.models.twin.misfit import Misfit
    from server_capacity.models.twin.trace import Floats, Trace
    from server_capacity.models.twin.twin import Arrivals, Twin
    from server_capacity.search.limits import Limit

_LIKE = 0.05  # of the mean
_TASK, _STEPS = "Fitting a queueing model of the endpoint", 4
_RANKS = 256  # services that stand for all of them


def block(
    exploration: Sequence[Trace],
    confirmation: Sequence[tuple[float, Trace]],
    limits: Sequence[Limit],
    arrivals: Arrivals = "poisson",
) -> result.Twin:
    """The twin of the exploration's waves, judged on the confirmation waves (rate and trace of each).

    ``fits`` false and a ``reason`` where the endpoint is no such queue or a confirmation wave was not predicted; the
    keys are those of ``capacity.json``, the rates requests/s.
    """
    try:
        return _block(exploration, confirmation, limits, arrivals)
    finally:
        tell(_TASK, _STEPS, _STEPS)


def refused(reason: str) -> result.Twin:
    """The block where there is no twin."""
    return result.Twin(fits=False, reason=reason)


def _block(
    exploration: Sequence[Trace],
    confirmation: Sequence[tuple[float, Trace]],
    limits: Sequence[Limit],
    arrivals: Arrivals,
) -> result.Twin:
    if not bounds(limits):
        return refused("no limit is on response time or latency, the only values that the model predicts")
    twin = fit(exploration)
    tell(_TASK, 1, _STEPS)
    if isinstance(twin, Refused):
        return refused(twin.reason)
    judged = [(rate, judge(twin, wave, limits)) for rate, wave in confirmation]
    tell(_TASK, 2, _STEPS)
    described = replace(_described(twin), misfit=judged[-1][1].by_name() if judged else None)
    if reason := _unconfirmed(judged):
        return replace(described, reason=reason)
    estimate = twin.capacity(limits, arrivals)
    tell(_TASK, 3, _STEPS)
    if estimate is None or estimate.rate is None:
        return replace(described, reason="according to the model no rate meets the limits")
    return replace(
        described,
        fits=True,
        limit=estimate.limit,
        rate=estimate.rate,
        interval=estimate.interval,
        confirmed_at=judged[-1][0],
        what_if=what_if(twin, next(bound for bound in bounds(limits) if bound.limit == estimate.limit)),
    )


def _described(twin: Twin) -> result.Twin:
    services = twin.services_s
    mean, cv = float(services.mean()), float(services.std() / services.mean())
    return result.Twin(
        fits=False,
        servers=twin.servers,
        service=result.Service(_kind(services), mean, cv),
        services_s=ranked(services, _RANKS).tolist(),
        overhead_s=twin.overhead_s,
    )


def _kind(services: Floats) -> str:
    """Constant or exponential where it is nearly that, else as measured."""
    ranks = np.linspace(0.05, 0.95, 19)
    values, mean = np.quantile(services, ranks), services.mean()
    if np.abs(values / mean - 1).max() < _LIKE:
        return "constant"
    return "exponential" if np.abs(values / mean + np.log1p(-ranks)).mean() < _LIKE else "as measured"


def _unconfirmed(judged: Sequence[tuple[float, Misfit]]) -> str:
    if not judged:
        return "no confirming wave tested it"
    return next((f"at {rate:g}/s {misfit.reason}" for rate, misfit in judged if not misfit.fits), "")
