"""A load tester for inference endpoints: every arrival on time and proven so, every request accounted for.

Importing this package is cheap and patches nothing; what a name needs is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference_benchmarker.endpoint import Response
    from inference_benchmarker.errors import BenchmarkError
    from inference_benchmarker.launch import run_wave
    from inference_benchmarker.plan import Bounds, ClosedLoop, OpenLoop, Slo, WavePlan
    from inference_benchmarker.wave import Wave

__version__ = "0.1.0"
__all__ = [
    "BenchmarkError",
    "Bounds",
    "ClosedLoop",
    "OpenLoop",
    "Response",
    "Slo",
    "Wave",
    "WavePlan",
    "run_wave",
]

_HOMES = {
    "Response": "endpoint",
    "BenchmarkError": "errors",
    "run_wave": "launch",
    "Bounds": "plan",
    "ClosedLoop": "plan",
    "OpenLoop": "plan",
    "Slo": "plan",
    "WavePlan": "plan",
    "Wave": "wave",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
