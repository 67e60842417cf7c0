"""Finds whether the requests of a wave of one rate show that the endpoint fell behind. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inference_benchmarker.verdict.client.endpoint import SERVER_LIMITED

if TYPE_CHECKING:
    from inference_benchmarker.wave.wave import Wave

CLEARLY_LESS = 0.9
"""Of what was scheduled: if more is completed, the rest may be what was in flight when the wave ended."""


def completed_less(wave: Wave) -> str:
    """The part of the scheduled rate that a wave completed, where the endpoint clearly fell behind; else empty."""
    share = wave.summary.completed_share
    found = next((each for each in wave.verdict.findings if each.code == SERVER_LIMITED), None)
    return "" if found is None or share is None or share >= CLEARLY_LESS else found.measured.partition(";")[0]
