"""Recorded waves with a planted culprit are judged anew: see ``tests/culprits``."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from inference_benchmarker import Wave
from tests.culprits.record import is_right
from tests.culprits.waves import CULPRITS, EVIDENCE, Culprit


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.name)
def test_the_right_side_is_blamed_for_the_right_reason(culprit: Culprit) -> None:
    wave = Wave.load(culprit.evidence)
    found = [(finding.code, finding.measured) for finding in wave.verdict.findings]
    assert is_right(culprit, wave), (wave.verdict.limited_by, found)


@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.name)
def test_nobody_is_blamed_wrongly(culprit: Culprit) -> None:
    assert Wave.load(culprit.evidence).verdict.limited_by in {None, *culprit.sides}


def test_there_are_twelve_of_each_kind_and_half_of_them_are_held_out() -> None:
    assert Counter(culprit.kind for culprit in CULPRITS) == dict.fromkeys(("client", "server", "clean"), 12)
    assert Counter(culprit.kind for culprit in CULPRITS if culprit.held_out) == dict.fromkeys(
        ("client", "server", "clean"), 6
    )
    assert {path.name for path in EVIDENCE.iterdir()} == {culprit.name for culprit in CULPRITS}


def test_the_evidence_tells_nothing_of_the_machine_that_recorded_it() -> None:
    for path in EVIDENCE.glob("*/*.json"):
        text = path.read_text()
        assert not re.search(r'"/|[ (]/\w+/', text), path
        assert json.loads(text).get("environment", {}) == {}
    assert sum(path.stat().st_size for path in EVIDENCE.glob("*/*")) < 2_000_000
