"""Clients that a factories file's ``invoke`` may use; they run in a worker, so they may import gevent.

A name is loaded when it is first used, because what a client needs (gevent, botocore) is not what all need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inference_benchmarker.clients.http import HttpClient, HttpStatusError
    from inference_benchmarker.clients.openai import OpenAIClient
    from inference_benchmarker.clients.sagemaker import SageMakerClient
    from inference_benchmarker.clients.sse import EventReader
    from inference_benchmarker.clients.usage import read_usage

__all__ = ["EventReader", "HttpClient", "HttpStatusError", "OpenAIClient", "SageMakerClient", "read_usage"]

_HOMES = {
    "EventReader": "sse",
    "HttpClient": "http",
    "HttpStatusError": "http",
    "OpenAIClient": "openai",
    "SageMakerClient": "sagemaker",
    "read_usage": "usage",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
