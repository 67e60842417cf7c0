"""Quantities of CPU and memory, as Kubernetes writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_UNITS = {
    "m": "0.001",
    "k": "1e3",
    "M": "1e6",
    "G": "1e9",
    "T": "1e12",
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


def quantity(text: str | float) -> Decimal:
    """Its value: cores, or bytes."""
    written = str(text)
    for unit in sorted(_UNITS, key=len, reverse=True):
        if written.endswith(unit):
            return Decimal(written.removesuffix(unit)) * Decimal(str(_UNITS[unit]))
    return Decimal(written)


def requested(pod_spec: dict[str, Any], what: str, of: str = "requests") -> Decimal | None:
    """Of CPU or memory, by all containers of a pod; None where one of them states nothing."""
    total = Decimal(0)
    for container in pod_spec["containers"]:
        resources = container.get("resources", {})
        stated = resources.get(of, {}).get(what, resources.get("limits", {}).get(what) if of == "requests" else None)
        if stated is None:
            return None
        total += quantity(stated)
    return total
