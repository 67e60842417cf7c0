"""The instance types of the endpoints that are made here: how many servers each has, and how fast they are.

The figures are made up, so that types differ as they may elsewhere. None is a measurement of AWS's instances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from inference_benchmarker.embedded.config import EndpointConfig


class InstanceType(NamedTuple):
    """So many servers, each of which takes 1 / ``speed`` of the configured service time."""

    servers: int
    speed: float = 1.0


MADE_UP: Mapping[str, InstanceType] = {
    "ml.m5.large": InstanceType(1),
    "ml.m5.xlarge": InstanceType(2),
    "ml.m5.2xlarge": InstanceType(4),
    "ml.c5.large": InstanceType(1, 1.25),
    "ml.c5.xlarge": InstanceType(2, 1.25),
    "ml.c5.2xlarge": InstanceType(4, 1.25),
    "ml.c6i.large": InstanceType(1, 1.5),
    "ml.c6i.xlarge": InstanceType(2, 1.5),
    "ml.c6i.2xlarge": InstanceType(4, 1.5),
    "ml.g5.xlarge": InstanceType(4, 2.0),
    "ml.g5.2xlarge": InstanceType(4, 2.0),
}
MOST_INSTANCES = 20
"""The quota of a type that has none of its own."""


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


def wrong_types(config: EndpointConfig) -> Iterator[tuple[str, str]]:
    """Each setting of a type that is wrong, by the field it stands in."""
    for field, least in (("type_servers", 1), ("type_quota", 0)):
        for name, number in getattr(config, field).items():
            if not name.startswith("ml.") or type(number) is not int or number < least:
                yield field, f"has {name}={number!r}: it must be a type as ml.g5.xlarge, and an integer from {least} on"
    for field in ("type_speed", "type_price"):
        for name, number in getattr(config, field).items():
            if not name.startswith("ml.") or type(number) not in (int, float) or not 0 < number < math.inf:
                yield field, f"has {name}={number!r}: it must be a type as ml.g5.xlarge, and a number above 0"
    for name in config.type_speed:
        if name not in MADE_UP and name not in config.type_servers:
            yield "type_speed", f"has {name}: this type needs its number of servers, too (type_servers)"


def known_types(config: EndpointConfig) -> list[str]:
    """The types that something is known of, in the order of their names."""
    return sorted({*MADE_UP, *config.type_servers, *config.type_quota})
