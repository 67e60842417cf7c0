"""An endpoint as the control plane keeps it, and the surroundings in which it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.embedded.aws.control_plane.registry import Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inference_benchmarker.embedded.aws.fleet import Fleet
    from inference_benchmarker.embedded.aws.fleets import Fleets
    from inference_benchmarker.embedded.aws.telemetry import Place
    from inference_benchmarker.embedded.config import EndpointConfig

CREATING, IN_SERVICE, DELETING, FAILED = "Creating", "InService", "Deleting", "Failed"
NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. Please retry using a"
    " different ML instance type or after some time."
)
# Of the time that it takes to create something, what it takes to delete it.
DELETING_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class World:
    """The surroundings of the control plane.

    ``make`` makes a fleet of its configuration, its place and whether it is serverless. ``later`` calls something
    after so many seconds of the time that is shortened; ``now``: epoch seconds.
    """

    config: EndpointConfig
    fleets: Fleets
    make: Callable[[EndpointConfig, Place, bool], Fleet]
    later: Callable[[float, Callable[[], None]], None]
    now: Callable[[], float]


@dataclass(slots=True, kw_only=True)
class Hosted(Resource):
    """An endpoint, or an inference component, with its fleet while it is in service.

    ``variant``: of the endpoint's configuration; ``model``: the one it serves, None where its components do.
    """

    config_name: str
    variant: Mapping[str, Any]
    model: Mapping[str, Any] | None
    interval_s: int
    fleet: Fleet | None = None
    reason: str | None = None
    weight: float = 1.0

    @property
    def instances(self) -> tuple[int, int]:
        """The number of those that serve, and of those asked for."""
        if self.fleet is not None:
            return self.fleet.scaling.instances.current, self.fleet.scaling.instances.desired
        asked = self.variant.get("InitialInstanceCount", 1)
        return (asked if self.status == IN_SERVICE else 0), asked

    @property
    def shown_status(self) -> str:
        """Its status in SageMaker's words."""
        return "Updating" if self.fleet is not None and self.fleet.scaling.instances.updating else self.status

    @property
    def shown_change(self) -> float:
        """When it changed last."""
        return max(self.changed_at, self.fleet.scaling.changed_at if self.fleet is not None else 0)

    def turn(self, status: str, at: float) -> None:
        """It has another status since then."""
        self.status, self.changed_at = status, at
