"""No report of a wave contradicts its ledger: hundreds that are made up are read, and those that were recorded."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inference_benchmarker import Wave
from inference_benchmarker.plan.slo import Slo
from inference_benchmarker.report.headline import headline
from inference_benchmarker.report.text import to_text
from inference_benchmarker.summary.summarising import summarise
from inference_benchmarker.verdict.verdict import judge
from tests.case import case
from tests.culprits.waves import CULPRITS
from tests.waves import MS, observe, on_time, open_plan

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts

STORED = Path(__file__).parents[1] / "wave" / "recorded_runs" / "stored"

OUTCOMES = ("ok", "failed", "abandoned")
SLOS = tuple(map(Slo.parse, ("p99<100ms", "response_time.p50<30ms")))
RECORDED = (*(each.evidence for each in CULPRITS), STORED)


def test_no_wave_contradicts_its_ledger() -> None:
    for seed in range(200):
        with case(seed):
            require_no_contradiction(drawn(seed))


def drawn(seed: int) -> WaveFacts:
    """A wave of which any share may have failed or been abandoned."""
    draw = random.Random(seed)
    plan = open_plan(draw.choice(["1", "10", "40"]), draw.choice(["1", "4"]), slos=SLOS)
    weights = draw.choice([(1, 0, 0), (0, 1, 0), (0, 0, 1), (5, 1, 1), (0, 1, 1), (98, 1, 1)])
    records = []
    for record in on_time(plan):
        outcome = draw.choices(OUTCOMES, weights)[0]
        error = draw.choice(["ValueError", "HttpStatusError 503"]) if outcome == "failed" else None
        done = record.sent + draw.choice([20, 20, 40, 300]) * MS
        records.append(record._replace(outcome=outcome, error=error, done=done))
    return observe(plan, records)


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_no_recorded_wave_contradicts_its_ledger(folder: Path) -> None:
    require_no_contradiction(Wave.load(folder))


def require_no_contradiction(facts: WaveFacts) -> None:
    """Hold the report of a wave against what was counted of it."""
    summary = summarise(facts)
    verdict = judge(facts, summary)
    first, text = headline(summary, verdict), to_text(facts, summary, verdict)
    ledger = summary.ledger
    verdicts = re.findall(r"(?:^|the measurement is )(INVALID|VALID)\b", text, re.MULTILINE)
    assert text.startswith(first + "\n")
    assert set(verdicts) == {verdict.word}, "the same at the beginning and the end"
    assert len(verdicts) > 1
    assert ("every request was abandoned" in first) == (ledger.abandoned == ledger.sent > 1)
    if match := re.search(r"\(([\d,]+) in flight when the drain ended", first):
        assert int(match[1].replace(",", "")) == ledger.abandoned > 0
    if match := re.search(r"([\d,]+) failed \(", first):
        assert int(match[1].replace(",", "")) == ledger.failed > 0
    if match := re.search(r"([\d,]+) of ([\d,]+) answered", first):
        assert [int(each.replace(",", "")) for each in match.groups()] == [ledger.ok + ledger.failed, ledger.sent]
    missed = {finding.limit for finding in verdict.findings if finding.code == "slo_missed"}
    for slo in facts.plan.slos:
        value = summary.measured(slo.metric, slo.stat)
        if value is not None and ledger.ok and not ledger.abandoned:
            assert (slo.expression in missed) == (not slo.met(value))
        assert not (slo.expression not in missed and f"{slo.expression} with" in first)
    assert (verdict.exit_code == 0) <= (not missed)
