"""The synthetic instance types: how many servers each has, and how fast they are.

The figures differ as they may elsewhere. None is a measurement of AWS's instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


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
