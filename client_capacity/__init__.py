"""The client's abilities: its limits, what it used up during a wave, and who was the limit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client_capacity.client_metrics import establish_client_baseline, sample_client_metrics, wait_for_client_idle
    from client_capacity.limits import find_file_descriptors_limit
    from client_capacity.rps_saturation import find_rps_saturation
    from client_capacity.worker_saturation import find_worker_saturation

__all__ = [
    "establish_client_baseline",
    "find_file_descriptors_limit",
    "find_rps_saturation",
    "find_worker_saturation",
    "sample_client_metrics",
    "wait_for_client_idle",
]

_HOMES = {
    "establish_client_baseline": "client_metrics",
    "find_file_descriptors_limit": "limits",
    "find_rps_saturation": "rps_saturation",
    "find_worker_saturation": "worker_saturation",
    "sample_client_metrics": "client_metrics",
    "wait_for_client_idle": "client_metrics",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first asked for: the searches run waves, which import parts of this package."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The names for users, before anything of them is loaded."""
    return sorted(__all__)
