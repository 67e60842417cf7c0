"""Whoever scales the endpoint of a search: found in Application Auto Scaling, suspended for the search, and put back.

https://docs.aws.amazon.com/autoscaling/application/APIReference/API_RegisterScalableTarget.html
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError, refuse
from inference_benchmarker.words.text import one_line
from server_capacity.provisioning.handle import Keeper
from server_capacity.provisioning.performing import NotDoneError, account_of, ask, make_client
from server_capacity.provisioning.undo import Call
from server_capacity.results.types.bounds import Suspended, SuspendedTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from server_capacity.metrics.config import MetricsBlock

SERVICE, NAMESPACE = "application-autoscaling", "sagemaker"
OUT, IN, SCHEDULED = "DynamicScalingOutSuspended", "DynamicScalingInSuspended", "ScheduledScalingSuspended"
MOST_RESOURCES = 50
"""So many one call takes."""

_MADE = "Let endpoint_factory create it without scaling."
_FLAG = "Give --suspend-scaling to suspend it for the search and restore it afterwards, or suspend it yourself."


@dataclass(frozen=True, slots=True)
class ScalableTarget:
    """A number that is scaled, of instances or copies: its bounds, who scales it, and what of that is suspended."""

    resource: str
    dimension: str
    region: str
    bounds: tuple[int, int]
    policies: tuple[str, ...]
    scheduled_actions: tuple[str, ...]
    suspended: dict[str, bool]
    account: str | None = None
    endpoint_url: str | None = None

    @property
    def is_active(self) -> bool:
        """Tells whether the number may change by itself. A policy changes none within equal bounds, a schedule may."""
        minimum, maximum = self.bounds
        dynamic = bool(self.policies) and minimum != maximum and not (self.suspended[OUT] and self.suspended[IN])
        return dynamic or (bool(self.scheduled_actions) and not self.suspended[SCHEDULED])

    @property
    def text(self) -> str:
        """Its name, who scales it, and within which bounds."""
        by = [f"policy {name}" for name in self.policies] + [f"schedule {name}" for name in self.scheduled_actions]
        minimum, maximum = self.bounds
        return f"{self.resource} ({one_line(', '.join(by), 200)}; {minimum} to {maximum})"

    def registering(self, suspended: dict[str, bool]) -> Call:
        """The call that suspends and resumes what this says, and leaves its bounds alone."""
        named = {"ServiceNamespace": NAMESPACE, "ResourceId": self.resource, "ScalableDimension": self.dimension}
        parameters = {**named, "SuspendedState": dict(suspended)}
        return Call(SERVICE, "register_scalable_target", parameters, self.region, self.endpoint_url)


@dataclass(slots=True)
class Suspension:
    """The scaling that is suspended while a context lasts; ``put_back``: None until it is over."""

    targets: list[SuspendedTarget]
    put_back: bool | None = None

    def to_result(self) -> Suspended:
        """The part of a result, as it is by now."""
        return Suspended(self.targets, self.put_back)


def resources(blocks: Iterable[MetricsBlock]) -> list[str]:
    """The variants and inference components that blocks name by their dimensions, as Application Auto Scaling does."""
    found: dict[str, None] = {}
    for block in blocks:
        given = dict(block.dimensions)
        if {"EndpointName", "VariantName"} <= set(given):
            found[f"endpoint/{given['EndpointName']}/variant/{given['VariantName']}"] = None
        if "InferenceComponentName" in given:
            found[f"inference-component/{given['InferenceComponentName']}"] = None
    return list(found)


def active_scaling(blocks: Iterable[MetricsBlock], say: Callable[[str], None], *, made: bool = False) -> list[str]:
    """A sentence for each active scaling of what the blocks of ``load_config`` name: no search is to be begun then.

    ``say`` gets where nobody knows, as permissions are missing. ``made``: the endpoint was made for the search.
    """
    try:
        active = _active(resources(blocks))
    except NotDoneError as error:
        say(f"It is not known whether the endpoint scales during the search: {error}.")
        return []
    return [f"It would scale during the search: {target.text}. {_MADE if made else _FLAG}" for target in active]


@contextmanager
def suspended_scaling(
    blocks: Iterable[MetricsBlock], folder: Path, say: Callable[[str], None]
) -> Iterator[Suspension | None]:
    """Suspend every active scaling of what the blocks name, and put it back in every case.

    Yields None where there is none, else what is suspended, whose ``put_back`` is set when the context is over.
    ``folder``: where the list of what must be put back is kept. BenchmarkError where it cannot be found or suspended.
    """
    named = resources(blocks)
    if not named:
        refuse(["--suspend-scaling needs an --endpoint-config with a block that names the variant."])
    keeper = Keeper(folder, say, say)  # it starts while AWS is asked
    suspension: Suspension | None = None
    try:
        with keeper:
            active = _found(named)
            if not active:
                say("No scaling is active, so none is suspended.")
            else:
                suspension = Suspension([_described(target) for target in active])
            for target in active:
                _suspend(target, keeper)
                say(f"Suspended for the search: {target.text}.")
            yield suspension
    finally:
        if suspension is not None:
            suspension.put_back = keeper.all_is_put_back


def _found(named: Sequence[str]) -> list[ScalableTarget]:
    try:
        return _active(named)
    except NotDoneError as error:
        raise BenchmarkError(f"--suspend-scaling: {error}.") from None


def _suspend(target: ScalableTarget, keeper: Keeper) -> None:
    every = dict.fromkeys((OUT, IN, SCHEDULED), True)
    change, undo = target.registering(every), target.registering(target.suspended)
    keeper.change(f"scaling of {target.resource}", change, undo, target.account)


def _described(target: ScalableTarget) -> SuspendedTarget:
    policies, schedules = list(target.policies), list(target.scheduled_actions)
    return SuspendedTarget(target.resource, target.dimension, policies, schedules, dict(target.suspended))


def _active(named: Sequence[str]) -> list[ScalableTarget]:
    return [target for target in _targets(named) if target.is_active] if named else []


def _targets(named: Sequence[str]) -> Iterator[ScalableTarget]:
    """The scalable targets of the named resources. Raises NotDoneError."""
    client = make_client(SERVICE, None)
    for first in range(0, len(named), MOST_RESOURCES):
        asked = {"ServiceNamespace": NAMESPACE, "ResourceIds": list(named[first : first + MOST_RESOURCES])}
        for found in _every(client, "describe_scalable_targets", "ScalableTargets", asked):
            yield _target(client, found)


def _target(client: Any, found: dict[str, Any]) -> ScalableTarget:
    asked = {"ServiceNamespace": NAMESPACE, **{name: found[name] for name in ("ResourceId", "ScalableDimension")}}
    policies = _every(client, "describe_scaling_policies", "ScalingPolicies", asked)
    schedules = _every(client, "describe_scheduled_actions", "ScheduledActions", asked)
    state = found.get("SuspendedState") or {}
    return ScalableTarget(
        found["ResourceId"],
        found["ScalableDimension"],
        client.meta.region_name,
        (found["MinCapacity"], found["MaxCapacity"]),
        tuple(each["PolicyName"] for each in policies),
        tuple(each["ScheduledActionName"] for each in schedules),
        {name: bool(state.get(name, False)) for name in (OUT, IN, SCHEDULED)},
        account_of(found),
        client.meta.endpoint_url,
    )


def _every(client: Any, operation: str, name: str, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that the pages of an answer list. Raises NotDoneError."""
    token: dict[str, Any] = {}
    while True:
        page = ask(client, operation, {**asked, **token})
        yield from page.get(name, [])
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}
