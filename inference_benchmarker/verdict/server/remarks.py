"""The remarks on the server's metrics beside the client's numbers, with their numbers and what to do. Pure.

docs/reference/server-metrics.md lists them with their limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.scaling import scalings
from inference_benchmarker.verdict.server.delayed_ack import delayed_ack
from inference_benchmarker.verdict.server.hardware_remarks import hardware_remarks
from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics, Remark
from inference_benchmarker.verdict.server.request_remarks import error_remarks, failing_since, request_remarks
from inference_benchmarker.verdict.server.time_remarks import time_remarks
from inference_benchmarker.words.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary


def diagnose(facts: WaveFacts, summary: Summary, limited_by: str | None = None) -> list[Remark]:
    """The remarks on the wave's server, in the order of reading; most need its metrics.

    ``limited_by``: the verdict's side; where it is the client, its own delays are in the latency.
    """
    found = [*_instances(facts), *delayed_ack(summary)]
    if not facts.server_metrics:
        return found
    platform = PlatformMetrics(facts, summary, facts.server_metrics, limited_by)
    parts = (error_remarks, time_remarks, hardware_remarks, request_remarks)
    return [*found, *(remark for part in parts for remark in part(platform))]


def _instances(facts: WaveFacts) -> Iterator[Remark]:
    """That the numbers are those of no one number of instances."""
    changed = [f"{one_line(each.followed.of)} {each.path}" for each in scalings(facts) if not each.is_steady]
    if changed:
        yield Remark(
            "instances",
            f"The number of instances changed during the wave ({', '.join(changed)})",
            "Rates and times are a mixture of these, not the capacity of any one number of instances. To measure "
            "that, keep the number fixed (MinCapacity = MaxCapacity).",
        )


def log_since(facts: WaveFacts, summary: Summary, metrics: Sequence[ServerMetric]) -> float | None:
    """From how many seconds after the wave's start on the server's log may say why requests ended in its errors.

    None: none did, by the client's count and by the server's.
    """
    return failing_since(PlatformMetrics(facts, summary, metrics))
