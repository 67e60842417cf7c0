"""Says whether a wave's numbers may be believed, and whether they met the user's limits. Pure.

The findings are a closed list; each has a number, its limit and one thing to do. INVALID means that the
client did not offer the load that was planned, so the numbers do not describe the endpoint under it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inference_benchmarker.exit_codes import INTERRUPTED, INVALID, MISSED, OK
from inference_benchmarker.verdict.aborts import abort_findings
from inference_benchmarker.verdict.answer_lengths import length_findings
from inference_benchmarker.verdict.cache_from_before import cache_findings
from inference_benchmarker.verdict.canaries import canary_findings
from inference_benchmarker.verdict.client.bottleneck import bottleneck_findings, limited_by
from inference_benchmarker.verdict.hosts import host_findings
from inference_benchmarker.verdict.met_limits import met_limits
from inference_benchmarker.verdict.missed_limits import threshold_findings
from inference_benchmarker.verdict.missed_server_limits import server_limit_findings, waiting_limits
from inference_benchmarker.verdict.missed_time import MissedTime, missed_time
from inference_benchmarker.verdict.processes import process_findings
from inference_benchmarker.verdict.recovery import recovery_findings
from inference_benchmarker.verdict.wave_findings import (
    load_findings,
    metric_findings,
    sample_findings,
    session_findings,
    usage_findings,
)

if TYPE_CHECKING:
    from inference_benchmarker.facts.wave_facts import WaveFacts
    from inference_benchmarker.summary.summary import Summary
    from inference_benchmarker.verdict.finding import Finding
    from inference_benchmarker.verdict.met_limits import MetLimit

RULES = 1
"""The number of the rules by which a wave is judged; each stored verdict has it as ``judged_by``.

Whoever changes what a rule makes of a wave (its severity, a limit, a finding that is new or gone) raises it: waves that
other rules have judged keep the verdict and the exit code that they were stored with.
"""
PENDING = "PENDING"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The findings and what follows from them. ``missed``: where instances were followed, when limits were missed.

    ``pending``: the limits that wait for the server's metrics; ``met``: those of ``--slo`` that were met.
    ``judged_by``: the number of the rules that gave it; None where an earlier version stored none.
    """

    findings: tuple[Finding, ...]
    interrupted: bool = False
    missed: MissedTime | None = None
    pending: tuple[str, ...] = ()
    met: tuple[MetLimit, ...] = ()
    judged_by: int | None = RULES

    @property
    def valid(self) -> bool:
        """Tells whether the numbers describe the endpoint under the planned load."""
        return not any(finding.severity == "invalid" for finding in self.findings)

    @property
    def word(self) -> str:
        """VALID or INVALID; PENDING where the numbers are valid, and a limit waits for the server's metrics."""
        if self.valid and self.pending:
            return PENDING
        return "VALID" if self.valid else "INVALID"

    @property
    def limited_by(self) -> str | None:
        """Which side the findings blame: ``client``, ``server``, ``either`` of them, or neither."""
        return limited_by(self.findings)

    @property
    def exit_code(self) -> int:
        """130 interrupted, 3 INVALID, 1 a threshold missed or not known yet, 0 neither."""
        if self.interrupted:
            return INTERRUPTED
        if not self.valid:
            return INVALID
        missed = self.pending or any(finding.severity == "missed" for finding in self.findings)
        return MISSED if missed else OK


def judge(facts: WaveFacts, summary: Summary) -> Verdict:
    """All findings on a wave, the gravest first."""
    of_sides = bottleneck_findings(facts, summary)
    side = limited_by(of_sides)
    found = [
        *host_findings(facts, summary),
        *process_findings(facts),
        *load_findings(facts),
        *of_sides,
        *abort_findings(facts),
        *threshold_findings(facts, summary, side),
        *server_limit_findings(facts, side),
        *recovery_findings(summary),
        *sample_findings(facts, summary),
        *session_findings(facts, summary),
        *metric_findings(facts),
        *canary_findings(facts),
        *usage_findings(facts),
        *cache_findings(facts),
        *length_findings(facts, summary),
    ]
    nothing = facts.ledger.sent > 0 and facts.ledger.ok == 0
    found.sort(key=lambda finding: _rank(finding, nothing=nothing))
    missed = missed_time(facts) if facts.instances else None
    return Verdict(tuple(found), facts.interrupted, missed, waiting_limits(facts), met_limits(facts, summary))


def _rank(finding: Finding, *, nothing: bool) -> int:
    """The gravest first; where nothing succeeded that goes before all else, as the rest may follow from it.

    Before that goes only that the wave was aborted: it says of which time that is true.
    """
    if nothing and finding.code in ("aborted", "success_below_threshold"):
        return -1
    return {"invalid": 0, "missed": 1, "warning": 2}[finding.severity]
