"""A load tester for inference endpoints: arrivals are on time and shown to be, and every request is accounted for.

Importing this package is cheap and patches nothing; a name loads what it needs when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from inference_benchmarker.version import __version__

if TYPE_CHECKING:
    from inference_benchmarker.created_resources import created, run_tags
    from inference_benchmarker.engine.launch import run_wave
    from inference_benchmarker.errors import BenchmarkError
    from inference_benchmarker.plan.abort_on import AbortOn
    from inference_benchmarker.plan.load import Bounds, ClosedLoop, OpenLoop
    from inference_benchmarker.plan.plan import WavePlan
    from inference_benchmarker.plan.recorded import Conversations
    from inference_benchmarker.plan.replay import Replay
    from inference_benchmarker.plan.retries import Backoff, Retries
    from inference_benchmarker.plan.slo import Slo
    from inference_benchmarker.plan.stage import Stage
    from inference_benchmarker.plan.turn import Turn
    from inference_benchmarker.records.pieces import Answer
    from inference_benchmarker.records.response import Response
    from inference_benchmarker.wave.wave import Wave

__all__ = [
    "AbortOn",
    "Answer",
    "Backoff",
    "BenchmarkError",
    "Bounds",
    "ClosedLoop",
    "Conversations",
    "OpenLoop",
    "Replay",
    "Response",
    "Retries",
    "Slo",
    "Stage",
    "Turn",
    "Wave",
    "WavePlan",
    "__version__",
    "created",
    "run_tags",
    "run_wave",
]

_HOMES = {
    "Answer": "records.pieces",
    "Response": "records.response",
    "Turn": "plan.turn",
    "BenchmarkError": "errors",
    "created": "created_resources",
    "run_tags": "created_resources",
    "run_wave": "engine.launch",
    "AbortOn": "plan.abort_on",
    "Bounds": "plan.load",
    "ClosedLoop": "plan.load",
    "OpenLoop": "plan.load",
    "Conversations": "plan.recorded",
    "Replay": "plan.replay",
    "Backoff": "plan.retries",
    "Retries": "plan.retries",
    "Slo": "plan.slo",
    "Stage": "plan.stage",
    "WavePlan": "plan.plan",
    "Wave": "wave.wave",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The names for users, before anything of them is loaded."""
    return sorted(__all__)
