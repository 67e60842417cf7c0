"""The hardware that a SageMaker instance type's name stands for: a family, which GPUs it has, and a size. Pure.

The rule of sizes was checked against EC2's table for the types that SageMaker hosts on. AWS documents it nowhere as a
rule, so that a name of another shape (bare metal, say) means nothing here rather than something wrong.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"ml\.(?P<family>[a-z][a-z0-9-]*)\.(?:(?P<word>medium|large)|(?P<times>[1-9]\d*)?xlarge)")
_WORDS = {"medium": 1, "large": 2}
_OF_XLARGE = 4
_VCPU_EXCEPTIONS = {"ml.t2.medium": 2, "ml.c4.8xlarge": 36}

_WITHOUT_GPU = re.compile(r"(?:c|m|r|t|inf|trn)\d")
"""General, compute, memory and burstable families, and those whose accelerators are not GPUs."""

_ONE, _TWO, _FOUR, _EIGHT = "xlarge 2xlarge 4xlarge 8xlarge 16xlarge", "12xlarge", "12xlarge 24xlarge", "48xlarge"
_GPUS_BY_FAMILY = {
    "p2": {1: "xlarge", 8: "8xlarge", 16: "16xlarge"},
    "p3": {1: "2xlarge", 4: "8xlarge", 8: "16xlarge"},
    "p4d": {8: "24xlarge"},
    "p4de": {8: "24xlarge"},
    "p5": {1: "4xlarge", 8: _EIGHT},
    "p5e": {8: _EIGHT},
    "p5en": {8: _EIGHT},
    "p6-b200": {8: _EIGHT},
    "p6-b300": {8: _EIGHT},
    "dl1": {8: "24xlarge"},
    "g4dn": {1: _ONE, 4: "12xlarge"},
    "g5": {1: _ONE, 4: _FOUR, 8: _EIGHT},
    "g6": {1: _ONE, 4: _FOUR, 8: _EIGHT},
    "g6e": {1: _ONE, 4: _FOUR, 8: _EIGHT},
    "g7e": {1: _ONE, 2: _TWO, 4: "24xlarge", 8: _EIGHT},
}
_GPUS = {
    f"ml.{family}.{size}": number
    for family, numbers in _GPUS_BY_FAMILY.items()
    for number, sizes in numbers.items()
    for size in sizes.split()
}


def vcpus(instance_type: str) -> int | None:
    """The number of cores that CPUUtilization adds up; None where the name does not say."""
    match = _NAME.fullmatch(instance_type)
    if match is None:
        return None
    by_size = _WORDS[match["word"]] if match["word"] else _OF_XLARGE * int(match["times"] or 1)
    return _VCPU_EXCEPTIONS.get(instance_type, by_size)


def gpus(instance_type: str) -> int | None:
    """The number of GPUs (of dl1: accelerators) of an instance; None where that is not known."""
    match = _NAME.fullmatch(instance_type)
    if match is None:
        return None
    return 0 if _WITHOUT_GPU.match(match["family"]) else _GPUS.get(instance_type)
