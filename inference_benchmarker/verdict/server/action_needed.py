"""Tells whether the server's metrics say anything that a reader must act on. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.facts.scaling import scalings
from inference_benchmarker.verdict.client.bottleneck import EITHER
from inference_benchmarker.verdict.server.hardware_remarks import CODES
from inference_benchmarker.verdict.server.hardware_use import TIGHT
from inference_benchmarker.verdict.server.platform_metrics import PlatformMetrics
from inference_benchmarker.verdict.server.remarks import diagnose

if TYPE_CHECKING:
    from inference_benchmarker.facts.server_metric import ServerMetric
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.server.hardware_use import Use
    from inference_benchmarker.verdict.verdict import Verdict

_HARMLESS = {"time", *CODES.values()}
"""Remarks that say where the time went and what was used."""


def needs_nothing(facts: WaveFacts, summary: Summary, verdict: Verdict) -> bool:
    """True where every metric has a value, none is near its limit, and nothing else is remarkable.

    False where the server was the limit, a limit was missed, or the number of instances changed.
    """
    metrics = facts.server_metrics or ()
    missed = verdict.pending or any(finding.severity == "missed" for finding in verdict.findings)
    whole = all(_is_known(metric) for metric in metrics if metric.asked)
    steady = all(scaling.is_steady for scaling in scalings(facts))
    if missed or verdict.limited_by in ("server", EITHER) or not (metrics and whole and steady):
        return False
    remarks = {remark.code for remark in diagnose(facts, summary)}
    return remarks <= _HARMLESS and all(_largest(use) < TIGHT for use in uses_of(facts, summary))


def _is_known(metric: ServerMetric) -> bool:
    return None not in metric.statistics.values() and not any(map(metric.is_near, metric.statistics))


def uses_of(facts: WaveFacts, summary: Summary) -> list[Use]:
    """The use of each part of the server's hardware whose share is known."""
    uses = PlatformMetrics(facts, summary, facts.server_metrics or ()).used_hardware
    return [use for use in uses if _shares(use)]


def _largest(use: Use) -> float:
    return max(_shares(use))


def _shares(use: Use) -> list[float]:
    return [share for share in (use.share, use.peak) if share is not None]
