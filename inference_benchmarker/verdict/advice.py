"""The flag to change, in the words of whoever gave the load: a rate, stages, a recording, a concurrency. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.plan.load import ClosedLoop, OpenLoop

if TYPE_CHECKING:
    Load = OpenLoop | ClosedLoop


def less_load(load: Load) -> str:
    """The change that sends less: ``a lower --client-rps``."""
    if isinstance(load, ClosedLoop):
        return "a lower --concurrency"
    if load.replay is not None:
        return "a lower --speed"
    if load.steered:
        return "a lower rate"
    return "lower rates in --stages" if load.stages else "a lower --client-rps"


def search_waves(load: Load) -> str:
    """The waves that find the rate an endpoint holds: of one rate each."""
    changes = isinstance(load, OpenLoop) and (load.replay is not None or load.stages)
    return "each wave at one --client-rps" if changes else "waves at lower --client-rps"


def find_what_it_serves(load: Load) -> str:
    """The advice where the endpoint fell behind; a search, or whoever steers by keys, is finding that rate."""
    return "" if load.steered else f"To find the rate that the endpoint can serve, send {search_waves(load)}. "


def or_scale(side: str | None) -> str:
    """The advice beside a lower rate, by the side that was the limit of the wave."""
    if side == "client":
        return "; first ease the client, which was the limit"
    if side == "either":
        return "; first find out whether the client was the limit"
    return ". To serve more, scale the endpoint"


def longer_load(load: Load) -> str:
    """The change that sends more requests: ``a longer --obs-time or more --num-requests``."""
    if isinstance(load, OpenLoop):
        if load.replay is not None:
            return "more of the recording"
        if load.steered:
            return "a longer wave"
        if load.stages:
            return "longer --stages"
    return "a longer --obs-time or more --num-requests"
