"""The parts of a request's time: client, network, platform, model. Pure.

AWS documents it for SageMaker: client latency = network + OverheadLatency + ModelLatency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.hardware_use import NEAR, PLANNED
from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics, Remark
from inference_benchmarker.words.wording import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_MODEL_S, LONG_OVERHEAD_S, LONG_NETWORK_S = 0.1, 0.01, 0.005
LARGEST_PART, LARGE_NETWORK = 0.5, 0.25
_LEAST_SHOWN = 0.01
NOTABLE_CPU = 0.05  # of the part: this tool's own work is less
OTHER_REQUESTS = 0.02
"""The server's times may exceed the client's by that share: they are rounded, and of all that its periods touch."""


def time_remarks(platform: PlatformMetrics) -> Iterator[Remark]:
    """The parts of the client's mean latency, and each that is large."""
    for rule in (_parts, _model, _overhead, _network):
        yield from rule(platform)


def _parts(platform: PlatformMetrics) -> Iterator[Remark]:
    latency, network = platform.latency_s, platform.network_s
    if not latency or platform.server_s is None or network is None:
        return
    parts = [f"{name} {text}" for name, text in _part_texts(platform, latency, network)]
    if network < -OTHER_REQUESTS * latency:
        yield Remark(
            "time",
            f"{' + '.join(parts[1:])} is more than the client's mean latency of {duration_text(latency)}",
            "The server's times include other requests: failed ones, the warm-up's, or other callers'.",
        )
        return
    yield Remark("time", f"Where the time went: mean latency {duration_text(latency)} = {' + '.join(parts)}")


def _part_texts(platform: PlatformMetrics, latency: float, network: float) -> list[tuple[str, str]]:
    """Each part's name, and its time with its share; that of network and client comes first."""
    overhead = None if platform.overhead_s is None else ("OverheadLatency", platform.overhead_s)
    parts = [part for part in (("network and client", max(network, 0)), overhead, platform.server_s) if part]
    percents = whole_percents([seconds / latency for _, seconds in parts])
    return [
        (name, f"{duration_text(seconds)} ({'<1' if 0 < seconds / latency < _LEAST_SHOWN else percent}%)")
        for (name, seconds), percent in zip(parts, percents, strict=True)
    ]


def whole_percents(shares: list[float]) -> list[int]:
    """Whole percents whose sum is that of the shares: those that lose most by being cut are raised."""
    exact = [100 * share for share in shares]
    percents = [int(percent) for percent in exact]
    most_cut_first = sorted(range(len(exact)), key=lambda place: percents[place] - exact[place])
    for place in most_cut_first[: round(sum(exact)) - sum(percents)]:
        percents[place] += 1
    return percents


def _model(platform: PlatformMetrics) -> Iterator[Remark]:
    """The server's time is the largest part, and long: 100 ms and more, or a limit of the user's was missed."""
    if platform.server_s is None or not platform.latency_s:
        return
    name, seconds = platform.server_s
    if seconds >= LARGEST_PART * platform.latency_s and (seconds >= LONG_MODEL_S or platform.too_slow):
        measured = f"{name} is the largest part: {duration_text(seconds)} on average"
        yield Remark("model_latency", measured, _model_advice(platform))


def _model_advice(platform: PlatformMetrics) -> str:
    used = max(platform.shares, default=None)
    faster = "a faster instance type" if platform.has_gpu else "a GPU or AWS Inferentia"
    profile = "Profile the inference code, test the model outside the endpoint"
    compiled = f"{profile}, compile it (SageMaker Neo), or use {faster}."
    if used is None:
        return f"{compiled} If it grows with the rate, autoscaling helps."
    if used >= NEAR:
        return f"The hardware is saturated ({used:.0%}): use more or larger instances, or autoscaling. {compiled}"
    if used >= PLANNED:
        return compiled
    return (
        f"The hardware is not saturated ({used:.0%}): look for too few workers or threads in the container, locks, "
        f"and calls to other services. {profile}."
    )


def _overhead(platform: PlatformMetrics) -> Iterator[Remark]:
    overhead = platform.overhead_s
    if overhead is None or overhead < LONG_OVERHEAD_S:
        return
    advice = (
        "Check the sizes of requests and responses, authentication, and infrequent requests; after a cold start a "
        "--warmup helps."
    )
    if platform.loading_s >= LARGEST_PART * overhead:
        advice = "Most of it is time spent loading models."
    measured = f"OverheadLatency is {duration_text(overhead)} on average; single-digit milliseconds are usual"
    yield Remark("overhead_latency", measured, advice)


def _network(platform: PlatformMetrics) -> Iterator[Remark]:
    network, latency = platform.network_s, platform.latency_s
    if network is None or not latency or network < max(LONG_NETWORK_S, LARGE_NETWORK * latency):
        return
    own = min(platform.client_cpu_s or 0.0, network)
    text = f", {duration_text(own)} of it this client's own CPU" if own >= NOTABLE_CPU * network else ""
    measured = f"Network and client take {_part_texts(platform, latency, network)[0][1]} of the latency{text}"
    yield Remark("network", measured, _network_advice(platform, network, own, latency))


def _network_advice(platform: PlatformMetrics, network: float, own: float, latency: float) -> str:
    """The advice on the network's part; what is known to be the client's is no distance, and is left out."""
    if platform.limited_by == "client":
        return "This client was the limit: fix that first (the findings say how)."
    cheaper = (
        f"Make invoke faster: a request takes {duration_text(own)} of CPU in this client, for example to "
        "encode or decode JSON."
    )
    if network - own < max(LONG_NETWORK_S, LARGE_NETWORK * latency):
        return cheaper
    place = (
        "Run this client in the endpoint's region and network, look for gateways, proxies and load balancers "
        "between them, reuse connections, and use a VPC interface endpoint."
    )
    return f"{cheaper} {place}" if own >= LONG_NETWORK_S else place
