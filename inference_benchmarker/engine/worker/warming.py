"""Requests that are sent once, alone, before the load: prefixes that the server's cache is to have from the start."""

from __future__ import annotations

from time import monotonic_ns
from types import GeneratorType
from typing import TYPE_CHECKING, Any

from inference_benchmarker.errors import BenchmarkError
from inference_benchmarker.records.error_key import error_key, error_text
from inference_benchmarker.words.redact import excerpt
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SHOWN = 200


def send_once(invoke: Callable[[Any], Any], payloads: Sequence[Any]) -> dict[str, float]:
    """Send each, one after the other, and tell how many they were and how long it took, in seconds.

    Raises BenchmarkError for one that fails: the cache would be warm for some.
    """
    begun = monotonic_ns()
    for payload in payloads:
        try:
            answer = invoke(payload)
            if isinstance(answer, GeneratorType):
                for _ in answer:
                    pass
        except Exception as error:
            told = f"{error_key(error)}: {excerpt(error_text(error), _SHOWN)}"
            raise BenchmarkError(f"--cache warm: a request that was sent before the load failed: {told}") from error
    return {"requests": len(payloads), "seconds": (monotonic_ns() - begun) / NS}
