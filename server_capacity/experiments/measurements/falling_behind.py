"""Whether the requests of a wave, or of a stage of it, show that the endpoint fell behind. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inference_benchmarker.facts.stages import stages_of
from inference_benchmarker.verdict.client.endpoint import SERVER_LIMITED, endpoint_findings
from inference_benchmarker.verdict.client.evidence import Evidence
from inference_benchmarker.words.units import NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inference_benchmarker.wave.wave import Wave
    from server_capacity.experiments.measurements.counting import Counted


def with_behind(wave: Wave, stages: Sequence[Counted]) -> list[Counted]:
    """The stages of a search's wave, each with what its requests show."""
    begun = zip(stages_of(wave), wave.summary.stages, strict=False)
    behind = {
        found.start_ns
        for found, row in begun
        if any(each.code == SERVER_LIMITED for each in endpoint_findings(Evidence(found.facts, row.summary)))
    }
    return [
        replace(each, stretch=replace(each.stretch, behind=round(each.stretch.start_s * NS) in behind))
        for each in stages
    ]


def completed_less(wave: Wave) -> str:
    """The part of the scheduled rate that a wave of one rate completed, where the endpoint fell behind; else empty."""
    found = next((each for each in wave.verdict.findings if each.code == SERVER_LIMITED), None)
    return "" if found is None else found.measured.partition(";")[0]
