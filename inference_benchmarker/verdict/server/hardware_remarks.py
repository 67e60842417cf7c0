"""The use of the hardware, and what that means for who chooses instances. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.hardware_use import (
    CPU,
    DISK,
    FULL,
    GPU,
    GPU_MEMORY,
    IDLE,
    KV_CACHE,
    MEMORY,
    NEAR,
    PLANNED,
    TIGHT,
    Use,
)
from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics, Remark

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.verdict.server.hardware_use import Resource
    from inference_benchmarker.verdict.server.platform_metrics import RemarkCode

CODES: dict[Resource, RemarkCode] = {
    CPU: "cpu",
    GPU: "gpu",
    MEMORY: "memory",
    GPU_MEMORY: "gpu_memory",
    DISK: "disk",
    KV_CACHE: "kv_cache",
}

_FULL_ADVICE = {
    CPU: "use more or larger instances, or scale out earlier",
    GPU: "use a larger GPU or more instances, or larger batches",
    MEMORY: "a container that runs out of memory is killed: use a larger instance, or fewer workers or models per "
    "instance",
    GPU_MEMORY: "normal if the server reserves it in advance (the KV cache of an LLM server); otherwise use smaller "
    "batches or fewer models",
    KV_CACHE: "requests wait or are preempted: use shorter contexts, fewer concurrent requests, or more GPU memory",
    DISK: "use a larger volume",
}
_UNKNOWN = 'Allow sagemaker:DescribeEndpoint and sagemaker:DescribeEndpointConfig, or give "InstanceType" in the block.'
_IDLE = "Mostly idle at this rate: send more to find its limit, or use fewer or smaller instances."
_TIGHT = "This leaves little room for peaks."
_IDLE_ADVICE = {CPU: _IDLE, GPU: _IDLE, MEMORY: "Most of it is unused at this rate."}


def hardware_remarks(platform: PlatformMetrics) -> Iterator[Remark]:
    """Each resource as a share of the whole."""
    for use in platform.used_hardware:
        code = CODES[use.resource]
        name = use.resource[:1].upper() + use.resource[1:] + (f" ({use.of})" if use.of else "")
        if use.whole is None:
            yield Remark(code, f"{name}: {_amounts(use)}; the total is not known", _UNKNOWN)
            continue
        around = platform.is_diluted(use)
        note = "; this includes idle time around the wave" if around else ""
        idle = not around and platform.healthy  # who fails or is too slow is not too large
        yield Remark(code, f"{name}: {_amounts(use)}{note}", _advice(use, around=around, idle=idle))


def _amounts(use: Use) -> str:
    """50% (198% of 400%), peak 51%, on 1 x ml.g5.xlarge."""
    words: list[str] = []
    for before, value, share in (("", use.average, use.share), ("peak ", use.maximum, use.peak)):
        if value is None:
            continue
        text = _percent(value if use.percent else 100 * value)
        if use.percent and use.whole is not None and use.whole != 100:
            text = f"{share:.0%}" if words else f"{share:.0%} ({text} of {use.whole:,.0f}%)"
        if not (words and words[0].startswith(text)):
            words.append(before + text)
    if use.hardware is not None:
        words.append(f"on {use.hardware.text}")
    return ", ".join(words)


def _percent(value: float) -> str:
    """312.4%, 40%."""
    return f"{value:,.1f}".removesuffix(".0") + "%"


def _advice(use: Use, *, around: bool, idle: bool) -> str:
    """The meaning of a share; one that idle time dilutes means nothing unless it is high all the same.

    ``idle``: whether a low share may be called so.
    """
    share = use.peak if use.share is None else use.share
    if share is None or (around and share < NEAR):
        return ""
    if share >= NEAR:
        return f"{'Used up' if share >= FULL else 'Nearly used up'}: {_FULL_ADVICE[use.resource]}."
    if share >= PLANNED:
        kind = "peak" if use.share is None else "average"
        return _TIGHT if share >= TIGHT else f"This is a good {kind} utilization to plan for."
    return _IDLE_ADVICE.get(use.resource, "") if share < IDLE and idle else ""
