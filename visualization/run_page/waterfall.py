"""The parts of a request's time, on average: in this client, on the way, and at the server. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary

_OTHERS = 0.02  # by so much the server's times may exceed the client's: they are rounded


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the mean time, in seconds; ``side``: whose it is."""

    name: str
    seconds: float
    side: str


def steps(facts: WaveFacts, summary: Summary, limited_by: str | None) -> tuple[Step, ...]:
    """The parts, one after the other, from when a request was due to its last byte; empty where none was answered."""
    platform = PlatformMetrics(facts, summary, facts.server_metrics or (), limited_by)
    if not platform.latency_s:
        return ()
    return (*_before(summary), *_during(platform, platform.latency_s))


def _before(summary: Summary) -> Iterator[Step]:
    """The open loop's time from when a request was due until it was sent."""
    if summary.response_time is not None and summary.repeats is None:
        if summary.lag is not None:
            yield Step("schedule lag", max(summary.lag.mean, 0.0), "client")
        if summary.build is not None:
            yield Step("payload building", summary.build.mean, "client")


def _during(platform: PlatformMetrics, latency: float) -> Iterator[Step]:
    """The latency's parts: what the server reported of it, and what of the rest was this client's own CPU."""
    overhead = platform.overhead_s or 0.0
    server = platform.server_s if (platform.network_s or 0.0) >= -_OTHERS * latency else None
    rest = latency if server is None else max(latency - overhead - server[1], 0.0)
    own = min(platform.client_cpu_s or 0.0, rest)
    if own:
        yield Step("this client's CPU", own, "client")
    if server is not None:
        yield Step("network, and everything else on the way", rest - own, "way")
        if overhead:
            yield Step("OverheadLatency", overhead, "server")
        yield Step(server[0], server[1], "server")
        return
    ttft = platform.summary.ttft
    if ttft is not None and ttft.count == platform.summary.ledger.ok and own < ttft.mean < latency:
        yield Step("network and endpoint, to the first token", ttft.mean - own, "both")
        yield Step("network and endpoint, from the first token to the last", latency - ttft.mean, "both")
    else:
        yield Step("network and endpoint", rest - own, "both")
