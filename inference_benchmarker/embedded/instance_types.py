"""The instance types of the endpoints that are created here: the synthetic ones, as the configuration changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.embedded.synthetic_types import MADE_UP, MOST_INSTANCES, InstanceType

if TYPE_CHECKING:
    from inference_benchmarker.embedded.config import EndpointConfig


def known_type(config: EndpointConfig, name: str) -> InstanceType | None:
    """The type of that name as the configuration has it; None: there is none."""
    known = MADE_UP.get(name)
    servers = config.type_servers.get(name, known.servers if known else None)
    if servers is None:
        return None
    return InstanceType(servers, config.type_speed.get(name, known.speed if known else 1.0))


def quota(config: EndpointConfig, name: str) -> int:
    """The most instances of a type that all endpoints made here may have together."""
    return config.type_quota.get(name, MOST_INSTANCES)


def known_types(config: EndpointConfig) -> list[str]:
    """The types that something is known of, in the order of their names."""
    return sorted({*MADE_UP, *config.type_servers, *config.type_quota})
