"""The plan that is proven, as its fleet_plan.json tells it: the target, the instances, and how they are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from inference_benchmarker.data.json_file import read_json
from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.exit_codes import OK
from inference_benchmarker.system.files import is_file, kind_of
from inference_benchmarker.words.redact import HIDDEN
from server_capacity.experiments.proof.evidence import Aim
from server_capacity.experiments.ranking.jobs import Job
from server_capacity.experiments.ranking.preflight import COUNTS
from server_capacity.planning.folder import FILE, changed_since, read
from server_capacity.planning.searched_requests import hidden_in
from server_capacity.planning.totals import headline
from server_capacity.provisioning.arguments import factory_arguments
from server_capacity.results.types.axes import Variant
from server_capacity.results.types.bounds import Endpoint
from server_capacity.results.types.price import Price

if TYPE_CHECKING:
    from collections.abc import Iterator

    from server_capacity.results.types.bounds import Cost, Spread
    from server_capacity.results.types.plan import EndpointPlan, PlanResult, SearchedRequests


@dataclass(frozen=True, slots=True)
class Planned:
    """An endpoint of a plan.

    ``file``: the fleet_plan.json; ``limits``: all that were searched for, and ``limit`` the one violated first;
    ``correlation``: its dispersion and slope, None where the search did not say; ``endpoint``: as the search had it.
    ``requests``: those of the search, None where the plan does not hold them.
    ``price``: of an hour of an instance, None where the plan has none. ``exit_code``: the plan's; ``warnings``: clauses
    on what its search leaves open. ``is_there``: an endpoint is given, and none is to be made. ``differences``: clauses
    on what is sent in place of what was searched.
    """

    file: Path
    name: str
    aim: Aim
    limits: tuple[str, ...]
    limit: str | None
    correlation: Spread | None
    endpoint: Endpoint
    factories_file: Path | None
    requests: SearchedRequests | None = None
    price: Price | None = None
    exit_code: int = OK
    warnings: tuple[str, ...] = ()
    is_there: bool = False
    differences: tuple[str, ...] = ()

    @property
    def instance_type(self) -> str | None:
        """The type of its instances, if that is known."""
        return self.endpoint.instance_type

    def job(self, factories_file: Path | None) -> Job:
        """The endpoint that endpoint_factory is to make; one without arguments where an endpoint is there.

        BenchmarkError where the file cannot make so many instances, or an argument's value is not stored.
        """
        refuse(list(self._hidden_payloads()))
        payload = (self.endpoint.payload_arguments,)
        if self.is_there or factories_file is None:
            return Job((Variant(),), None, {}, payload)
        signature = factory_arguments(factories_file).endpoint
        if signature is None:
            raise BenchmarkError(
                f"{factories_file}: has no endpoint_factory to create {self.aim.instances} instances.",
                "Give --endpoint-name of one that has them, or --set NAME=VALUE where a setting is its address.",
            )
        names = {each.name: each for each in signature.parameters}
        count = next((name for name in COUNTS if name in names), None)
        if count is None:
            raise BenchmarkError(
                f"{factories_file}: endpoint_factory takes no argument `instances` or `instance_count`, so it cannot "
                f"create {self.aim.instances}.",
                "Add one, or give --endpoint-name of an endpoint that has them.",
            )
        given = dict(self.endpoint.arguments or {})
        if self.instance_type and "instance_type" in names:
            given["instance_type"] = self.instance_type
        given[count] = self.aim.instances
        stray = [name for name in given if name not in names and not signature.takes_any]
        missing = [name for name, each in names.items() if each.required and name not in given]
        problems = [f"endpoint_factory takes no argument {name!r}, which the search had." for name in stray]
        problems += [f"endpoint_factory needs {name}, which the search does not record." for name in missing]
        another = "give --endpoint-name of an endpoint that has these instances"
        problems += [_not_stored(name, "endpoint_factory", another) for name in hidden_in(given)]
        refuse([f"{factories_file}: {problem}" for problem in problems])
        known = {name: each.default for name, each in names.items() if each.default is not None} | given
        return Job((Variant(),), given, known, payload)

    def _hidden_payloads(self) -> Iterator[str]:
        """The arguments of payload_factory that held a secret: without it, other requests would be verified."""
        for name in hidden_in(self.endpoint.payload_arguments or {}):
            yield f"payload_factory: {_not_stored(name, 'payload_factory', 'search and plan without it')}"


def _not_stored(name: str, factory: str, another: str) -> str:
    return (
        f"the search had a secret in {name}, which is stored as {HIDDEN}: let {factory} read it from the environment, "
        f"or {another}."
    )


def read_planned(path: Path) -> Planned:
    """The endpoint of a plan: its folder, or its fleet_plan.json. BenchmarkError for what is none, or is of several."""
    file = path / FILE if kind_of(path) == "folder" else path
    if not is_file(file) or file.suffix != ".json":
        raise _no_plan(path)
    if "endpoints" not in read_json(file):
        raise _no_plan(path)
    plan = read(file.parent, file)
    if plan.users is not None:
        raise BenchmarkError(
            f"{file}: plans replicas for users, and --verify sends requests per second.",
            "Search them with `benchmark capacity --in users` once they run.",
        )
    if not plan.endpoints:
        raise BenchmarkError(f"{file}: plans no endpoint: {headline(plan)}", "Give another plan.")
    if len(plan.endpoints) > 1:
        raise BenchmarkError(
            f"{file}: plans {len(plan.endpoints)} endpoints, but --verify takes one.", "Plan each endpoint by itself."
        )
    planned = _planned(file, plan.endpoints[0], plan.exit_code)
    return replace(planned, warnings=(*planned.warnings, *changed_since(plan), *_refused(plan)))


def _refused(plan: PlanResult) -> list[str]:
    """Clauses on the endpoints that the plan refused: its exit code covers them, too."""
    return [f"it refused {sentence.rstrip('.')}" for sentence in plan.refused]


def _no_plan(path: Path) -> BenchmarkError:
    what = "is not a plan" if kind_of(path) else "is not there"
    return BenchmarkError(
        f"--verify {path}: {what}.", f"Give a <timestamp>_plan folder that `benchmark plan` wrote, or its {FILE}."
    )


def _planned(file: Path, found: EndpointPlan, exit_code: int) -> Planned:
    rate, instances, target = found.per_instance.rate, found.chosen.instances, found.target_rps
    return Planned(
        file,
        found.name,
        Aim(target, instances, target / instances / rate, rate),
        tuple(found.limits),
        found.limit,
        found.correlation,
        found.endpoint or Endpoint(),
        None if found.factories_file is None else Path(found.factories_file),
        found.requests,
        _price(found.chosen.cost),
        exit_code,
        tuple(found.warnings),
    )


def _price(cost: Cost | None) -> Price | None:
    """The price that a plan's cost was computed from."""
    if cost is None or cost.instance_type is None or cost.price_per_hour is None:
        return None
    return Price(cost.instance_type, cost.price_per_hour, cost.currency, cost.region, cost.date, cost.source or "")
