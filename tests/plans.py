"""A plan of one endpoint, from searches that are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inference_benchmarker.data.decoded import encoded
from server_capacity.planning.case import Case
from server_capacity.planning.content import endpoint_plan
from server_capacity.planning.demand import demand_of
from server_capacity.planning.measured import Measured, measured
from server_capacity.planning.request import PlanRequest
from server_capacity.results.types.bounds import Cost
from server_capacity.results.types.plan import EndpointPlan
from tests.capacities import searched

FOLDER = Path("x_capacity")


def search(low: float = 168.2, endpoint: dict[str, Any] | None = None, **more: Any) -> Measured:
    """A search whose interval begins at ``low``, of one instance where nothing else is said."""
    data = searched(rate=low * 1.035, interval={"low": low, "high": low * 1.07}, endpoint=endpoint, **more)
    made = measured(data, str(FOLDER))
    assert isinstance(made, Measured)
    return made


def case(*searches: Measured, cost: float | None = None, **asked: Any) -> Case:
    question = PlanRequest((FOLDER,), **asked)
    return Case(
        question,
        list(searches) or [search()],
        demand_of(question, None),
        lambda count, _: None if cost is None else Cost(count * cost, 0.0, 0.0, instance_type="x", price_per_hour=cost),
    )


def planned(*searches: Measured, **asked: Any) -> EndpointPlan:
    made = endpoint_plan(case(*searches, **asked))
    assert isinstance(made, EndpointPlan), made
    json.dumps(encoded(made), allow_nan=False)
    return made
