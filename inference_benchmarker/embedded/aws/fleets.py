"""The fleets by whom they serve: the endpoint's own, or one of those that the control plane made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inference_benchmarker.embedded.aws.aws_json import ACCOUNT
from inference_benchmarker.embedded.http.messages import HttpError

if TYPE_CHECKING:
    from inference_benchmarker.embedded.aws.fleet import Fleet
    from inference_benchmarker.embedded.aws.scaling import EndpointScaling
    from inference_benchmarker.embedded.aws.scaling_requests import Resource
    from inference_benchmarker.embedded.aws.telemetry import Traffic

_NO_COMPONENT = (
    "Inference Component Name header is required for endpoints to which you plan to deploy inference components."
    " Please include Inference Component Name header or consider using SageMaker models."
)


class Destination(NamedTuple):
    """By whom a request is served, and under which name it is counted."""

    fleet: Fleet
    traffic: Traffic


class Fleets:
    """``own`` serves every name but those of endpoints that were ever made here."""

    def __init__(self, own: Fleet) -> None:
        self.own = own
        # By inference component, None: of the endpoint's model. None instead of fleets: nobody serves that name.
        self._made: dict[str, dict[str | None, Fleet] | None] = {}

    def reserve(self, name: str) -> None:
        """An endpoint of that name is being made, or is no more: nobody serves it."""
        self._made[name] = None
        self.own.telemetry.forget(name)

    def open(self, name: str) -> None:
        """The endpoint is in service from now on; fleets serve it as they are added."""
        self._made[name] = {}

    def add(self, name: str, fleet: Fleet, component: str | None = None) -> None:
        """It serves that endpoint, or a component of it."""
        found = self._made[name]
        assert found is not None
        found[component] = fleet

    def remove(self, name: str, component: str | None, now_ns: int) -> None:
        """Its fleet serves nobody else, if there is one."""
        fleet = (self._made.get(name) or {}).pop(component, None)
        if fleet is not None:
            fleet.retire(now_ns)

    def every(self) -> list[Fleet]:
        """All that serve somebody."""
        return [self.own, *(fleet for found in self._made.values() for fleet in (found or {}).values())]

    def serving(self, name: str, component: str | None = None) -> Destination:
        """The fleet that serves an endpoint. Raises HttpError as SageMaker's runtime refuses a name."""
        if name not in self._made:
            return Destination(self.own, self.own.telemetry.traffic(name))
        found = self._made[name]
        if found is None:
            raise HttpError(400, f"Endpoint {name} of account {ACCOUNT} not found.")
        fleet = found.get(component)
        if fleet is None:
            reason = f"Inference Component with name {component} not found." if component else _NO_COMPONENT
            raise HttpError(400, reason)
        return Destination(fleet, fleet.traffic)

    def scalers(self) -> list[EndpointScaling]:
        """The scaling of each fleet."""
        return [fleet.scaling for fleet in self.every()]

    def scaler(self, resource: Resource) -> EndpointScaling | None:
        """The scaling of the instances of a variant; None: there is no such variant, or it has no instances."""
        name = resource.endpoint_name
        if name in self._made:
            fleet = (self._made[name] or {}).get(None)
        else:
            fleet = self.own if name in self.own.telemetry.names else None
        if fleet is None or fleet.telemetry.place.variant != resource.variant or fleet.is_serverless:
            return None
        return fleet.scaling

    def components(self, name: str) -> list[str]:
        """The inference components of an endpoint that are in service."""
        return [component for component in self._made.get(name) or {} if component is not None]
