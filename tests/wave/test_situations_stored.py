"""Every situation that a verdict knows, stored and read again: the verdict, and what it rests on, are the same."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.facts.wave_facts import WaveFacts
from tests.situations import SITUATIONS
from tests.waves import stored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_stored_wave_has_its_verdict(name: str, tmp_path: Path) -> None:
    facts = SITUATIONS[name][0]
    wave = Wave(**{each.name: getattr(facts, each.name) for each in fields(WaveFacts)})
    loaded = Wave.load(stored(wave, tmp_path).path)
    assert loaded.verdict == wave.verdict
